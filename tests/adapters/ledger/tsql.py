"""Asking Microsoft's parser (ScriptDom, in the `maxdop` program) whether it accepts T-SQL."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

PARSERS = ("2019", "2022", "2025")
_PROGRAM = Path(sys.executable).with_name("maxdop")
_PARAMETER = re.compile(r"(?<![:\w]):(\w+)")
_FINE = re.compile(r"would be reformatted$")
_UNPARSED = re.compile(r"(\d+)\.sql: could not be parsed[^.]*\. (.*)")


def refusals(statements: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return what any of the parsers says against a statement, by its name and version; empty when all are fine.

    A statement is one batch: no ``GO``. Named parameters are written as ``:name`` and become variables. ``folder`` is
    filled with one file per statement.
    """
    names = dict(enumerate(statements))
    for number, name in names.items():
        (folder / f"{number}.sql").write_text(_PARAMETER.sub(r"@\1", statements[name]))
    found = {}
    for version in PARSERS:
        command = [str(_PROGRAM), "--check", "--parser-version", version, str(folder)]
        asked = subprocess.run(command, capture_output=True, text=True, check=False)
        # 1: a file would be formatted otherwise, or cannot be parsed; only the latter is said with its reason.
        assert asked.returncode in (0, 1), asked.stderr
        for line in asked.stderr.splitlines():
            if not _FINE.search(line):
                said = _UNPARSED.search(line)
                assert said is not None, line
                found[f"{names[int(said[1])]} ({version})"] = said[2]
    return found
