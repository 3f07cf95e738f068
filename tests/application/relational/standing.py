"""Tables as an SQL engine's catalog shows them."""

from __future__ import annotations

from dataclasses import replace

from dpone_provider.application.relational.definitions import EngineColumn, Standing
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.schema.tables import Column, Table
from dpone_provider.domain.schema.types import Integer, LogicalType, String

PLACE = Relation("stage", "flights")


def engine_column(name: str = "number", logical: LogicalType | None = None, **more: object) -> EngineColumn:
    """Return a column of an engine that calls its types as we do."""
    there = logical or Integer(32)
    column = EngineColumn(name=name, engine_type=str(there), logical=there, nullable=False, comment="", computed=False)
    return replace(column, **more)  # type: ignore[arg-type]  # fields of the column


def standing(*columns: EngineColumn, **more: object) -> Standing:
    """Return a plain table that this login may read and not write."""
    table = Standing(
        relation=PLACE,
        identity="17",
        kind=None,
        owner="",
        readable=True,
        writable=False,
        row_security=False,
        comment="",
        columns=columns or (engine_column(), engine_column("name", String(20))),
        primary_key=("number",),
        primary_key_name="flights_pkey",
        indexes=(),
        foreign_keys=(),
    )
    return replace(table, **more)  # type: ignore[arg-type]  # fields of the table


DECLARED = Table(
    schema=PLACE.schema,
    name=PLACE.name,
    columns=(
        Column(name="number", type=Integer(32), nullable=False),
        Column(name="name", type=String(20), nullable=False),
    ),
    primary_key=("number",),
)
