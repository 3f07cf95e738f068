"""Where every test is required, a skip fails, and says why it was one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.required import VARIABLE

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = """
from __future__ import annotations
import pytest

def test_passes(): pass

def test_skips(): pytest.skip("no such server")

@pytest.mark.skipif(True, reason="no such driver")
def test_is_marked(): pass

@pytest.mark.xfail(strict=True)
def test_is_expected_to_fail(): raise AssertionError
"""


def outcome(tmp_path: Path, text: str, **environment: str) -> tuple[int, str]:
    """Run a file of tests in a process of its own."""
    (tmp_path / "test_sample.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.required", "-p", "no:cacheprovider", str(tmp_path)]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DPONE_TEST_", "PYTEST_"))}
    done = subprocess.run(
        [*command, "-c", os.devnull, "--rootdir", str(tmp_path)],
        cwd=ROOT,
        env=kept | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def test_a_skip_is_a_skip_where_nothing_is_required(tmp_path: Path) -> None:
    code, told = outcome(tmp_path, SAMPLE)
    assert code == 0
    assert "1 passed, 2 skipped, 1 xfailed" in told


def test_each_skip_fails_with_its_reason_where_everything_is_required(tmp_path: Path) -> None:
    code, told = outcome(tmp_path, SAMPLE, **{VARIABLE: "1"})
    assert code == 1
    assert "1 failed, 1 passed, 1 xfailed, 1 error" in told
    for reason in ("no such server", "no such driver"):
        assert f"{reason}: where {VARIABLE} is 1, nothing may be skipped" in told


def test_a_module_that_is_skipped_whole_fails_too(tmp_path: Path) -> None:
    text = "import pytest\npytest.skip('nothing here', allow_module_level=True)\n"
    code, told = outcome(tmp_path, text, **{VARIABLE: "1"})
    assert code != 0
    assert "nothing here" in told
