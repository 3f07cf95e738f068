"""What a refresh requires of its target on SQL Server, beside what it requires of any."""

from __future__ import annotations

from typing import Final

from dpone_provider.adapters.mssql import types
from dpone_provider.application.relational.refresh import RefreshRules

_DIGEST_DIGITS: Final = 40
"""The ledger on SQL Server keeps identities of at most 60 characters."""


def _short(digest: str) -> str:
    return digest.removeprefix("sha256:")[:_DIGEST_DIGITS]


RULES: Final = RefreshRules(
    plain="a plain table without triggers, indexed views, policies, change capture, replication, versions,"
    " referencing foreign keys or columns that the server makes",
    facts=types.engine_facts,
    kept_digest=_short,
)
