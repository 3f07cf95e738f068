"""A secret cannot be printed, compared or written down by accident."""

from __future__ import annotations

import copy
import json
import logging
import pickle
import traceback

import pytest

from dpone_provider.domain.connection import Credential
from dpone_provider.domain.secret import Secret

CANARY = "canary-5f1c"


def test_only_reveal_gives_the_text() -> None:
    """For the one call that sends it."""
    assert Secret(CANARY).reveal() == CANARY


@pytest.mark.parametrize(
    "shown",
    [
        repr(Secret(CANARY)),
        str(Secret(CANARY)),
        f"{Secret(CANARY)}",
        f"{Secret(CANARY):>40}",
        f"{Secret(CANARY)!r}",
        "%s" % Secret(CANARY),  # noqa: UP031
        str([Secret(CANARY)]),
        repr(Credential("controller", Secret(CANARY))),
        logging.LogRecord("x", 10, "x", 1, "%s", (Secret(CANARY),), None).getMessage(),
    ],
)
def test_every_way_of_printing_masks_it(shown: str) -> None:
    """Alone, in a container, in a record, in a log."""
    assert CANARY not in shown
    assert "***" in shown


def test_a_traceback_does_not_show_it() -> None:
    """Not even one with the values of local variables."""
    held = Secret(CANARY)
    try:
        raise ValueError(held)
    except ValueError as error:
        told = traceback.TracebackException.from_exception(error, capture_locals=True)
    assert CANARY not in "".join(told.format())


@pytest.mark.parametrize("way", [pickle.dumps, copy.copy, copy.deepcopy, json.dumps])
def test_it_cannot_be_serialised(way: object) -> None:
    """Nor copied by the same means."""
    with pytest.raises(TypeError):
        way(Secret(CANARY))  # type: ignore[operator]


def test_it_has_no_dictionary_to_look_into() -> None:
    """`vars` finds nothing."""
    with pytest.raises(TypeError):
        vars(Secret(CANARY))


def test_secrets_are_not_compared() -> None:
    """Equality is identity."""
    one = Secret(CANARY)
    assert one != Secret(CANARY)
    assert one == one


def test_an_empty_secret_cannot_be_built() -> None:
    """It would be a fault upstream."""
    with pytest.raises(ValueError, match="empty"):
        Secret("")
