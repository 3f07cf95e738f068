"""Lists of key expressions."""

from __future__ import annotations

import pytest

from dpone_provider.adapters.clickhouse.expressions import split_expressions


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ()),
        ("a", ("a",)),
        ("a, b", ("a", "b")),
        ("f(a, b), [c, d], ')'", ("f(a, b)", "[c, d]", "')'")),
        ("`a, b`, 'it\\'s, x'", ("`a, b`", "'it\\'s, x'")),
        ("(a)", ("a",)),
        ("((a + 1))", ("a + 1",)),
        ("(a + 1) * (b)", ("(a + 1) * (b)",)),
        ("(a, b)", ("(a, b)",)),
    ],
)
def test_outer_commas_split(text: str, parts: tuple[str, ...]) -> None:
    assert split_expressions(text) == parts


@pytest.mark.parametrize("text", ["a)", "(a", "a), (b", "'a", "[a"])
def test_an_unbalanced_text_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="bracket"):
        split_expressions(text)
