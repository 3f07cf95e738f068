"""What an operator can read of a run: who did what to which row, who waited, what it came to."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from dpone_provider.application.ledger.admission import Admitted, AlreadyAdmitted, EarlierTryLives
from dpone_provider.application.ledger.promotion import Prepared, Requested
from dpone_provider.domain.attempt import Attempt
from dpone_provider.domain.gate import Gate
from dpone_provider.domain.identity import principal_name
from dpone_provider.domain.occurrence import Occurrence
from dpone_provider.domain.outcomes import Busy, Failed, Refused, Unknown
from dpone_provider.domain.publication import Publication
from tests.conformance.ledger_world import (
    ANALYTICS,
    DATABASE,
    ELSEWHERE,
    ENVIRONMENT,
    LOAD,
    MART,
    NAMES,
    RELATIONS,
    WAREHOUSE,
    binding_of,
    occurrence_of,
    slot_of,
    uuid_of,
)
from tests.interleaving.engine import SIDES, Run, Work
from tests.interleaving.scenes import FIRST, READER, SECOND, WRITER
from tests.interleaving.works import Sent

_ID = re.compile(r"[0-9a-f]{64}|[0-9a-f]{12}(?= )|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|dpone_v3_[0-9a-f]{32}")
SHOWN = 3


def names() -> dict[str, str]:
    """Return the name of every id that a run can show."""
    found = {uuid_of(name): name for name in NAMES}
    found |= {slot_of(relation): str(relation) for relation in RELATIONS}
    found |= {WAREHOUSE.service_id: "warehouse", ANALYTICS.service_id: "analytics"}
    found |= {DATABASE.incarnation_id: "the database", ENVIRONMENT: "environment prod", ELSEWHERE: "environment test"}
    attempts = {"the writer": WRITER, "the reader": READER, "the next try": binding_of(FIRST, LOAD, try_number=2)}
    for run, what in (("run 8", "another run's"), ("run 9", "a third run's")):
        for occurrence in (FIRST, SECOND):
            for work in (LOAD, MART):
                whose = occurrence_of("first").occurrence_id == occurrence.occurrence_id
                tail = "" if whose else " under second"
                attempts[f"{what} {work.name}{tail}"] = binding_of(occurrence, work, run=run)
    for name, binding in attempts.items():
        found[binding.attempt_id] = name
        found[binding.attempt_id[:12]] = name
        found[principal_name(binding.attempt_id)] = f"the login of {name}"
    return found


def rendered(run: Run, works: Mapping[str, Work], known: Mapping[str, str]) -> list[str]:
    """Return the lines of one run."""
    sent = {name: list(works[name].sent()) for name in SIDES}
    at = dict.fromkeys(SIDES, 0)
    lines = []
    for line in run.lines:
        indent = "" if line.side == "A" else " " * 34
        if line.text.startswith("goes on"):
            lines.append(f"  {line.side}  {indent}… {line.text}")
            continue
        what = _with_objects(sent[line.side], at[line.side], line.text, known)
        at[line.side] += 1
        lines.append(f"  {line.side}  {indent}{what}{' … waits' if line.waits else ''}")
    return lines + [f"  {name}: {named(told(run.outcomes[name]), known)}" for name in SIDES]


def told(outcome: object) -> str:
    """Return an outcome in words."""
    match outcome:
        case Refused(problem=problem) | Failed(problem=problem) | Unknown(problem=problem):
            return f"{type(outcome).__name__.lower()}, {problem.reason}: found {problem.found}"
        case Busy(problem=problem, holder=holder):
            return f"busy, {problem.reason}: held by {holder}"
        case Admitted(attempt=attempt):
            return f"admitted {attempt.attempt_id}"
        case AlreadyAdmitted(attempt=attempt):
            return f"already admitted, {attempt.state}"
        case EarlierTryLives(attempt=attempt):
            return f"an earlier try lives, {attempt.attempt_id} ({attempt.state})"
        case Requested(occurrence=occurrence, resumed=resumed):
            return f"{'already ' if resumed else ''}requested {occurrence.occurrence_id}"
        case Prepared(occurrence=occurrence, epochs=epochs):
            given = ", ".join(f"{slot} at {epoch}" for slot, epoch in epochs)
            return f"{occurrence.occurrence_id} is {occurrence.state}, generation {occurrence.generation}: {given}"
        case Occurrence():
            return f"{outcome.occurrence_id} is {outcome.state}"
        case Attempt():
            return f"{outcome.attempt_id} is {outcome.state}"
        case Gate():
            return f"its gate is {outcome.state}{', delivered' if outcome.delivered else ''}"
        case Publication():
            return f"its publication is {outcome.state}"
        case None:
            return "done"
        case _:
            return str(outcome)


def named(text: str, known: Mapping[str, str]) -> str:
    """Return ``text`` with every id replaced by the name of what it stands for."""
    return _ID.sub(lambda found: known.get(found[0], found[0][:12]), text)


def _with_objects(sent: Sequence[Sent], position: int, text: str, known: Mapping[str, str]) -> str:
    if position >= len(sent):
        return text
    objects = list(dict.fromkeys(known[value] for value in sent[position].values if value in known))
    shown = ", ".join(objects[:SHOWN]) + (" …" if len(objects) > SHOWN else "")
    head, comma, lock = text.partition(", ")
    return f"{head}{f' ({shown})' if shown else ''}{comma}{lock}"
