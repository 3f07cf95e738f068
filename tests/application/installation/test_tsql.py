"""T-SQL taken apart: tokens, batches, and digests that layout does not change."""

from __future__ import annotations

import pytest

from dpone_provider.application.installation.tsql import Kind, Unreadable, batches, definition_digest, tokens


def texts(sql: str) -> list[str]:
    """Return the tokens' texts."""
    return [token.text for token in tokens(sql)]


def test_tokens_of_every_kind() -> None:
    """Names, quoted names, variables, constants, numbers, marks; no comments."""
    found = tokens("SELECT [a]]b], \"c\", @v, @@ROWCOUNT, N'it''s', 0x1F, 1.5 -- no\n/* no /* nested */ no */ <> #t;")
    assert [(token.kind, token.text) for token in found] == [
        (Kind.WORD, "SELECT"),
        (Kind.QUOTED, "[a]]b]"),
        (Kind.MARK, ","),
        (Kind.QUOTED, '"c"'),
        (Kind.MARK, ","),
        (Kind.VARIABLE, "@v"),
        (Kind.MARK, ","),
        (Kind.VARIABLE, "@@ROWCOUNT"),
        (Kind.MARK, ","),
        (Kind.STRING, "N'it''s'"),
        (Kind.MARK, ","),
        (Kind.NUMBER, "0x1F"),
        (Kind.MARK, ","),
        (Kind.NUMBER, "1.5"),
        (Kind.MARK, "<>"),
        (Kind.WORD, "#t"),
        (Kind.MARK, ";"),
    ]


def test_what_a_token_stands_for() -> None:
    """Names without their quotation, values without theirs, keywords in capitals."""
    word, quoted, string = tokens("select [a]]b] N'it''s'")
    assert (word.word, word.name, word.value) == ("SELECT", "select", "")
    assert (quoted.word, quoted.name, quoted.value) == ("", "a]b", "")
    assert (string.word, string.name, string.value) == ("", "", "it's")


def test_lines_count_from_the_scripts_beginning() -> None:
    """Also behind a comment of several lines."""
    script = "SELECT 1;\nGO\n/* one\ntwo */\nSELECT 2;\n"
    assert [batch.line for batch in batches(script)] == [1, 2]
    assert [token.line for token in batches(script)[1].tokens] == [5, 5, 5]


def test_go_separates_batches_and_empty_ones_are_left_out() -> None:
    """In any case of letters, alone on its line."""
    assert [batch.text.strip() for batch in batches("a\ngo\n\nGO -- said\nb GO c\nGo\n")] == ["a", "b GO c"]


def test_a_comment_without_end_is_unreadable() -> None:
    """And named."""
    with pytest.raises(Unreadable, match="no end"):
        tokens("SELECT 1 /* and so on")


@pytest.mark.parametrize(
    "text",
    [
        "CREATE OR ALTER PROCEDURE a.b AS SELECT 1;",
        "-- said before\ncreate  or\talter PROCEDURE a.b AS SELECT 1;\r\n",
        "ALTER PROCEDURE a.b AS\n    SELECT 1 /* said */;",
        "CREATE   PROCEDURE a.b AS SELECT 1",
    ],
)
def test_layout_comments_and_the_verb_do_not_count(text: str) -> None:
    """As the server may give it back."""
    assert definition_digest(text) == definition_digest("CREATE PROCEDURE a.b AS SELECT 1")


@pytest.mark.parametrize("text", ["CREATE PROCEDURE a.b AS SELECT 2", "CREATE PROCEDURE a.b AS SELECT '1'", "SELECT 1"])
def test_anything_else_does(text: str) -> None:
    """One token is enough."""
    assert definition_digest(text) != definition_digest("CREATE PROCEDURE a.b AS SELECT 1")


def test_tokens_do_not_run_into_each_other() -> None:
    """Two words are not one."""
    assert texts("a b") == ["a", "b"]
    assert definition_digest("a b") != definition_digest("ab")
