"""What is searched: who takes part, what may happen, and what is looked at.

Each search is complete: the cast is finite, each deployment is promoted once, each try is admitted once, and nothing
else bounds it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from tests.model.attempts import Liberties
from tests.model.cast import OTHER_PACK, OTHER_SERVICE, SERVICE, Cast, Deployment, Try, Work, Workload
from tests.model.faults import Fault, Hand, Restored
from tests.model.laws import EVERYTHING, Kind
from tests.model.world import World


class NamedFault(StrEnum):
    """What no guard can keep out."""

    NONE = "none"
    LIE = "quiescence lies: an observer is told that no session is left, and one is"
    HAND = "a row is altered by hand, with the triggers disabled"
    RESTORED = "the ledger is restored from a backup, and nobody notices"


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One search. ``what`` tells in words who takes part."""

    name: str
    what: str
    cast: Cast
    liberties: Liberties = field(default_factory=Liberties)
    fault: NamedFault = NamedFault.NONE
    kinds: frozenset[Kind] = EVERYTHING

    def world(self) -> World:
        """Return a world in which nothing was remembered yet."""
        return World(
            self.cast,
            self.liberties,
            self.kinds,
            self._fault(),
            settled=self.fault is NamedFault.RESTORED,
        )

    def _fault(self) -> Fault | None:
        match self.fault:
            case NamedFault.HAND:
                return Hand(self.cast)
            case NamedFault.RESTORED:
                return Restored()
            case NamedFault.NONE | NamedFault.LIE:
                return None


LOAD = Workload("load", ("flights",))
REPORT = Workload("report", ("delays",), ("flights",))
PUBLISH = Workload("publish", ("flights",), work=Work.EXCHANGE)
MODELS = Workload("models", ("flights",), work=Work.DBT)
BOTH = Workload("models", ("flights",), work=Work.DBT, services=(SERVICE, OTHER_SERVICE))

A = Deployment("A", (LOAD,))
B = Deployment("B", (LOAD,), predecessors=("A",))
A_OR_B = (Deployment("A", (LOAD,), predecessors=("", "B")), Deployment("B", (LOAD,), predecessors=("", "A")))
C = Deployment("C", (LOAD,), predecessors=("", "A", "B"))
WIDER = Deployment("B", (LOAD, REPORT), predecessors=("A",))
REPORTING = Deployment("A", (LOAD, REPORT))
PUBLISHING, NEXT_PUBLISHING = Deployment("A", (PUBLISH,)), Deployment("B", (PUBLISH,), predecessors=("A",))
MODELLING = Deployment("A", (MODELS,))
TWO_SERVICES = Deployment("A", (BOTH,))
OTHER_ENVIRONMENT = Deployment("Z", (LOAD,), environment="test")
OTHER_SPELLING = Deployment("Z", (Workload("load", ("Flights",)),), environment="test")

A1, A2, B1 = Try("a1", A, LOAD), Try("a2", A, LOAD, number=2), Try("b1", B, LOAD, run="tuesday")
A3 = Try("a3", A, LOAD, run="tuesday")
P1, P2 = Try("a1", PUBLISHING, PUBLISH), Try("a2", PUBLISHING, PUBLISH, number=2)
Q1 = Try("b1", NEXT_PUBLISHING, PUBLISH, run="tuesday")
M1, M2 = Try("a1", MODELLING, MODELS), Try("a2", MODELLING, MODELS, number=2)
L1, L2, R1 = Try("a1", REPORTING, LOAD), Try("a2", REPORTING, LOAD, number=2), Try("r1", REPORTING, REPORT)

SMALL = (
    Scenario(name="promotions", what="A, then B over it", cast=Cast(deployments=(A, B))),
    Scenario(
        name="transfer",
        what="one SQL transfer of A, whose target may not answer",
        cast=Cast(deployments=(A,), tries=(A1,)),
        liberties=Liberties(unreadable=True),
    ),
    Scenario(
        name="exchange",
        what="one ClickHouse transfer of A, ended by an exchange",
        cast=Cast(deployments=(PUBLISHING,), tries=(P1,)),
    ),
    Scenario(
        name="dbt",
        what="one dbt run of A, settled by operators too",
        cast=Cast(deployments=(MODELLING,), tries=(M1,)),
        liberties=Liberties(judging=True),
    ),
    Scenario(
        name="stale cache",
        what="a task whose machine has another pack than A's",
        cast=Cast(deployments=(A,), tries=(Try("a1", A, LOAD, pack=OTHER_PACK),)),
    ),
    Scenario(
        name="one run",
        what="A, then B over it, and two tries of one run, one of each",
        cast=Cast(deployments=(A, B), tries=(A1, Try("b1", B, LOAD, number=2))),
    ),
    Scenario(
        name="two promoters",
        what="A and B, each over nobody or over the other, on two caches",
        cast=Cast(deployments=A_OR_B, caches=2),
    ),
    Scenario(
        name="two environments",
        what="A, and a deployment of another environment that writes the same table",
        cast=Cast(deployments=(A, OTHER_ENVIRONMENT)),
    ),
    Scenario(
        name="two spellings",
        what="A, and a deployment of another environment that spells the same table differently",
        cast=Cast(deployments=(A, OTHER_SPELLING)),
        liberties=Liberties(stale=True),
    ),
    Scenario(
        name="two tries",
        what="two tries of one SQL transfer of A, whose target may not answer",
        cast=Cast(deployments=(A,), tries=(A1, A2)),
        liberties=Liberties(unreadable=True, redelivery=True),
    ),
    Scenario(
        name="reader",
        what="an SQL transfer of A, and another workload of A that reads its table",
        cast=Cast(deployments=(REPORTING,), tries=(L1, R1)),
    ),
    Scenario(
        name="two services",
        what="one dbt run of A that writes on two services",
        cast=Cast(deployments=(TWO_SERVICES,), tries=(Try("a1", TWO_SERVICES, BOTH),)),
    ),
)
"""Small enough to be searched for each dropped guard."""

LARGE = (
    Scenario(
        name="handover",
        what="A, then B over it; two tries of A's SQL transfer, one of B's; targets that may not answer",
        cast=Cast(deployments=(A, B), tries=(A1, A2, B1)),
        liberties=Liberties(unreadable=True),
    ),
    Scenario(
        name="handover by exchange",
        what="A, then B over it; two tries of A's ClickHouse transfer, one of B's",
        cast=Cast(deployments=(PUBLISHING, NEXT_PUBLISHING), tries=(P1, P2, Q1)),
    ),
    Scenario(
        name="reader and retry",
        what="two tries of A's SQL transfer, and another workload of A that reads its table",
        cast=Cast(deployments=(REPORTING,), tries=(L1, L2, R1)),
    ),
    Scenario(
        name="exchange, all liberties",
        what="two tries of A's ClickHouse transfer, targets that may not answer, operators that judge, redeliveries",
        cast=Cast(deployments=(PUBLISHING,), tries=(P1, P2)),
        liberties=Liberties(judging=True, unreadable=True, redelivery=True),
    ),
    Scenario(
        name="transfers, all liberties",
        what="two tries of A's SQL transfer, targets that may not answer, operators that judge, redeliveries",
        cast=Cast(deployments=(A,), tries=(A1, A2)),
        liberties=Liberties(judging=True, unreadable=True, redelivery=True),
    ),
    Scenario(
        name="dbt, all liberties",
        what="two tries of A's dbt run, operators that judge, redeliveries",
        cast=Cast(deployments=(MODELLING,), tries=(M1, M2)),
        liberties=Liberties(judging=True, unreadable=True, redelivery=True),
    ),
    Scenario(
        name="three promoters",
        what="A, B and C, each over nobody or over others, on two caches, and one SQL transfer of A",
        cast=Cast(deployments=(*A_OR_B, C), tries=(Try("a1", A_OR_B[0], LOAD),), caches=2),
    ),
    Scenario(
        name="wider successor",
        what="A, then B over it, which writes one table more; a transfer of A, one of B, and a reader of B",
        cast=Cast(
            deployments=(A, WIDER),
            tries=(A1, Try("b1", WIDER, LOAD, run="tuesday"), Try("r1", WIDER, REPORT, run="tuesday")),
        ),
    ),
)
"""What is searched whole, with every guard in place."""

DEEP = (
    Scenario(
        name="handover, all liberties",
        what="A, then B over it; two tries of A's SQL transfer, one of B's, operators that judge, redeliveries",
        cast=Cast(deployments=(A, B), tries=(A1, A2, B1)),
        liberties=Liberties(judging=True, unreadable=True, redelivery=True),
    ),
)
"""Too large for every day: `python -m tests.model.figures --deep`."""

_BY_NAME = {one.name: one for one in SMALL}
STEPS_ALONE = frozenset({Kind.STEP})


def _with_fault(name: str, fault: NamedFault, kinds: frozenset[Kind]) -> Scenario:
    one = _BY_NAME[name]
    return Scenario(
        name=f"{name}, {fault.name.lower()}",
        what=one.what,
        cast=one.cast,
        liberties=Liberties(
            judging=one.liberties.judging,
            unreadable=one.liberties.unreadable,
            lying=fault is NamedFault.LIE,
        ),
        fault=fault,
        kinds=kinds,
    )


FAULTY = (
    *(_with_fault(name, NamedFault.HAND, STEPS_ALONE) for name in ("transfer", "exchange", "dbt", "two tries")),
    *(_with_fault(name, NamedFault.RESTORED, STEPS_ALONE) for name in ("transfer", "exchange", "two services")),
    *(_with_fault(name, NamedFault.LIE, EVERYTHING - {Kind.POWER}) for name in ("transfer", "two tries")),
)
"""Under a named fault. What the fault breaks by itself is not looked at: of a ledger that was altered or restored, only
what each transaction then does; of an observer that lies, all but sessions after CLOSED, and still what is told of the
target is true."""
