"""One incoming batch against the declared columns: the same values in canonical types, or a typed refusal.

Nothing is ever rounded, cut, clamped, wrapped or defaulted. The first offending value of the first offending column is
named with its row; nothing of the batch is passed on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

import pyarrow as pa
import pyarrow.compute as pc

from dpone_provider.columnar.arrow_types import arrow_schema
from dpone_provider.columnar.exact_numbers import exact_boolean, exact_decimal, exact_float, exact_integer
from dpone_provider.columnar.exact_text import exact_binary, exact_string, exact_uuid
from dpone_provider.columnar.exact_times import exact_date, exact_time, exact_timestamp
from dpone_provider.columnar.offence import InexactValue, Offence, Rule, row_text
from dpone_provider.columnar.target_limits import TargetLimits
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.schema.tables import Column
from dpone_provider.domain.schema.types import (
    Binary,
    Boolean,
    Date,
    Decimal,
    Float,
    Integer,
    String,
    Time,
    Timestamp,
    TimestampTz,
    Uuid,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowContract:
    """What rows of one table must keep: the declared columns, and the limits of the engine that will hold them.

    Attributes:
        relation: the table, for messages.
        key_columns: the columns that name a row in a message; may be empty.
    """

    relation: Relation
    columns: tuple[Column, ...]
    limits: TargetLimits
    key_columns: tuple[str, ...] = ()


def exact_batch(batch: pa.RecordBatch, contract: RowContract, first_row: int = 0) -> pa.RecordBatch | InexactValue:
    """Convert a batch to the canonical schema of the declared columns, exactly.

    Args:
        batch: columns in any order and any Arrow type that carries the values exactly.
        contract: what must hold.
        first_row: how many rows of the stream came before, for naming rows of tables without a key.

    Returns:
        The batch in ``arrow_schema(contract.columns)``, or the first value that cannot be carried.
    """
    unequal = _columns_differ(batch, contract)
    if unequal is not None:
        return unequal
    arrays = []
    for column in contract.columns:
        converted = exact_column(batch.column(column.name), column, contract.limits)
        if isinstance(converted, Offence):
            return _placed(converted, column, batch, contract, first_row)
        arrays.append(converted)
    return pa.record_batch(arrays, schema=arrow_schema(contract.columns))


def exact_column(array: pa.Array, column: Column, limits: TargetLimits) -> pa.Array | Offence:
    """Convert one column, or return its first offending value.

    Extension types are taken as their storage (ADBC marks PostgreSQL's numeric and uuid as opaque text and bytes), and
    dictionaries as their values.
    """
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if array.null_count and not column.nullable:
        row = pc.index(array.is_null(), True).as_py()
        return Offence(rule=Rule.NOT_NULL, row=row, value="NULL", limit="a value: the column is NOT NULL")
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), arrow_schema([column]).field(0).type)
    return _exact_values(array, column, limits)


def _exact_values(array: pa.Array, column: Column, limits: TargetLimits) -> pa.Array | Offence:
    match column.type:
        case Boolean() as logical:
            return exact_boolean(array, logical)
        case Integer() as logical:
            return exact_integer(array, logical)
        case Float() as logical:
            return exact_float(array, logical, limits)
        case Decimal() as logical:
            return exact_decimal(array, logical)
        case String() as logical:
            return exact_string(array, logical, limits)
        case Binary() as logical:
            return exact_binary(array, logical)
        case Date() as logical:
            return exact_date(array, logical, limits)
        case Time() as logical:
            return exact_time(array, logical, limits)
        case Timestamp() | TimestampTz() as logical:
            return exact_timestamp(array, logical, limits)
        case Uuid() as logical:
            return exact_uuid(array, logical)
        case _:
            assert_never(column.type)


def _columns_differ(batch: pa.RecordBatch, contract: RowContract) -> InexactValue | None:
    declared = [each.name for each in contract.columns]
    if sorted(batch.schema.names) == sorted(declared):
        return None
    return InexactValue(
        relation=contract.relation,
        column=", ".join(sorted(set(declared) ^ set(batch.schema.names))) or "a column twice",
        row="every row",
        rule=Rule.COLUMNS,
        value=f"columns {batch.schema.names}",
        limit=f"exactly the declared columns {declared}",
    )


def _placed(
    offence: Offence, column: Column, batch: pa.RecordBatch, contract: RowContract, first_row: int
) -> InexactValue:
    where = "every row"
    if offence.row is not None:
        where = row_text(batch, offence.row, contract.key_columns, first_row + offence.row)
    return InexactValue(
        relation=contract.relation,
        column=column.name,
        row=where,
        rule=offence.rule,
        value=offence.value,
        limit=offence.limit,
    )
