"""What an operator does with an authority that went back, and with a service lost for good: wired once."""

from __future__ import annotations

from dataclasses import dataclass

from dpone_provider.application.front_door import FrontDoor
from dpone_provider.application.readmission import Readmitted, Readmitter
from dpone_provider.application.standing import LedgerStanding
from dpone_provider.application.writing_off import Buried, Forgetter, Forgotten, Undertaker
from dpone_provider.assembly.runtime import Runtime
from dpone_provider.assembly.standing import pointed_generations
from dpone_provider.domain.identity import ServiceId
from dpone_provider.domain.outcomes import DponeError


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """One authority with the targets of every deployment that this machine's cache holds."""

    runtime: Runtime

    def look(self) -> LedgerStanding:
        """Read how the authority stands and what each target names; nothing is written."""
        return self.runtime.standing.look()

    def readmit(self, because: str, *, take_over: bool) -> tuple[LedgerStanding, Readmitted]:
        """Put an authority that went back to use again, from wherever an earlier run of this stopped."""
        standing = self.look()
        return standing, self._readmitter().readmit(standing, because, take_over=take_over, told=self.runtime.told)

    def forget(self, because: str) -> Forgotten:
        """Make a copy of an authority forget what it believes about targets."""
        at = self.runtime
        forgetter = Forgetter(ledger=at.ledger.readmitting(), clock=at.clock, entropy=at.entropy, by=at.ledger_login)
        return forgetter.forget(self.look(), because)

    def bury(self, service_id: ServiceId, because: str) -> Buried:
        """Write a service off that is lost for good.

        Raises:
            DponeError: Refused.
        """
        at = self.runtime
        standing = self.look()
        if standing.refusal is not None:
            raise DponeError(standing.refusal)
        there = {one.allegiance.service_id for one in standing.targets if one.allegiance is not None}
        undertaker = Undertaker(
            ledger=at.ledger,
            front_door=FrontDoor(ledger=at.ledger, gates=at.gates, clock=at.clock, grace=at.settings.grace),
            answers=there.__contains__,
            clock=at.clock,
            by=at.ledger_login,
        )
        return undertaker.bury(service_id, because, at.told)

    def _readmitter(self) -> Readmitter:
        at = self.runtime
        ledger = at.ledger.readmitting()
        return Readmitter(
            ledger=ledger,
            front_door=FrontDoor(ledger=ledger, gates=at.gates, clock=at.clock, grace=at.settings.grace),
            gates=at.gates,
            witness_of=lambda target: at.services.witness(target.connection),
            generations=lambda: pointed_generations(at.cache),
            clock=at.clock,
            entropy=at.entropy,
            by=at.ledger_login,
            closing=at.settings.times.closing,
        )
