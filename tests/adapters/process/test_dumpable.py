from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dpone_provider.adapters.process import dumpable

NOBODY = 65534
SYSTEM_PYTHON = "/usr/bin/python3"
# In a process of its own: it cannot be undone for the one that runs the tests.
PROGRAM = """
import json, os, subprocess, sys, resource, tempfile
from pathlib import Path
from dpone_provider.adapters.process.dumpable import forbid_inspection, inspection_forbidden
from tests.adapters.process.children import running
directory = Path(tempfile.mkdtemp())
before = inspection_forbidden()
forbid_inspection()
with running("tell(n=1)", directory) as child:
    events = list(child.events())
print(json.dumps({
    "before": before, "after": inspection_forbidden(), "core": resource.getrlimit(resource.RLIMIT_CORE)[0],
    "plain_child": subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, text=True).stdout,
    "guarded_child": events, "exit_code": child.exit_code(),
}))
"""


def test_a_process_that_forbids_inspection_still_works_and_starts_children() -> None:
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, cwd=Path.cwd())
    told = json.loads(run.stdout)
    assert told == {
        "before": False,
        "after": True,
        "core": 0,
        "plain_child": "1\n",
        "guarded_child": [{"n": 1}],
        "exit_code": 0,
    }


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
@pytest.mark.skipif(not os.access(SYSTEM_PYTHON, os.X_OK), reason="needs an interpreter that any user may execute")
def test_another_process_of_the_same_user_cannot_read_its_environment() -> None:
    source = Path(dumpable.__file__).read_text()
    waiting = "\nimport sys\n{}print('ready', flush=True)\nsys.stdin.readline()\n"
    for call, told in (("", "SECRET=hush"), ("forbid_inspection()\n", "PermissionError")):
        with subprocess.Popen(
            [SYSTEM_PYTHON, "-I", "-c", source + waiting.format(call)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            user=NOBODY,
            cwd="/",
            env={"SECRET": "hush"},
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            reader = f"print(open('/proc/{process.pid}/environ').read())"
            read = subprocess.run(
                [SYSTEM_PYTHON, "-I", "-c", reader], capture_output=True, text=True, user=NOBODY, cwd="/", check=False
            )
            process.communicate("\n")
        assert told in read.stdout + read.stderr
