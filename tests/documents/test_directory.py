from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from dpone_provider.documents.directory import TreeBounds, read_directory
from dpone_provider.domain.outcomes import Refused

SMALL = TreeBounds(max_files=3, max_file_bytes=10, max_bytes=20)


def reason(found: dict[str, bytes] | Refused) -> str:
    assert isinstance(found, Refused), found
    return found.problem.reason


def test_files_come_in_order_of_path(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "x").write_bytes(b"1")
    (tmp_path / "b.txt").write_bytes(b"2")
    (tmp_path / "a").write_bytes(b"")
    (tmp_path / "empty").mkdir()
    found = read_directory(tmp_path)
    assert isinstance(found, dict)
    assert list(found.items()) == [("a", b""), ("b.txt", b"2"), ("b/x", b"1")]


def pipe(path: Path) -> None:
    os.mkfifo(path)


def bound_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.symlink_to("/etc/passwd"),
        lambda path: path.symlink_to("nowhere"),
        lambda path: path.symlink_to(".", target_is_directory=True),
        pipe,
        bound_socket,
    ],
)
def test_links_and_devices_are_refused(tmp_path: Path, make: Callable[[Path], object]) -> None:
    (tmp_path / "sub").mkdir()
    make(tmp_path / "sub" / "it")
    assert reason(read_directory(tmp_path)) == "not_a_regular_file"


@pytest.mark.parametrize("name", ["a:b", "con", "x.", "a\\b", "a\nb"])
def test_names_that_are_not_safe_everywhere_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    assert reason(read_directory(tmp_path)) == "unsafe_path"


def test_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))).write_bytes(b"")
    assert reason(read_directory(tmp_path)) == "unsafe_path"


def test_bounds(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 10)
    (tmp_path / "b").write_bytes(b"x" * 10)
    assert isinstance(read_directory(tmp_path, SMALL), dict)
    (tmp_path / "c").write_bytes(b"x")
    assert reason(read_directory(tmp_path, SMALL)) == "file_too_large"
    (tmp_path / "c").write_bytes(b"")
    (tmp_path / "d").write_bytes(b"")
    assert reason(read_directory(tmp_path, SMALL)) == "too_many_files"
    (tmp_path / "a").write_bytes(b"x" * 11)
    assert reason(read_directory(tmp_path, SMALL)) == "file_too_large"


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    assert reason(read_directory(tmp_path / "nowhere")) == "path_unreadable"


def test_what_is_left_out_is_not_even_looked_at(tmp_path: Path) -> None:
    (tmp_path / "skip").mkdir()
    (tmp_path / "skip" / "link").symlink_to("/etc/passwd")
    (tmp_path / "kept").write_bytes(b"1")
    assert read_directory(tmp_path, left_out=lambda path: path == "skip") == {"kept": b"1"}
