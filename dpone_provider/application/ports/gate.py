"""Issuing a login, and proving that nothing of it is left."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from dpone_provider.application.ports.time import Deadline
from dpone_provider.domain.identity import AttemptId, Digest, Principal, Relation
from dpone_provider.domain.outcomes import Failed, Refused, Unknown
from dpone_provider.domain.secret import Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantPlan:
    """What the login may do: membership in the writer role of each schema (SQL engines), or INSERT into and SELECT
    from its own staged tables (ClickHouse)."""

    writer_schemas: tuple[str, ...] = ()
    staged_tables: tuple[Relation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PrincipalObservation:
    """What was read about a login: its server-side id, whether it can log in, its roles or grants."""

    principal: Principal
    exists: bool
    can_login: bool
    server_id: str
    grants: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionObservation:
    """One poll for what is left of a login.

    ``sessions`` and ``transactions`` are in words (pid, state, since); ``half_open`` are logins under way that were
    there when the disabling was read back and can't be attributed yet. ``blind`` means that the observer could not
    prove, in the same statement, that it may see every session: then nothing may be concluded. ``unverified`` says in
    words what no poll of this engine can show (the lab's ClickHouse cannot refuse a later login).
    """

    principal: Principal
    sessions: tuple[str, ...]
    half_open: tuple[str, ...]
    transactions: tuple[str, ...]
    blind: bool
    evidence_digest: Digest
    unverified: tuple[str, ...] = ()

    @property
    def quiescent(self) -> bool:
        """Tell whether nothing of the login is left, seen by an observer that sees everything."""
        return not (self.blind or self.sessions or self.half_open or self.transactions)


class LoginGate(Protocol):
    """The controller's hand on one service's logins. Journaling is the ledger's; the use case orders the calls:

    propose → (JOURNALED) → create [→ READY in the same transaction where ``handle`` is the service's own ledger] →
    enable → read_back → (DELIVERED) …  (CLOSING) → disable → read_back → observe … end_sessions … observe → (CLOSED)
    → collect.

    Each call but ``create`` with a handle is durable by itself and may be repeated. Total: a server that does not
    answer gives Unknown.
    """

    def propose(self, attempt_id: AttemptId, used: Collection[str]) -> Principal | Refused:
        """Choose the login for an attempt. ``used`` is empty at first; once the ledger has refused a name, it is all
        names that were ever journaled on the service.

        Refused: the lab's pool is used up.
        """

    def create(self, principal: Principal, plan: GrantPlan, handle: object) -> Secret | Failed | Unknown:
        """Create the login with the plan's rights and return its secret; until READY is committed no login succeeds.

        ``handle`` is the ledger transaction's (``LedgerTransaction.handle``): an engine that is the ledger's own
        instance creates inside it, so that login and READY commit together; any other ignores it.
        """

    def enable(self, principal: Principal) -> Failed | Unknown | None:
        """Let the login in, after READY is durable, where that is a step of its own (ClickHouse); else do nothing."""

    def read_back(self, principal: Principal) -> PrincipalObservation | Unknown:
        """Read the login on a fresh connection; from ``disable`` to ``collect`` the one that closing keeps will do."""

    def disable(self, principal: Principal, deadline: Deadline) -> Unknown | None:
        """Disable (or drop) the login: bounded by the deadline, safe when it does not exist."""

    def observe(self, principal: Principal) -> SessionObservation | Unknown:
        """Poll for sessions, half-open logins and transactions. The first poll after ``disable`` fixes which half-open
        logins count; the object keeps that between polls of one principal."""

    def end_sessions(self, principal: Principal) -> Unknown | None:
        """Ask the server to end every session of the login that is still the same one as observed."""

    def collect(self, principal: Principal) -> Unknown | None:
        """Remove the login after CLOSED: what it owns goes to the writer role first. Safe when it does not exist."""

    def principals(self) -> tuple[str, ...] | Unknown:
        """List every login on the service that carries our tag."""
