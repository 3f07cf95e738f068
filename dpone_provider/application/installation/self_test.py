"""Try the gate from the outside: an ordinary login gets in, a login of ours that is not READY does not.

The steps of an administrator who has just enabled it, in their order; what goes wrong names the way out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from dpone_provider.application.ports.installation import GateTrial
from dpone_provider.domain.outcomes import Failed, Refused, StateChange, Unknown, fail, refuse

REFUSED_BY_TRIGGER: Final = 17892
"""Logon failed due to trigger execution. Source: SQL Server's error list."""
BREAK_GLASS: Final = (
    "have an administrator run sql/mssql/022_break_glass.sql, then look at what differs: dpone control check"
)


@dataclass(frozen=True, slots=True)
class GateHolds:
    """An ordinary login was let in, and one of ours was refused by the trigger."""


def self_test(trial: GateTrial, subject: str) -> GateHolds | Refused | Failed | Unknown:
    """Try the gate of ``subject``, an instance in words. Nothing is left behind."""
    hindrances = trial.hindrances()
    if isinstance(hindrances, Unknown):
        return replace(hindrances, change=StateChange.NONE)
    if hindrances:
        return refuse(
            "gate_not_guarding",
            subject,
            found="; ".join(hindrances),
            allowed="the gate as shipped, enabled",
            next_command="have an administrator run sql/mssql/020_gate.sql and 021_enable_gate.sql",
        )
    ordinary = trial.ordinary_logon()
    if ordinary is not None:
        return replace(ordinary, change=StateChange.NONE)
    number = trial.tagged_logon()
    if isinstance(number, Unknown):
        return number
    if number == REFUSED_BY_TRIGGER:
        return GateHolds()
    return fail(
        "gate_let_a_login_in" if number is None else "gate_refused_otherwise",
        subject,
        found="a login with our tag and no gate row was let in" if number is None else f"error {number}",
        allowed=f"error {REFUSED_BY_TRIGGER}: the logon is refused by the trigger",
        next_command=BREAK_GLASS,
    )
