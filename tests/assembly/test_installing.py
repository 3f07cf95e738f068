"""Comparing and trying, put together over the ports."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from dpone_provider.application.installation.shipped import expected
from dpone_provider.application.ports.installation import InstalledObject, Place
from dpone_provider.assembly import installing
from dpone_provider.domain.outcomes import DponeError

WANTED = installing.asked("dpone", "dpone_controller", ["warehouse:stage"])


@dataclass
class Instance:
    """An instance where everything was installed but ``without``; its gate answers a tagged login with ``number``."""

    without: str = ""
    number: int | None = 17892

    def read(self, place: Place) -> tuple[InstalledObject, ...]:
        """Give what stands there."""
        return tuple(one for one in expected(WANTED.names, WANTED.targets)[place] if one.name != self.without)

    def hindrances(self) -> tuple[str, ...]:
        """Nothing stands in its way."""
        return ()

    def ordinary_logon(self) -> None:
        """Let everybody else in."""

    def tagged_logon(self) -> int | None:
        """Answer one of ours."""
        return self.number


def test_what_is_as_shipped_passes() -> None:
    """And a gate that holds."""
    installing.compare(Instance(), WANTED, "here")
    installing.try_gate(Instance(), "here")


def test_each_object_that_is_not_is_named() -> None:
    """In the refusal's own words."""
    with pytest.raises(
        DponeError, match=r"not_as_shipped: here: found database dpone: module dpone_control\.settle is missing"
    ):
        installing.compare(Instance(without="dpone_control.settle"), WANTED, "here")


def test_a_gate_that_lets_everybody_in_is_told() -> None:
    """With the way out."""
    with pytest.raises(DponeError, match=r"gate_let_a_login_in.*022_break_glass"):
        installing.try_gate(Instance(number=None), "here")
