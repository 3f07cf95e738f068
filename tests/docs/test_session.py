"""The running of sessions: what it takes as the same, and what it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import Block
from tests.docs.session import Session, first_difference

HERE = Path("/tmp/somewhere")


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        (["lab at /home/you/dpone/.dpone"], ["lab at /tmp/somewhere/.dpone"]),
        (["deployment sha256:0f4e380c…"], ["deployment sha256:" + "a" * 64]),
        (["occurrence 9a332063-6d2a-430f-b85e-68fa6ee8ed5c"], ["occurrence 11111111-6d2a-430f-b85e-68fa6ee8ed5c"]),
        (["on 127.0.0.1:26909, pid 20239"], ["on 127.0.0.1:1, pid 2"]),
        (["a", "…", "z"], ["a", "b", "c", "z"]),
        (["a", "…"], ["a", "b"]),
        ([" workload ┃ rows ", "━━━━╇━━━"], [" workload    ┃ rows   ", "━━━━━━━━━━╇━━━"]),
    ],
)
def test_what_differs_from_run_to_run_is_the_same(shown: list[str], said: list[str]) -> None:
    assert first_difference(shown, said, HERE) is None


@pytest.mark.parametrize(
    ("shown", "said"),
    [(["5 rows"], ["6 rows"]), (["a"], ["a", "b"]), (["a", "b"], ["a"]), (["…", "z"], ["a", "b"]), (["a"], ["b", "a"])],
)
def test_anything_else_is_not(shown: list[str], said: list[str]) -> None:
    assert first_difference(shown, said, HERE) is not None


def test_directory_variables_and_ids_live_on(tmp_path: Path) -> None:
    session = Session.begin(tmp_path, {})
    (tmp_path / "below").mkdir()
    session.run(Block("console", "$ export A=1\n$ cd below\n", 1, "run"))
    session.run(Block("console", "$ echo $A in $(basename $PWD)\n1 in below\n", 1, "run"))
    wanted = "sha256:" + "b" * 64
    session.run(Block("sh", f"echo deployment {wanted}\n", 1, "run"))
    session.run(Block("console", "$ export FIRST=sha256:0f4e…\n", 1, "run; keeps FIRST"))
    assert session.environment["FIRST"] == wanted


def test_another_exit_code_is_a_fault(tmp_path: Path) -> None:
    session = Session.begin(tmp_path, {})
    session.run(Block("sh", "exit 3\n", 1, "run; exits 3"))
    with pytest.raises(AssertionError, match="exit code 1 in place of 0"):
        session.run(Block("sh", "false\n", 1, "run"))
