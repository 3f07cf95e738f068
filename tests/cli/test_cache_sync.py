"""What `dpone airflow cache-sync` refuses of its own arguments, before it looks at anything."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner
from pydantic import TypeAdapter

from dpone_provider.cli.cache_sync import NOTE_LENGTH, cache_sync
from dpone_provider.documents.scalars import ShortText


def refused(tmp_path: Path, *arguments: str) -> str:
    done = CliRunner().invoke(
        cache_sync, ["--cache-root", str(tmp_path / "cache"), "--deployment", str(tmp_path), *arguments]
    )
    assert done.exit_code == 2, done.output
    return done.output


def test_a_note_longer_than_the_pointer_holds_is_wrong_usage(tmp_path: Path) -> None:
    said = refused(tmp_path, "--promoted-by", "x" * (NOTE_LENGTH + 1))
    assert "1001 characters" in said
    limits = TypeAdapter(ShortText).json_schema()
    assert limits["maxLength"] == NOTE_LENGTH


def test_an_empty_note_is_none(tmp_path: Path) -> None:
    assert "give --deployment-id" in refused(tmp_path, "--promoted-by", "")
