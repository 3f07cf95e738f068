"""How the authority stands, as the targets of a machine's cached deployments know it."""

from __future__ import annotations

from collections.abc import Mapping

from dpone_provider.application.ledger.calls import settled
from dpone_provider.application.ports.cache import DeploymentCache
from dpone_provider.application.ports.gate import LoginGate
from dpone_provider.application.ports.ledger import Ledger
from dpone_provider.application.ports.services import Services
from dpone_provider.application.standing import StandingCheck
from dpone_provider.assembly.gates import EnvironmentGates
from dpone_provider.domain.identity import ServiceId


def standing_check(ledger: Ledger, services: Services, gates: Mapping[ServiceId, LoginGate]) -> StandingCheck:
    """Return the check over the targets that ``gates`` were made for."""
    return StandingCheck(
        ledger=ledger,
        targets=gates.targets if isinstance(gates, EnvironmentGates) else tuple,
        witness=services.witness,
    )


def pointed_generations(cache: DeploymentCache) -> tuple[tuple[str, int], ...]:
    """Return the generation that each pointer of this machine's cache names.

    Raises:
        DponeError: Refused when one cannot be read: it may name a higher one than the ledger knows.
    """
    environments = sorted({one.environment for one in settled(cache.entries())})
    pointers = {name: settled(cache.pointer(name)) for name in environments}
    return tuple((name, pointer.generation) for name, pointer in pointers.items() if pointer is not None)
