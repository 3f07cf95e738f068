"""The materializer: it brings a deployment into a cache, and into service through the coordinator it is given."""

from __future__ import annotations

from collections.abc import Callable

from dpone_provider.application.activation import CompositionActivationCoordinator
from dpone_provider.application.admission import Admitter
from dpone_provider.application.ports.cache import DeploymentCache
from dpone_provider.application.ports.time import Clock
from dpone_provider.application.promotion import Promotion, PromotionOrder, PromotionReport
from dpone_provider.domain.outcomes import Failure, refuse

Told = Callable[[str], None]


class DeploymentCacheMaterializer:
    """Brings deployments into a cache. A v3 parent needs a coordinator: without one it is refused (fail closed)."""

    def __init__(
        self,
        cache: DeploymentCache,
        clock: Clock,
        *,
        composition_activation_coordinator: CompositionActivationCoordinator | None = None,
        ledger_login: str = "",
        told: Told | None = None,
    ) -> None:
        """Promote through the coordinator; ``ledger_login`` stands in the pointer as who promoted."""
        self._cache = cache
        self._clock = clock
        self._coordinator = composition_activation_coordinator
        self._login = ledger_login or "controller"
        self._told = told or silent

    def materialize(self, order: PromotionOrder) -> PromotionReport | Failure:
        """Run the ten steps of a promotion from where it stands."""
        coordinator = self._coordinator
        if coordinator is None:
            return authority_not_given(order.environment)
        promotion = Promotion(
            cache=self._cache,
            admitter=Admitter(ledger=coordinator.ledger, services=coordinator.services),
            coordinator=coordinator,
            clock=self._clock,
            ledger_login=self._login,
        )
        return promotion.run(order, self._told)


def authority_not_given(environment: str) -> Failure:
    """Return the refusal of a v3 parent without a control authority."""
    return refuse(
        "authority_not_given",
        f"environment {environment}",
        found="no --workspace-authority-connection-ref",
        allowed="a reference to the control authority: a v3 parent is never put into service without it",
        next_command="give --workspace-authority-connection-ref env:NAME, file:/PATH or airflow:CONN_ID",
    )


def silent(line: str) -> None:
    """Tell nobody."""
