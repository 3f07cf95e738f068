"""No password of the lab stands anywhere but in its credential files."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from dpone_provider import lab

pytestmark = pytest.mark.lab


def passwords(state: lab.LabState) -> list[bytes]:
    urls = [path for path in (state.root / "credentials").iterdir() if not path.suffix]
    found = [urlsplit(path.read_text().strip()).password for path in urls]
    assert len(found) == 7
    return [word.encode() for word in (*found, *(secret.reveal() for _, secret in state.pool())) if word]


def test_no_password_in_state_logs_configuration_or_processes(whole_lab: lab.LabState) -> None:
    secrets = passwords(whole_lab)
    url = whole_lab.url("warehouse_controller").reveal()
    with psycopg.connect(url) as connection, pytest.raises(psycopg.errors.SyntaxError):
        connection.execute(b"CREATE ROLE x PASSWORD '" + secrets[0] + b"' NONSENSE")
    assert whole_lab.postgres is not None
    engines = Path(whole_lab.postgres.facts["data"]).parent
    files = [whole_lab.root / "state.json", *(whole_lab.root / "logs").iterdir(), *engines.glob("clickhouse/*.*")]
    files += [Path(f"/proc/{pid}/{part}") for pid in family(whole_lab) for part in ("cmdline", "environ")]
    for file in files:
        content = file.read_bytes()
        assert not [secret for secret in secrets if secret in content], file


def test_a_state_prints_no_password(whole_lab: lab.LabState) -> None:
    printed = repr(whole_lab) + repr(whole_lab.url("shop_reader")) + repr(whole_lab.pool())
    assert not [secret for secret in passwords(whole_lab) if secret.decode() in printed]


def family(state: lab.LabState) -> list[int]:
    """The supervisor and its children."""
    children = Path(f"/proc/{state.supervisor_pid}/task/{state.supervisor_pid}/children").read_text().split()
    assert len(children) == 2
    return [state.supervisor_pid, os.getpid(), *map(int, children)]
