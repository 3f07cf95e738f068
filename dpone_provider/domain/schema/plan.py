"""The ordered plan of one table: what would be done, bound to what was observed, and what has become of each step.

    declared, observed ──difference──▶ actions, conflicts ──rules──▶ InSync | Plan | Refusal

A plan runs from the front, one statement per step, and stops at the first that is not applied; other tables go on. A
step whose answer was lost is *unknown* until the table has been read again and ``decided`` says what is seen.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import StrEnum, unique
from functools import reduce
from typing import TypeAlias, assert_never

from dpone_provider.domain.identity import Digest, Relation, digest_of
from dpone_provider.domain.outcomes import Problem, Refused
from dpone_provider.domain.schema.actions import Action, CreateTable, apply
from dpone_provider.domain.schema.diff import Readable, Unmanaged, difference
from dpone_provider.domain.schema.plain import plain_observed
from dpone_provider.domain.schema.rules import EngineFacts, Rule, RuleFailure, failures
from dpone_provider.domain.schema.tables import Absent, Observed, Occupied, Present, Table, Unreadable


@unique
class StatementOutcome(StrEnum):
    """What became of one action's statement."""

    NOT_PLANNED = "not planned"
    PLANNED = "planned"
    APPLIED = "applied"
    NOT_APPLIED = "not applied"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Step:
    """One action and what became of it."""

    action: Action
    outcome: StatementOutcome = StatementOutcome.PLANNED


@dataclass(frozen=True, slots=True)
class InSync:
    """The table is as declared; what stands there undeclared is told."""

    relation: Relation
    unmanaged: tuple[Unmanaged, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """A definition that may not be brought about; never without a failure.

    ``withheld`` are the actions that the rules held back.

    Raises:
        ValueError: no failure was given.
    """

    relation: Relation
    failures: tuple[RuleFailure, ...]
    withheld: tuple[Action, ...] = ()

    def __post_init__(self) -> None:
        """A refusal without a reason does not exist."""
        if not self.failures:
            raise ValueError("a refusal needs at least one failure")

    @property
    def steps(self) -> tuple[Step, ...]:
        """The withheld actions, none of them planned."""
        return tuple(Step(action, StatementOutcome.NOT_PLANNED) for action in self.withheld)

    def refused(self) -> Refused:
        """The same as an outcome: the first failure's reason, and all failures told in one paragraph."""
        problems = [failure.problem for failure in self.failures]
        return Refused(
            Problem(
                reason=problems[0].reason,
                subject=f"table {self.relation}, {problems[0].subject}",
                found=problems[0].found,
                allowed=problems[0].allowed,
                next_command="; also ".join([problems[0].next_command, *map(str, problems[1:])]),
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be done to one table.

    Attributes:
        observed_digest: of the observed state that the plan was made from; it is void for any other.
        steps: at least one, in the order in which they run.

    Raises:
        ValueError: no step, or outcomes that no execution from the front could have left.
    """

    relation: Relation
    observed_digest: Digest
    steps: tuple[Step, ...]
    unmanaged: tuple[Unmanaged, ...] = ()

    def __post_init__(self) -> None:
        """Check that the outcomes are applied ones, at most one that stopped it, and planned ones."""
        outcomes = [step.outcome for step in self.steps]
        done = len([each for each in outcomes if each is StatementOutcome.APPLIED])
        rest = outcomes[done:]
        stopped = (StatementOutcome.PLANNED, StatementOutcome.NOT_APPLIED, StatementOutcome.UNKNOWN)
        in_order = rest[:1] == [] or (rest[0] in stopped and all(each is StatementOutcome.PLANNED for each in rest[1:]))
        if not outcomes or not in_order:
            raise ValueError(f"not a plan of {self.relation}: outcomes {[str(each) for each in outcomes]}")

    @property
    def actions(self) -> tuple[Action, ...]:
        """Of every step."""
        return tuple(step.action for step in self.steps)

    @property
    def is_applied(self) -> bool:
        """Whether every step is."""
        return self.steps[-1].outcome is StatementOutcome.APPLIED

    @property
    def current(self) -> Step | None:
        """The first step that is not applied: to be run if planned, else what stopped the plan."""
        return next((step for step in self.steps if step.outcome is not StatementOutcome.APPLIED), None)

    def recorded(self, outcome: StatementOutcome) -> Plan:
        """The plan after its current step came to ``outcome``.

        Raises:
            ValueError: there is no planned or unknown step to record it for, or it is no outcome of a statement.
        """
        current = self.current
        open_outcomes = (StatementOutcome.PLANNED, StatementOutcome.UNKNOWN)
        if (
            current is None
            or current.outcome not in open_outcomes
            or outcome
            in (
                StatementOutcome.NOT_PLANNED,
                StatementOutcome.PLANNED,
            )
        ):
            found = "no step" if current is None else f"a step that is {current.outcome}"
            raise ValueError(f"plan of {self.relation}: cannot record {outcome!s} for {found}")
        at = self.steps.index(current)
        return replace(self, steps=(*self.steps[:at], replace(current, outcome=outcome), *self.steps[at + 1 :]))


TablePlan: TypeAlias = InSync | Plan | Refusal
"""What a declaration comes to."""


def plan_table(
    declared: Table,
    observed: Observed,
    *,
    drop_consents: frozenset[str] = frozenset(),
    facts: EngineFacts | None = None,
) -> TablePlan:
    """Decide what brings a table to its declaration.

    Args:
        drop_consents: columns that may be dropped with their values, by exact name.
        facts: limits of the engine and the database, where the adapter gives them.

    Raises:
        InvalidSchemaValue: declared and observed are not about the same name.
    """
    if isinstance(observed, Unreadable):
        return _unreadable(observed)
    found = difference(declared, observed)
    present = observed if isinstance(observed, Present) else None
    broken = failures(declared, present, found, drop_consents, facts)
    if broken:
        return Refusal(declared.relation, broken, found.actions)
    if not found.actions:
        return InSync(declared.relation, found.unmanaged)
    return Plan(
        relation=declared.relation,
        observed_digest=observed_digest(observed),
        steps=tuple(map(Step, found.actions)),
        unmanaged=found.unmanaged,
    )


def refresh_definition(
    declared: Table,
    observed: Observed,
    *,
    drop_consents: frozenset[str] = frozenset(),
    facts: EngineFacts | None = None,
) -> CreateTable | TablePlan:
    """What a full refresh has to do to the target's definition before it replaces the content.

    The rules are those of ``plan_table``: a refresh can never change a contract that a plan could not. A target that
    is absent is the one action that creates it, as the caller may create it elsewhere and move it in.

    Raises:
        InvalidSchemaValue: declared and observed are not about the same name.
    """
    planned = plan_table(declared, observed, drop_consents=drop_consents, facts=facts)
    if isinstance(planned, Plan) and isinstance(planned.actions[0], CreateTable):
        return planned.actions[0]
    return planned


def _unreadable(observed: Unreadable) -> Refusal:
    problem = observed.failure.problem
    failure = RuleFailure(
        rule=Rule.UNREADABLE,
        subject=f"{problem.reason}: {problem.subject}",
        observed=problem.found,
        declared=problem.allowed,
        way_out=problem.next_command,
    )
    return Refusal(observed.relation, (failure,))


def observed_digest(observed: Readable) -> Digest:
    """The digest that binds a plan to what was observed, over the canonical JSON of its plain form."""
    plain = plain_observed(observed)
    return digest_of(json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode())


def moved(plan: Plan, observed: Observed) -> Refusal | None:
    """Refuse a plan whose table is no longer what it was made from; None if it is."""
    if isinstance(observed, Unreadable):
        return _unreadable(observed)
    now = observed_digest(observed)
    if now == plan.observed_digest:
        return None
    failure = RuleFailure(
        rule=Rule.MOVED,
        subject="observed state",
        observed=now,
        declared=f"planned from {plan.observed_digest}",
        way_out="plan again and review the new plan",
    )
    return Refusal(plan.relation, (failure,))


def decided(plan: Plan, before: Table | None, seen: Observed) -> Plan:
    """Decide an unknown step by what is seen after it.

    Args:
        plan: its current step is unknown.
        before: the table that the plan was made from, None if it was absent.
        seen: the table read again, after the statement can no longer be running.

    Returns:
        The plan with that step applied or not applied; unchanged if what is seen is neither.

    Raises:
        ValueError: the current step is not unknown.
    """
    current = plan.current
    if current is None or current.outcome is not StatementOutcome.UNKNOWN:
        raise ValueError(f"plan of {plan.relation}: there is no unknown step to decide")
    done = [step.action for step in plan.steps[: plan.steps.index(current)]]
    untouched = reduce(apply, done, before)
    match seen:
        case Unreadable() | Occupied():
            return plan
        case Absent():
            return plan.recorded(StatementOutcome.NOT_APPLIED) if untouched is None else plan
        case Present(table=table):
            if _looks_like(apply(untouched, current.action), table):
                return plan.recorded(StatementOutcome.APPLIED)
            if untouched is not None and _looks_like(untouched, table):
                return plan.recorded(StatementOutcome.NOT_APPLIED)
            return plan
        case _:
            assert_never(seen)


def _looks_like(expected: Table, seen: Table) -> bool:
    """Whether an observed table is the expected one, as far as its engine has the aspects."""
    comments = {each.name: each.comment for each in seen.columns}
    columns = tuple(
        replace(each, comment=None) if comments.get(each.name, "") is None else each for each in expected.columns
    )
    return _unordered(seen) == replace(
        _unordered(expected),
        columns=columns,
        primary_key=None if seen.primary_key is None else expected.primary_key,
        comment=None if seen.comment is None else expected.comment,
        storage=None if seen.storage is None else expected.storage,
    )


def _unordered(table: Table) -> Table:
    """With indexes and foreign keys by name: no engine keeps an order of them."""
    return replace(
        table,
        indexes=tuple(sorted(table.indexes, key=lambda each: each.name)),
        foreign_keys=tuple(sorted(table.foreign_keys, key=lambda each: each.name)),
    )
