"""The checks themselves: each finds what it is for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.commands import wrong_commands
from tests.docs.dpone_lines import wrong_command
from tests.docs.examples import wrong_examples
from tests.docs.links import broken_links
from tests.docs.names import unknown_names
from tests.docs.pages import DOCS, Page, slug_of
from tests.docs.shell_blocks import simple_commands, typed_lines


class Draft(Page):
    """A page that stands nowhere: its text is given."""

    def __init__(self, text: str) -> None:
        """Take the text of a page that would stand in `docs/`."""
        super().__init__(Path(DOCS / "draft.md"))
        self.__dict__["text"] = text


@pytest.mark.parametrize(
    ("line", "complete", "wrong"),
    [
        ("status", True, None),
        ("lab up|down", False, None),
        ("lab up|away", False, "no command away"),
        ("lab", True, "a command is missing"),
        ("--help", True, None),
        ("attempt reconcile", False, None),
        ("attempt reconcile", True, "attempt_id is missing"),
        ("attempt reconcile ID --as succeeded|failed --because TEXT", True, None),
        ("attempt reconcile ID --as well --because TEXT", True, "judged is one of succeeded, failed"),
        ("attempt show ID too", True, "too many arguments: too"),
        ("occurrence X X", False, None),
        ("airflow cache-sync --plan", False, None),
        ("airflow cache-sync --plan", True, "deployment is missing"),
        ("status --frmat json", True, "No such option '--frmat'"),
    ],
)
def test_a_command_is_held_to_the_parsers(line: str, complete: bool, wrong: str | None) -> None:
    found = wrong_command(line.split(), complete=complete)
    assert found is None if wrong is None else found is not None and wrong in found


def test_a_session_is_taken_apart() -> None:
    text = "```console\n$ dpone status \\\n    --format json\nout 1\n\nout 2\n$ make env | cat\n```\n"
    first, second = typed_lines(Draft(text).blocks[0])
    assert first.line == "dpone status --format json"
    assert first.output == ["out 1", "", "out 2"]
    assert list(simple_commands(second.line)) == [["make", "env"], ["cat"]]


def test_settings_and_redirections_are_no_words_of_a_command() -> None:
    assert list(simple_commands("A=1 dpone status --format json > out.json && cd x")) == [
        ["dpone", "status", "--format", "json"],
        ["cd", "x"],
    ]


@pytest.mark.parametrize(
    "text",
    [
        "```console\n$ dpone sttus\n```",
        "```sh\nmake tst\n```",
        '```sh\nmake test SUITES="lint unti"\n```',
        "```sh\nairflow dags triger x\n```",
        "```sh\nuntold-program\n```",
        "Run `dpone control chek`.",
    ],
)
def test_a_wrong_command_is_found(text: str) -> None:
    assert list(wrong_commands(Draft(text)))


@pytest.mark.parametrize(
    "text",
    [
        "```yaml\nschema: dpone.desired-state.v1\nenvironment: lab\n```",
        "```yaml\nnothing: ours\n```",
        '```json\n{"a": 1, "a": 2}\n```',
        "```python\nfrom dpone_provider.domain.outcomes import Refusal\n```",
    ],
)
def test_a_wrong_example_is_found(text: str) -> None:
    assert list(wrong_examples(Draft(text)))


def test_a_part_of_a_document_is_only_read() -> None:
    assert not list(wrong_examples(Draft("<!-- part -->\n\n```yaml\nid: orders\n```")))


@pytest.mark.parametrize(
    "text",
    ["[x](nowhere.md)", "[x](#none)", "[x](../README.md#none)", "[x](../../outside)", "[x](http://plain.example)"],
)
def test_a_broken_link_is_found(text: str) -> None:
    assert list(broken_links(Draft(f"# Here\n\n{text}\n")))


def test_a_link_to_a_heading_is_followed() -> None:
    assert not list(broken_links(Draft("# The `cache`, again\n\n[x](#the-cache-again)\n")))
    assert slug_of("What it's for: `dpone`?") == "what-its-for-dpone"


@pytest.mark.parametrize(
    "text", ["Set `DPONE_CAHCE_ROOT`.", "See `dpone_provider/nowhere.py`.", "A `dpone.no-such.v1`."]
)
def test_an_unknown_name_is_found(text: str) -> None:
    assert list(unknown_names(Draft(text)))
