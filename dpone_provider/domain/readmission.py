"""When the ledger went back: its readmission, the forgetting of a clone, and the burial of a service lost for good.

Each is an operator's recorded judgement that lets moves happen which nothing else allows. A readmission is open from
its first transaction to its last; while it is, no other transaction of the ledger is let in.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dpone_provider.domain.guards import guard, unmet
from dpone_provider.domain.identity import ServiceId
from dpone_provider.domain.outcomes import Refused

MAX_REASON = 1000


class ReadmissionKind(StrEnum):
    """What is done with an authority that went back."""

    READMIT = "readmit"
    """It is put to use again, under its own id."""
    FORGET = "forget"
    """It is a copy: it takes a new id and buries every service that it was copied with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readmission:
    """One row of the ledger: from which incarnation to which, under which authority id, and why."""

    readmission_id: str
    kind: ReadmissionKind
    authority_id: str
    from_incarnation: str
    incarnation: str
    because: str
    by: str

    def __post_init__(self) -> None:
        """Refuse a judgement without a reason."""
        if not 0 < len(self.because) <= MAX_REASON:
            raise ValueError(f"a reason of 1 to {MAX_REASON} characters, not {len(self.because)}")

    def __str__(self) -> str:
        """Return a name for messages."""
        return f"{self.kind} {self.readmission_id} by {self.by}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Burial:
    """One service that is gone for good, by an operator's word."""

    service_id: ServiceId
    because: str
    by: str

    def __post_init__(self) -> None:
        """Refuse a judgement without a reason."""
        if not 0 < len(self.because) <= MAX_REASON:
            raise ValueError(f"a reason of 1 to {MAX_REASON} characters, not {len(self.because)}")

    def __str__(self) -> str:
        """Return a name for messages."""
        return f"burial of service {self.service_id} by {self.by}"


READMISSION_OPEN = guard(
    "readmission_is_open",
    "I5",
    "I9",
    says="an open readmission of the ledger, which keeps every other transaction out",
    next_command="dpone control readmit",
)
NOT_BURIED = guard(
    "service_is_not_buried",
    "I6",
    "I8",
    says="a service that was not buried",
    next_command="give the tables another service, build anew, and promote that",
)
BURIED_ONLY = guard(
    "service_is_buried",
    "I8",
    says="a service whose burial is recorded",
    next_command="dpone control bury SERVICE --because TEXT",
)


def require_open(subject: str, opened: Readmission | None) -> Refused | None:
    """Refuse unless a readmission is open: what only a readmission may do."""
    return unmet(subject, (READMISSION_OPEN, opened is not None, "none"))


def require_unburied(subject: str, burial: Burial | None) -> Refused | None:
    """Refuse what is for a service that was buried."""
    return unmet(subject, (NOT_BURIED, burial is None, burial))
