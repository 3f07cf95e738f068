"""Running the sessions that a page shows, and comparing what came out with what is shown.

A comment right before a block directs the run:

    <!-- run -->                       its lines are run, one after the other, and end with exit code 0
    <!-- run; exits 3 -->              the last of them ends with 3
    <!-- run; keeps FIRST -->          its line sets FIRST to the deployment id that was printed last, as a reader would
    <!-- without Airflow -->           the line triggers a DAG: its workloads are run without Airflow

Blocks without such a comment are for the reader only. What differs from run to run is made equal before output is
compared. A line ``…`` stands for any lines.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.docs.pages import Block
from tests.docs.shell_blocks import Typed, typed_lines

SHOWN_CLONE = "/home/you/dpone"
ANYTHING = "…"
SECONDS = 180.0
_DIRECTION = re.compile(r"run(?:; exits (?P<exits>\d+))?(?:; keeps (?P<keeps>[A-Z_]+))?")
_DEPLOYMENT = re.compile(r"^deployment (sha256:[0-9a-f]{64})$", re.MULTILINE)
_EQUAL = (
    (re.compile(r"sha256:[0-9a-f]{4,64}(?:…)?"), "sha256:…"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "UUID"),
    (re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{12})\b"), "HEX"),
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:PORT"),
    (re.compile(r"\bpid \d+"), "pid N"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.]*(?:Z|[+-]\d\d:\d\d)?"), "TIME"),
    (re.compile(r"\b\d+\.\d+ s\b"), "N s"),
    (re.compile(r"[━┃╇│┼]+"), "|"),
    (re.compile(r"[ |]*\|[ |]*"), "|"),
    (re.compile(r" {2,}"), " "),
)


@dataclass(slots=True)
class Session:
    """One reader's shell: directory and variables live on from line to line."""

    directory: Path
    environment: dict[str, str]
    said: list[str] = field(default_factory=list)

    @classmethod
    def begin(cls, directory: Path, more: Mapping[str, str]) -> Session:
        """Begin in ``directory`` with this Python's programs on the path and none of the caller's settings."""
        path = f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"
        home = {"HOME": str(directory), "LC_ALL": "C.UTF-8", "PATH": path}
        return cls(directory, {**home, **more})

    def run(self, block: Block) -> None:
        """Run a block as it directs.

        Raises:
            AssertionError: another exit code, or another output, than is shown.
        """
        direction = _DIRECTION.fullmatch(block.direction)
        assert direction is not None, block.direction
        typed = typed_lines(block)
        for line in typed[:-1]:
            self._typed(line, 0)
        if direction["keeps"]:
            ids = _DEPLOYMENT.findall("\n".join(self.said))
            self.environment[direction["keeps"]] = ids[-1]
        else:
            self._typed(typed[-1], int(direction["exits"] or 0))

    def _typed(self, typed: Typed, wanted: int) -> None:
        code, output = self.execute(typed.line)
        where = f"line {typed.number}: {typed.line}\n{output}"
        assert code == wanted, f"exit code {code} in place of {wanted}, {where}"
        shown = typed.output
        if any(line.strip() for line in shown):
            missing = first_difference(shown, output.splitlines(), self.directory)
            assert missing is None, f"{missing}\n{where}"

    def execute(self, line: str) -> tuple[int, str]:
        """Run one line; return its exit code and everything that it printed."""
        state = self.directory / ".session"
        leaving = f"trap {shlex.quote(f'{{ pwd; env -0; }} > {shlex.quote(str(state))}')} EXIT; "
        done = subprocess.run(
            ["bash", "-c", leaving + line],
            cwd=self.environment.get("PWD", self.directory),
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        _, _, variables = state.read_text(encoding="utf-8").partition("\n")
        state.unlink()
        self.environment = dict(each.split("=", 1) for each in variables.split("\0") if "=" in each)
        self.said.append(done.stdout)
        return done.returncode, done.stdout


def first_difference(shown: list[str], said: list[str], directory: Path) -> str | None:
    """Return the first line that is shown and was not said, or the other way round; None if there is none."""
    wanted = [line for line in (equalised(each, directory) for each in shown) if line]
    found = [line for line in (equalised(each, directory) for each in said) if line]
    place, skipping = 0, False
    for line in wanted:
        if line == ANYTHING:
            skipping = True
            continue
        while skipping and place < len(found) and found[place] != line:
            place += 1
        if place == len(found) or found[place] != line:
            return f"shown: {line!r}, said: {found[place]!r}" if place < len(found) else f"shown, not said: {line!r}"
        place, skipping = place + 1, False
    return None if skipping or place == len(found) else f"said, not shown: {found[place]!r}"


def equalised(line: str, directory: Path) -> str:
    """Return a line with everything made equal that differs from run to run."""
    text = line.replace(str(directory), SHOWN_CLONE).strip()
    for pattern, instead in _EQUAL:
        text = pattern.sub(instead, text)
    return text.strip("| ")
