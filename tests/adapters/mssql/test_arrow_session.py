"""What a bulk load says when it fails, whatever its library raises."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dpone_provider.adapters.mssql.arrow_session import ArrowSession
from dpone_provider.adapters.mssql.errors import AnswerLost, MssqlError, ServerError
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.secret import Secret

Panic = type("PanicException", (BaseException,), {"__module__": "pyo3_runtime"})
"""What Rust code that gives up raises in Python: no Exception, and of a module that cannot be imported."""
SECRET = "bulk-canary"


class DriverError(Exception):
    """The driver's own."""


class Cursor:
    """Loads nothing, and raises or returns what it was given."""

    def __init__(self, outcome: BaseException | int) -> None:
        self.outcome = outcome

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def bulkcopy_arrow(self, table: str, batches: pa.RecordBatchReader, **options: object) -> dict[str, int]:
        assert options["column_mappings"] == ["id"], "a load by position may fill other columns"
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return {"rows_copied": self.outcome}


class Connection:
    """Gives that cursor."""

    def __init__(self, outcome: BaseException | int) -> None:
        self.outcome = outcome

    def cursor(self) -> Cursor:
        return Cursor(self.outcome)


def load(outcome: BaseException | int) -> int:
    """Load one batch through a connection that does that."""
    own = ArrowSession(Connection(outcome), Credential("worker", Secret(SECRET)), DriverError)
    batch = pa.record_batch([pa.array([1])], names=["id"])
    return own.load(Relation("stage", "t"), ["id"], pa.RecordBatchReader.from_batches(batch.schema, [batch]), seconds=5)


def test_what_the_server_took_is_told() -> None:
    assert load(1) == 1


@pytest.mark.parametrize(
    ("outcome", "kind", "words"),
    [
        (Panic("dest is out of bounds"), AnswerLost, "the bulk loader gave up: dest is out of bounds"),
        (RuntimeError(f"login with {SECRET} failed"), AnswerLost, "login with *** failed"),
        (DriverError("[SQL Server] String or binary data would be truncated"), ServerError, "would be truncated"),
        (ValueError("column 'id': 300 does not fit"), AnswerLost, "300 does not fit"),
    ],
)
def test_whatever_ends_a_load_is_one_of_the_adapters_errors(
    outcome: BaseException, kind: type[MssqlError], words: str
) -> None:
    with pytest.raises(kind) as raised:
        load(outcome)
    assert words in str(raised.value)
    assert SECRET not in str(raised.value)


def test_ctrl_c_ends_a_load_as_itself() -> None:
    with pytest.raises(KeyboardInterrupt):
        load(KeyboardInterrupt())
