"""One enrolled PostgreSQL with an ACTIVE occurrence of many workloads, and the product's own runner over it.

Each workload writes one slot of its own, and all are in one database. What an attempt does is put its id into a table,
as its issued login: who counts the rows counts the executors, whatever the ledger says.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from uuid import uuid4

import psycopg

from dpone_provider import lab
from dpone_provider.adapters.postgres.gate import PostgresGate
from dpone_provider.adapters.postgres.session import session
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.adapters.system.entropy import SystemEntropy
from dpone_provider.application.attempt import AttemptRunner, AttemptTimes, Executed
from dpone_provider.application.evidence import proof_document
from dpone_provider.application.front_door import AttemptRecord, FrontDoor, OutcomeObserver
from dpone_provider.application.ledger import promotion
from dpone_provider.application.ledger.calls import require
from dpone_provider.application.ledger.promotion import ObservedIncarnation
from dpone_provider.application.ledger.sealing import Verdict
from dpone_provider.application.ports.gate import GrantPlan
from dpone_provider.application.ports.ledger import LedgerTransaction, WorkloadRow
from dpone_provider.application.ports.time import Clock, Deadline
from dpone_provider.domain.attempt import Attempt, AttemptState, ProofKind
from dpone_provider.domain.connection import Credential, Endpoint
from dpone_provider.domain.gate import Gate
from dpone_provider.domain.identity import (
    AirflowTry,
    AttemptBinding,
    AttemptId,
    EngineKind,
    Incarnation,
    OccurrenceId,
    Relation,
    Service,
    ServiceId,
    digest_of,
    slot_id,
)
from dpone_provider.domain.occurrence import Occurrence, OccurrenceState
from dpone_provider.domain.outcomes import Failure, fail
from dpone_provider.domain.secret import Secret
from dpone_provider.domain.slot import Slot
from tests.adapters.postgres.enrolled import Enrolled, install
from tests.conformance.postgres_ledger import PostgresLedger

ENVIRONMENT = "prod"
SCHEMA = "stage"
WORKLOADS = 200
REQUEST = b'{"name":"the request"}'
PLAN = GrantPlan(writer_schemas=(SCHEMA,))
TIMES = AttemptTimes(admission=60.0, execution=120.0, closing=60.0)


class NobodyIsDead:
    """Airflow's word: every task instance lives."""

    def alive(self, tried: AirflowTry) -> bool:
        """Tell that it lives."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How any thread or process comes to the estate: plain values, so that they pass between processes."""

    endpoint: Endpoint
    password: str
    service_id: ServiceId

    def ledger(self) -> PostgresLedger:
        """Return a ledger of one process."""
        return PostgresLedger(self.endpoint, self._controller, SystemClock())

    def gate(self) -> PostgresGate:
        """Return a gate of one thread."""
        return PostgresGate(
            endpoint=self.endpoint,
            credential=self._controller,
            service_id=self.service_id,
            control_schema="dpone_control",
            entropy=SystemEntropy(),
        )

    def front_door(self, ledger: PostgresLedger, gate: PostgresGate) -> FrontDoor:
        """Return the front door of one thread."""
        return FrontDoor(ledger=ledger, gates={self.service_id: gate}, clock=SystemClock(), grace=0.2)

    def runner(self, ledger: PostgresLedger, clock: Clock) -> AttemptRunner:
        """Return a runner of one thread."""
        gate = self.gate()
        return AttemptRunner(
            ledger=ledger,
            gates={self.service_id: gate},
            front_door=self.front_door(ledger, gate),
            observer_of=lambda attempt: self.observer(),
            task_instances=NobodyIsDead(),
            clock=clock,
            times=TIMES,
        )

    def observer(self) -> OutcomeObserver:
        """Return who looks at what an attempt has done."""
        return Looking(self)

    def log_in(self, credential: Credential) -> psycopg.Connection:
        """Connect as anybody.

        Raises:
            psycopg.OperationalError: the server lets nobody in with this.
        """
        end = self.endpoint
        return psycopg.connect(
            host=end.host,
            port=end.port,
            dbname=end.database,
            user=credential.user,
            password=credential.password.reveal(),
            sslmode="disable",
            autocommit=True,
        )

    def count(self, attempt_id: AttemptId) -> int:
        """Return how many executors an attempt had."""
        text = "SELECT FROM public.executors WHERE attempt_id = %(attempt)s"
        with session(self.endpoint, self._controller, purpose="count executors", seconds=30) as looking:
            return len(looking.rows(text, {"attempt": attempt_id}))

    @property
    def _controller(self) -> Credential:
        return Credential("dpone_controller", Secret(self.password))


@dataclass(frozen=True, slots=True)
class Looking:
    """Sees who executed: one is success, none is failure."""

    reach: Reach

    def observe(self, record: AttemptRecord, deadline: Deadline) -> Verdict:
        """Count the executors after CLOSED."""
        attempt_id = record.attempt.attempt_id
        return verdict_of(attempt_id, self.reach.count(attempt_id), record.gates)


def verdict_of(attempt_id: AttemptId, executors: int, closed: Sequence[Gate]) -> Verdict:
    """Return what so many executors mean."""
    outcome = AttemptState.SUCCEEDED if executors else AttemptState.FAILED
    names = tuple(sorted(gate.principal.gate_name for gate in closed))
    evidence = proof_document(
        ProofKind.OUTCOME,
        attempt_id,
        {"executors": executors},
        names_gates=names,
        at=SystemClock().utc_now(),
        outcome=outcome,
    )
    return Verdict(outcome=outcome, evidence=evidence, names_gates=names)


@dataclass(slots=True)
class Entering:
    """A workload that enters its attempt's id into a table, as its issued login. ``asked`` counts who saw no winner."""

    reach: Reach
    asked: int = 0
    executed: int = 0

    def require_unchanged(self, deadline: Deadline) -> None:
        """Count: this delivery was told that nobody had been admitted yet."""
        self.asked += 1

    def grants(self, attempt: Attempt) -> Mapping[ServiceId, GrantPlan]:
        """Grant the one schema."""
        return dict.fromkeys(attempt.services, PLAN)

    def begin(self, attempt: Attempt, deadline: Deadline) -> Failure | None:
        """Begin nothing."""

    def execute(self, attempt: Attempt, logins: Mapping[ServiceId, Credential], deadline: Deadline) -> Executed:
        """Enter the id."""
        self.executed += 1
        try:
            with self.reach.log_in(logins[self.reach.service_id]) as connection:
                connection.execute("INSERT INTO public.executors VALUES (%s)", [attempt.attempt_id])
        except psycopg.Error as error:
            return Executed(fail("t", "t", found=str(error), allowed="an entry", next_command="look"), {})
        return Executed(None, {})

    def observer(self, attempt: Attempt, executed: Executed | None) -> OutcomeObserver:
        """Return who counts afterwards."""
        return self.reach.observer()


@dataclass(frozen=True, slots=True, kw_only=True)
class Estate:
    """The database, its occurrence, and new attempts of its workloads."""

    enrolled: Enrolled
    reach: Reach
    occurrence_id: OccurrenceId
    _runs: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def binding(self, workload: int, run: str | None = None) -> AttemptBinding:
        """Return the first try of a workload in a run, by default in a new one."""
        return AttemptBinding(
            occurrence_id=self.occurrence_id,
            constituent="races",
            workload_id=name_of(workload),
            pack_digest=digest_of(b"pack"),
            plan_digest=digest_of(name_of(workload).encode()),
            airflow=AirflowTry(
                dag_id="races",
                run_id=run or f"run {next(self._runs)}",
                task_id=name_of(workload),
                map_index=-1,
                try_number=1,
                task_instance_id=uuid4(),
            ),
        )

    def rows(self, statement: str, *parameters: object) -> list[tuple[object, ...]]:
        """Read as the administrator."""
        with self.enrolled.connected() as connection:
            return connection.execute(statement.encode(), parameters or None).fetchall()


def name_of(workload: int) -> str:
    """Return a workload's name."""
    return f"w{workload:03d}"


@contextmanager
def estate(state: lab.LabState) -> Iterator[Estate]:
    """Install everything in a new database and promote the occurrence, by the protocol's own transactions."""
    with lab.fresh_database(state) as database:
        enrolled = install(database)
        for statement in (
            "CREATE TABLE public.executors (attempt_id text)",
            f"GRANT INSERT ON public.executors TO dpone_writer_{SCHEMA}",
            "GRANT SELECT ON public.executors TO dpone_controller",
            # The log is read back by the invariants; the product only writes it.
            "CREATE INDEX races_event ON dpone_control.event (table_name, seq)",
        ):
            enrolled.execute(statement)
        reach = Reach(
            endpoint=enrolled.endpoint,
            password=enrolled.controller.password.reveal(),
            service_id=enrolled.service_id,
        )
        yield Estate(enrolled=enrolled, reach=reach, occurrence_id=_promoted(reach))


def _promoted(reach: Reach) -> OccurrenceId:
    new = Occurrence(
        occurrence_id=OccurrenceId(str(uuid4())),
        environment=ENVIRONMENT,
        deployment_id=digest_of(b"deployment"),
        release_id=digest_of(b"release"),
        request_digest=digest_of(REQUEST),
        predecessor_id=None,
        state=OccurrenceState.REQUESTED,
    )
    one, ledger = new.occurrence_id, reach.ledger()
    deadline = Deadline.after(SystemClock(), 60)
    require(ledger, "request", partial(_request, reach, new), deadline)
    require(ledger, "prepare", lambda tx: promotion.prepare(tx, one, lambda *_: b'{"name":"receipt"}'), deadline)
    require(ledger, "activate", lambda tx: promotion.activate(tx, one, one), deadline)
    ledger.close()
    return one


def _request(reach: Reach, new: Occurrence, tx: LedgerTransaction) -> promotion.Requested | Failure:
    database = Incarnation(Service(EngineKind.POSTGRES, reach.service_id), "warehouse", (("oid", "1"),))
    slots = [_slot(database, number) for number in range(WORKLOADS)]
    workloads = [_workload(new, reach, number, slots[number]) for number in range(WORKLOADS)]
    observed = ObservedIncarnation(incarnation=database, registered=frozenset(), slots=tuple(slots))
    return promotion.request(tx, new, REQUEST, workloads, [observed])


def _slot(database: Incarnation, number: int) -> Slot:
    relation = Relation(SCHEMA, name_of(number))
    one = slot_id(database.incarnation_id, relation)
    return Slot(slot_id=one, incarnation_id=database.incarnation_id, relation=relation, owner_id=None, epoch=0)


def _workload(new: Occurrence, reach: Reach, number: int, slot: Slot) -> WorkloadRow:
    return WorkloadRow(
        occurrence_id=new.occurrence_id,
        workload_id=name_of(number),
        constituent="races",
        cell="one",
        pack_digest=digest_of(b"pack"),
        plan_digest=digest_of(name_of(number).encode()),
        services=(reach.service_id,),
        writes=(slot.slot_id,),
        reads=(),
    )


def sealed(estate: Estate, attempt_ids: Sequence[str]) -> list[tuple[object, ...]]:
    """Return, of these attempts, how many there are in each state of theirs and of their gates."""
    return estate.rows(
        "SELECT state, gate_state, count(*) FROM dpone_control.attempt LEFT JOIN dpone_control.login_gate"
        " USING (attempt_id) WHERE attempt_id = ANY (%s) GROUP BY 1, 2 ORDER BY 1, 2",
        list(attempt_ids),
    )
