"""The try of the gate, from the outside."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from dpone_provider.application.installation.self_test import REFUSED_BY_TRIGGER, GateHolds, self_test
from dpone_provider.domain.outcomes import Failed, Refused, StateChange, Unknown, fail, unknown

LOST = unknown("unreadable", "the instance", found="no answer", allowed="an answer", next_command="try again")
KEPT_OUT = fail("login_refused", "login x", found="error 17892", allowed="a logon", next_command="022_break_glass.sql")


@dataclass
class Trial:
    """An instance with a gate: what stands in its way, and how logons end now."""

    problems: tuple[str, ...] | Unknown = ()
    ordinary: Failed | Unknown | None = None
    tagged: int | Unknown | None = REFUSED_BY_TRIGGER
    tried: list[str] = field(default_factory=list)

    def hindrances(self) -> tuple[str, ...] | Unknown:
        """Say what stands in its way."""
        return self.problems

    def ordinary_logon(self) -> Failed | Unknown | None:
        """Log in as anybody."""
        self.tried.append("ordinary")
        return self.ordinary

    def tagged_logon(self) -> int | Unknown | None:
        """Log in as one of ours."""
        self.tried.append("tagged")
        return self.tagged


def test_a_gate_that_holds() -> None:
    """The ordinary login first: if that is kept out, nobody waits for the rest."""
    trial = Trial()
    assert self_test(trial, "the instance") == GateHolds()
    assert trial.tried == ["ordinary", "tagged"]


@pytest.mark.parametrize(
    ("trial", "reason", "tried"),
    [
        (Trial(problems=("the LOGON trigger dpone_gate is disabled",)), "gate_not_guarding", []),
        (Trial(ordinary=KEPT_OUT), "login_refused", ["ordinary"]),
        (Trial(tagged=None), "gate_let_a_login_in", ["ordinary", "tagged"]),
        (Trial(tagged=18456), "gate_refused_otherwise", ["ordinary", "tagged"]),
    ],
)
def test_what_goes_wrong_is_named(trial: Trial, reason: str, tried: list[str]) -> None:
    """With the way out."""
    outcome = self_test(trial, "the instance")
    assert isinstance(outcome, Refused | Failed)
    assert outcome.problem.reason == reason
    assert trial.tried == tried


@pytest.mark.parametrize(
    ("trial", "change"),
    [
        (Trial(problems=LOST), StateChange.NONE),
        (Trial(ordinary=LOST), StateChange.NONE),
        (Trial(tagged=LOST), StateChange.MAYBE),
    ],
)
def test_no_answer_is_unknown(trial: Trial, change: StateChange) -> None:
    """Nothing is concluded from it; before the test login is made, nothing can have changed."""
    assert self_test(trial, "the instance") == replace(LOST, change=change)
