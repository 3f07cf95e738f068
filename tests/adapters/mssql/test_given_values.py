"""Every type through a publication and a reader's snapshot on the given server: exact both ways."""

from __future__ import annotations

from dataclasses import replace
from secrets import token_hex

import pyarrow as pa
import pytest

from dpone_provider.adapters.mssql.reader import MssqlReader
from dpone_provider.adapters.mssql.session import MssqlServer
from dpone_provider.application.ports.tables import Published, StagedContent
from dpone_provider.columnar.content_digest import ContentHasher
from dpone_provider.domain.schema.tables import Table
from tests.adapters.mssql.capabilities import Capability
from tests.adapters.mssql.given_refresh import Refresh, column
from tests.adapters.mssql.given_server import require
from tests.adapters.mssql.given_world import GivenWorld, deadline
from tests.adapters.mssql.installed import SCHEMA
from tests.adapters.mssql.test_given_server import FINE, VALUES, WIDE, batch_of

pytestmark = pytest.mark.mssql


def of_every_type() -> tuple[Table, pa.RecordBatch]:
    """Return a table with a column of each type, and its extremes, with NULL between them."""
    require(Capability.TICKS, Capability.UTF16)
    logicals = [*VALUES, *FINE]
    columns = [column(f"c{at}", text, nullable=True) for at, text in enumerate(logicals)]
    target = Table(schema=SCHEMA, name=f"t_{token_hex(6)}", columns=tuple(columns))
    return target, batch_of(target, 4)


@pytest.mark.parametrize("size", [1, 3])
def test_every_type_is_published_and_read_as_it_was(world: GivenWorld, size: int) -> None:
    """Exact both ways: through staging, the target's own types, and a reader's snapshot."""
    require(Capability.SNAPSHOTS)
    target, values = of_every_type()
    refresh = Refresh.of(world, target)
    refresh.bound()
    writer = refresh.writer()
    hasher = ContentHasher(target.columns)
    for _ in range(size):
        writer.write(values)
        hasher.update(values)
    staged = writer.finish(deadline(60))
    assert isinstance(staged, StagedContent), staged
    assert staged.content_digest == str(hasher.digest)
    assert refresh.published(staged) is None
    reader = MssqlReader(MssqlServer(world.instance.target.endpoint, world.instance.reader), seconds=60)
    read = ContentHasher(target.columns)
    with reader.snapshot(target.relation, target.columns, (), replace(WIDE, batch_rows=2)) as snapshot:
        for one in snapshot.batches():
            read.update(one)
    assert str(read.digest) == staged.content_digest
    assert isinstance(refresh.ended(), Published)
