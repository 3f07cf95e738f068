"""Resolving a credential reference to a secret, late."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from dpone_provider.domain.connection import Credential
from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.outcomes import Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedReference:
    """What a reference stands for: where it points and who connects. ``options``: the URL's query, without secrets."""

    kind: EngineKind
    host: str
    port: int
    database: str
    credential: Credential
    options: tuple[tuple[str, str], ...] = ()


class Credentials(Protocol):
    """Resolves ``env:NAME``, ``file:PATH`` and ``airflow:CONN_ID``. Total: what cannot be resolved is a refusal.

    A refusal names the reference and what is missing, never any part of a value.
    """

    def resolve(self, reference: str) -> ResolvedReference | Refused:
        """Return what ``reference`` stands for now; nothing is cached."""
