"""What every `TablePublisher` keeps, with the worker's side that belongs to it.

An engine subclasses `PublisherSuite` and gives the fixture ``stage``: whole refreshes and single steps, whoever does
what on that engine.
"""

from __future__ import annotations

from typing import Protocol

import pytest

from dpone_provider.application.ports.tables import NotPublished, Published

Row = tuple[int, str | None]


class Attempted(Protocol):
    """One attempt at refreshing the target, in steps; each is asserted to succeed."""

    def bind(self) -> None:
        """Bind, and create what is staged where the controller does."""

    def stage(self, *rows: Row) -> None:
        """Fill the staged table."""

    def dispatch(self) -> None:
        """Send the one mutation."""

    def observe(self) -> Published | NotPublished:
        """Discard what is staged, look at the target, and end the attempt."""


class PublisherStage(Protocol):
    """One target with columns ``id`` (int64) and ``name`` (string or NULL), absent at first."""

    def attempt(self) -> Attempted:
        """Begin the next attempt; its login can write until the attempt ends."""

    def rows(self) -> list[Row]:
        """Return what a reader of the target sees now, by id."""

    def target_identity(self) -> str:
        """Return what tells the target's object from another of the same name."""

    def staged_names(self) -> list[str]:
        """Return every staging object of the slot that stands."""


class PublisherSuite:
    """The port's contract."""

    @pytest.fixture
    def stage(self) -> PublisherStage:
        """The engine's own."""
        raise NotImplementedError

    def publish(self, stage: PublisherStage, *rows: Row) -> Published | NotPublished:
        """Take every step."""
        attempt = stage.attempt()
        attempt.bind()
        attempt.stage(*rows)
        attempt.dispatch()
        return attempt.observe()

    def test_a_first_load(self, stage: PublisherStage) -> None:
        shown = self.publish(stage, (1, "a"), (2, None), (2, None))
        assert isinstance(shown, Published)
        assert stage.rows() == [(1, "a"), (2, None), (2, None)]

    def test_a_refresh_makes_deleted_rows_disappear(self, stage: PublisherStage) -> None:
        self.publish(stage, (1, "a"), (2, "b"))
        assert isinstance(self.publish(stage, (2, "c"), (3, "")), Published)
        assert stage.rows() == [(2, "c"), (3, "")]

    def test_an_empty_source_empties_the_target(self, stage: PublisherStage) -> None:
        self.publish(stage, (1, "a"))
        assert isinstance(self.publish(stage), Published)
        assert stage.rows() == []

    def test_nothing_is_visible_before_dispatch(self, stage: PublisherStage) -> None:
        self.publish(stage, (1, "a"))
        attempt = stage.attempt()
        attempt.bind()
        attempt.stage((9, "z"))
        assert stage.rows() == [(1, "a")]
        assert isinstance(attempt.observe(), NotPublished)
        assert stage.rows() == [(1, "a")]

    def test_an_attempt_that_was_bound_only_is_not_published(self, stage: PublisherStage) -> None:
        attempt = stage.attempt()
        attempt.bind()
        assert isinstance(attempt.observe(), NotPublished)

    def test_nothing_staged_is_left(self, stage: PublisherStage) -> None:
        self.publish(stage, (1, "a"))
        assert stage.staged_names() == []
        attempt = stage.attempt()
        attempt.bind()
        attempt.stage((2, "b"))
        assert len(stage.staged_names()) == 1
        attempt.observe()
        assert stage.staged_names() == []

    def test_the_next_attempt_after_one_that_failed(self, stage: PublisherStage) -> None:
        attempt = stage.attempt()
        attempt.bind()
        attempt.stage((1, "a"))
        attempt.observe()
        assert isinstance(self.publish(stage, (2, "b")), Published)
        assert stage.rows() == [(2, "b")]
