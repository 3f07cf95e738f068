"""A plan as a plain dictionary, for the plan file; the file's schema name and digest are the document's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpone_provider.domain.identity import parse_digest
from dpone_provider.domain.schema.diff import Unmanaged
from dpone_provider.domain.schema.errors import InvalidSchemaValue
from dpone_provider.domain.schema.plain import action_from_plain, plain, plain_action, relation_from_plain
from dpone_provider.domain.schema.plan import Plan, StatementOutcome, Step

_KEYS = {"relation", "observed_digest", "steps", "unmanaged"}


def plan_to_plain(plan: Plan) -> dict[str, Any]:
    """Write a plan: relation, the digest that it is bound to, steps with their outcomes, and unmanaged aspects."""
    return {
        "relation": plain(plan.relation),
        "observed_digest": plan.observed_digest,
        "steps": [{"outcome": step.outcome.value, "action": plain_action(step.action)} for step in plan.steps],
        "unmanaged": [plain(each) for each in plan.unmanaged],
    }


def plan_from_plain(value: Mapping[str, Any]) -> Plan:
    """Read a plan back.

    Raises:
        InvalidSchemaValue: anything in it is missing, surplus, of another type, or cannot be built.
    """
    if set(value) != _KEYS:
        raise InvalidSchemaValue(subject="plan", found=str(sorted(value)), allowed=f"exactly the keys {sorted(_KEYS)}")
    try:
        return Plan(
            relation=relation_from_plain(value["relation"]),
            observed_digest=parse_digest(value["observed_digest"]),
            steps=tuple(
                Step(action_from_plain(each["action"]), StatementOutcome(each["outcome"])) for each in value["steps"]
            ),
            unmanaged=tuple(Unmanaged(**each) for each in value["unmanaged"]),
        )
    except InvalidSchemaValue:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidSchemaValue(
            subject="plan", found=str(error), allowed="a plan as plan_to_plain writes it"
        ) from None
