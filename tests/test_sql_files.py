"""The loader of named statements, and where the installation scripts are found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpone_provider import sql_files
from dpone_provider.sql_files import SqlFileError

TWO = """\
-- What this file is about.

-- name: first
-- Why the first exists,
-- in two lines.
SELECT 1 -- a trailing remark stays
WHERE 'a;b' = %(x)s;

--name:second
-- Why the second exists.

-- a remark inside the statement stays
SELECT 2
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "queries.sql"
    path.write_text(text, encoding="utf-8")
    return path


def test_statements_keep_their_text_and_order(tmp_path: Path) -> None:
    file = sql_files.load(write(tmp_path, TWO))
    assert list(file) == ["first", "second"]
    assert len(file) == 2
    assert "first" in file
    assert "third" not in file
    assert file["first"] == "SELECT 1 -- a trailing remark stays\nWHERE 'a;b' = %(x)s;"
    assert file["second"] == "-- a remark inside the statement stays\nSELECT 2"
    assert file.statements["first"].explanation == "Why the first exists,\nin two lines."


def test_a_file_is_read_once(tmp_path: Path) -> None:
    path = write(tmp_path, TWO)
    assert sql_files.load(path) is sql_files.load(path)


def test_an_unknown_name_lists_the_known_ones(tmp_path: Path) -> None:
    file = sql_files.load(write(tmp_path, TWO))
    with pytest.raises(SqlFileError, match=r"queries\.sql: found no statement named 'third'; allowed: first, second"):
        _ = file["third"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"f: found no line '-- name: …'"),
        ("-- only a comment\n", r"f: found no line"),
        ("SELECT 1\n-- name: a\n-- why\nSELECT 1", r"f:1: found SQL before the first"),
        ("-- name: a\n-- why\nSELECT 1\n-- name: a\n-- why\nSELECT 2", r"f:4: found a second statement named 'a'"),
        ("-- name: A\n-- why\nSELECT 1", r"f:1: found the name 'A'; allowed: lower snake case"),
        ("-- name:\n-- why\nSELECT 1", r"f:1: found the name ''"),
        ("-- name: a b\n-- why\nSELECT 1", r"f:1: found the name 'a b'"),
        ("-- name: a\nSELECT 1", r"f:1: found 'a' without a comment"),
        ("-- name: a\n--\nSELECT 1", r"f:1: found 'a' without a comment"),
        ("\n-- name: a\n-- why\n", r"f:2: found 'a' without a statement"),
        ("-- name: a\n-- why\n\n  -- only a remark\n", r"f:1: found 'a' without a statement"),
    ],
)
def test_a_wrong_file_is_refused(text: str, message: str) -> None:
    with pytest.raises(SqlFileError, match=message):
        sql_files.parse(text, where="f")


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SqlFileError, match="a readable file in UTF-8"):
        sql_files.load(tmp_path / "missing.sql")
    latin = tmp_path / "latin.sql"
    latin.write_bytes("-- name: a\n-- für\nSELECT 1".encode("latin-1"))
    with pytest.raises(SqlFileError, match="a readable file in UTF-8"):
        sql_files.load(latin)


names = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
bodies = st.lists(st.sampled_from(["SELECT 1", "  FROM t", "", "WHERE a = :a;"]), min_size=1, max_size=4).filter(any)


@given(st.dictionaries(names, bodies, min_size=1, max_size=5))
def test_what_is_written_is_read_back(written: dict[str, list[str]]) -> None:
    text = "\n\n".join(f"-- name: {name}\n-- why\n" + "\n".join(lines) for name, lines in written.items())
    read = {statement.name: statement.sql for statement in sql_files.parse(text, where="f")}
    assert read == {name: "\n".join(lines).strip() for name, lines in written.items()}


@pytest.mark.parametrize("root", ["package", "beside"])
def test_shipped_scripts_are_found_in_a_wheel_and_in_a_checkout(
    root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "dpone_provider"
    folder = {"package": package / "_sql", "beside": tmp_path / "sql"}[root] / "postgres"
    folder.mkdir(parents=True)
    monkeypatch.setattr(sql_files, "_PACKAGE", package)
    assert sql_files.shipped_sql("postgres") == folder
    with pytest.raises(SqlFileError, match="found no dialect 'oracle'; allowed: postgres"):
        sql_files.shipped_sql("oracle")


def test_a_broken_installation_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_files, "_PACKAGE", tmp_path / "dpone_provider")
    with pytest.raises(SqlFileError, match="a complete installation"):
        sql_files.shipped_sql("postgres")


def test_every_file_of_named_statements_in_the_package_is_well_formed() -> None:
    package = Path(sql_files.__file__).parent
    for path in sorted(package.rglob("*.sql")):
        if "_sql" not in path.relative_to(package).parts and re.search(r"^--\s*name\s*:", path.read_text(), re.M):
            assert sql_files.load(path)
