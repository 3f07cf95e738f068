"""Column types that both of the ledger's dialects speak."""

from __future__ import annotations

from typing import Any

from sqlalchemy import JSON, DateTime, LargeBinary, String, Text, Unicode, Uuid
from sqlalchemy.dialects import mssql, postgresql
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine


class HexId(TypeDecorator[str]):
    """64 lower-case hex digits in Python; ``text`` on PostgreSQL, ``binary(32)`` on SQL Server."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[str]:
        """Return the dialect's own type."""
        chosen: TypeEngine[Any] = mssql.BINARY(32) if dialect.name == "mssql" else Text()
        return dialect.type_descriptor(chosen)

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | bytes | None:
        """Return what the driver sends."""
        return bytes.fromhex(value) if value is not None and dialect.name == "mssql" else value

    def process_result_value(self, value: str | bytes | None, dialect: Dialect) -> str | None:
        """Return hex digits, whatever the driver gave."""
        return value.hex() if isinstance(value, bytes) else value


UUID_TEXT = Uuid(as_uuid=False)
"""A UUID; its text form in Python."""
DIGEST = String(71).with_variant(Text(), "postgresql")
"""``sha256:`` and 64 hex digits."""
NAME = Unicode(450).with_variant(Text(), "postgresql")
"""A name or key that people chose; 450 characters are what a SQL Server index key holds."""
WORD = String(60).with_variant(Text(), "postgresql")
"""A state, a kind: one of a few ASCII words."""
RELATION_NAME = Unicode(256).with_variant(Text(), "postgresql")
"""A schema's or table's name; two of them and an id fit into a SQL Server index key."""
LIFE = String(200).with_variant(Text(), "postgresql")
"""What an authority's server says of its database: names and GUIDs."""
LONG_TEXT = Unicode().with_variant(Text(), "postgresql")
"""Text of any length."""
DOCUMENT = LargeBinary()
"""Canonical bytes of a document."""
INSTANT = DateTime(timezone=True)
"""The ledger server's clock: for ages that people read; nothing is decided by it."""
LOGGED = JSON().with_variant(postgresql.JSONB(), "postgresql")
"""A row as the log shows it."""
