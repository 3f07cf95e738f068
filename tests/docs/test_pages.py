"""The pages agree with each other and with the code."""

from __future__ import annotations

import pytest

from tests.docs.code_mentions import mentions, named_commands, wrong_mentions
from tests.docs.commands import wrong_commands
from tests.docs.examples import wrong_examples
from tests.docs.generated import stale
from tests.docs.links import broken_links, unreachable_pages
from tests.docs.names import unknown_names
from tests.docs.pages import Page, pages

every_page = pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)


@every_page
def test_links_lead_somewhere(page: Page) -> None:
    assert not list(broken_links(page))


@every_page
def test_commands_are_taken(page: Page) -> None:
    assert not list(wrong_commands(page))


@every_page
def test_examples_are_read(page: Page) -> None:
    assert not list(wrong_examples(page))


@every_page
def test_names_stand_for_something(page: Page) -> None:
    assert not list(unknown_names(page))


def test_every_page_is_linked() -> None:
    assert not list(unreachable_pages(pages()))


def test_generated_parts_are_current() -> None:
    assert not list(stale())


def test_the_code_names_only_commands_that_exist() -> None:
    assert sum(1 for each in mentions() for _ in named_commands(each)) > 100
    assert not list(wrong_mentions())
