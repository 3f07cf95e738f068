"""No secret stands anywhere but where it must: everything that is left, said or shown is looked through, whatever
happened: transfers and dbt runs that succeed, and each way in which they, a login or a promotion fail."""

from __future__ import annotations

import base64
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import pytest

from dpone_provider.application.attempt import AttemptReport
from dpone_provider.application.promotion import PromotionReport
from dpone_provider.assembly.runtime import Runtime
from dpone_provider.domain.outcomes import DponeError, Failure, type_of_failure
from dpone_provider.domain.secret import Secret
from dpone_provider.lab.clickhouse.given import VARIABLE
from dpone_provider.lab.provisioning import SHOP, WAREHOUSE
from dpone_provider.lab.state import write_private
from tests.acceptance import dbt
from tests.acceptance.canary import Kept, Logged, Overheard, found, spellings
from tests.acceptance.commands import dpone, sync_arguments
from tests.acceptance.processes import WORKER, command_line, descendants
from tests.acceptance.test_attempts import BEFORE_COMMIT, ISSUED, OBSERVING
from tests.acceptance.wire import Phase
from tests.acceptance.world import Deployment, Place, World, succeeded

WRONG = "wrong canary: %2F/+é&@'\"\\ #1"
"""A password that is none, with everything in it that a URL, a shell or JSON spells otherwise."""
CHILD = b"adapters/dbt/child.py"
SOURCE = "DPONE_TEST_CANARY_SOURCE"
"""The variable of this process that holds the URL of the source's reader: no other process may have it."""
TALKATIVE = {
    "log_statement": "all",
    "log_min_error_statement": "debug5",
    "log_min_messages": "debug1",
    "log_duration": "on",
    "log_parameter_max_length": "-1",
    "log_parameter_max_length_on_error": "-1",
}
"""Settings with which PostgreSQL's log says the most."""


@pytest.mark.parametrize("secret", ["FhMGFe8hQz2vKJ4ZpUN3rX", WRONG])
@pytest.mark.parametrize("around", [b"", b"u:", b"us:"])
def test_what_is_planted_is_found(secret: str, around: bytes, tmp_path: Path) -> None:
    """In every spelling, in text and among bytes; a part of it, or nothing of it, is not found."""
    planted = {f"plain-{number}": form.encode() for number, form in enumerate(sorted(spellings(secret)))}
    planted |= {
        "plain": secret.encode(),
        "binary": b"\0\xff" * 9 + secret.encode() + b"\0",
        "url": f"postgresql://u:{quote(secret, safe='')}@localhost/db".encode(),
        "base64": b"Authorization: Basic " + base64.b64encode(around + secret.encode() + b"more"),
        "base64 of URLs": base64.urlsafe_b64encode(around + secret.encode()),
    }
    for name, content in planted.items():
        (tmp_path / name).write_bytes(b"before " + content + b" after\n")
    (tmp_path / "nothing").write_bytes(secret[: len(secret) // 2].encode() + b" Secret('***')")
    assert {path.name for path in found({secret}, tmp_path)} == set(planted)


@dataclass(slots=True)
class Scene:
    """A place with three workloads, promoted; a runtime of it whose gates are overheard."""

    place: Place
    kept: Kept
    deployment: Deployment
    promoted: PromotionReport

    @property
    def runtime(self) -> Runtime:
        """A new runtime, as another process would have it."""
        at = self.place.runtime(lambda line: self.kept.say("told", line))
        return replace(at, gates=Overheard(at.gates, self.kept))

    def run(self, workload: str) -> AttemptReport | Failure:
        """Run one attempt, and keep what it came to."""
        outcome = self.place.run(self.promoted, workload, runtime=self.runtime)
        problem = outcome if isinstance(outcome, type_of_failure) else outcome.problem
        self.kept.say("outcomes", outcome, problem)
        if problem is not None:
            self.kept.say("exceptions", *traceback.format_exception(DponeError(problem)))
        return outcome

    def fails(self, workload: str) -> None:
        """Run one attempt, which must not succeed."""
        outcome = self.run(workload)
        assert isinstance(outcome, type_of_failure) or outcome.problem is not None, outcome

    def cli(self, *arguments: str, **settings: object) -> int:
        """Run a command, keep what it says, return its exit code."""
        at = self.place if not settings else _Told(self.place, settings)
        said = dpone(at, *arguments)  # type: ignore[arg-type]
        self.kept.say("commands", said.out, said.err)
        return said.code


@dataclass(frozen=True, slots=True)
class _Told:
    """A place whose commands are told something else."""

    place: Place
    changed: dict[str, object]

    @property
    def settings(self) -> object:
        return replace(self.place.settings, **self.changed)  # type: ignore[arg-type]


@contextmanager
def talkative(world: World) -> Iterator[None]:
    """Let PostgreSQL's log say everything for as long as the block runs."""
    for name, value in TALKATIVE.items():
        for database in (SHOP, WAREHOUSE):
            world.sql("postgres", f"ALTER DATABASE {database} SET {name} = '{value}'")
    try:
        yield
    finally:
        for database in (SHOP, WAREHOUSE):
            world.sql("postgres", f"ALTER DATABASE {database} RESET ALL")


@contextmanager
def listening(kept: Kept, tmp: Path) -> Iterator[None]:
    """Keep every log record, every process that there is, and the directories of every run."""
    tmp.mkdir()
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.1):
            kept.look_at_processes()

    root, level, handler = logging.getLogger(), logging.getLogger().level, Logged(kept)
    looking = threading.Thread(target=look)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tempfile, "tempdir", str(tmp))
        patched.setattr(tempfile.TemporaryDirectory, "cleanup", lambda directory: directory._finalizer.detach())
        root.addHandler(handler)
        root.setLevel(logging.DEBUG)
        looking.start()
        try:
            yield
        finally:
            over.set()
            looking.join()
            root.removeHandler(handler)
            root.setLevel(level)


def known(kept: Kept, world: World) -> None:
    """Count in everything that the lab itself made: each credential's URL, each user of the pool."""
    for path in (world.lab.root / "credentials").iterdir():
        if not path.suffix:
            kept.met(Secret(unquote(urlsplit(path.read_text().strip()).password or "")))
    for _, password in world.lab.pool():
        kept.met(password)
    kept.met(Secret(WRONG))


def scene(place: Place, kept: Kept) -> Scene:
    """Promote two transfers, to the warehouse and to ClickHouse, and a dbt project over the first."""
    source = place.environment["connections"]["shop.lab"]["credentials"]
    os.environ[SOURCE] = Path(source["reader"].removeprefix("file:")).read_text().strip()
    place.source("items")
    source["reader"] = f"env:{SOURCE}"
    place.source("orders", columns="id int, word text, n numeric(12, 2)")
    workspace = place.workspace(place.transfer("orders"), place.onward("items"), native=dbt.native())
    dbt.project(place, workspace)
    deployment = place.released(workspace)
    promoted = place.promote(deployment)
    return Scene(place, kept, deployment, promoted)


# ─── what happens ───────────────────────────────────────────────────────────────────────────────────────────────────


def successes(at: Scene) -> None:
    """A transfer to each engine and a dbt workload, each looked at while its child is at work."""
    wires = at.place.world.wires
    for workload, wire, part in (
        ("orders", wires["warehouse"], ISSUED),
        ("items", wires["analytics"], b"INSERT INTO"),
        (dbt.WORKLOAD, wires["warehouse"], ISSUED),
    ):
        moment = wire.at_bytes(part, lambda: look(at))
        succeeded(at.run(workload))
        assert moment.came()


def look(at: Scene) -> None:
    """Keep what every process and every session of PostgreSQL shows now."""
    at.kept.look_at_processes()
    at.kept.say("sessions", *at.place.world.sql(WAREHOUSE, "SELECT a::text FROM pg_stat_activity a"))


def failures(at: Scene) -> None:
    """Each way in which a child loses its login, its connection or its life, or is told that its data are wrong."""
    place, wire = at.place, at.place.world.wires["warehouse"]
    wire.at_bytes(
        ISSUED,
        lambda: place.ledger("UPDATE dpone_control.login_gate SET gate_state = 'CLOSING' WHERE gate_state = 'READY'"),
    )
    at.fails("orders")
    wire.at_bytes(ISSUED, kill_worker)
    at.fails("orders")
    wire.at_bytes(BEFORE_COMMIT, wire.cut)
    at.fails("orders")
    place.world.wires["authority"].at("ready", Phase.COMMITS, place.world.wires["authority"].cut)
    at.fails("orders")
    place.world.wires["analytics"].at_bytes(b"INSERT INTO", place.world.wires["analytics"].cut)
    at.fails("items")
    place.in_warehouse("INSERT INTO stage.{orders} SELECT * FROM stage.{orders}")
    at.fails(dbt.WORKLOAD)
    wire.at_bytes(OBSERVING, wire.cut)
    at.fails("orders")
    (attempt_id,) = [one for one, state in place.attempts() if state == "COMMIT_UNKNOWN"]
    assert at.cli("attempt", "show", attempt_id, "--format", "json") == 0
    assert at.cli("attempt", "reconcile", attempt_id, "--format", "json") == 0


def kill_worker() -> None:
    """Kill the worker that is at work for this process."""
    (pid,) = [pid for pid in descendants(os.getpid()) if WORKER in command_line(pid)]
    os.kill(pid, signal.SIGKILL)


def bad_credentials(at: Scene) -> None:
    """A password that is none, and one in a URL that cannot be read: a source's, the authority's, a target's."""
    place, right = at.place, os.environ[SOURCE]
    for url in (with_password(right, WRONG), *unreadable(right)):
        os.environ[SOURCE] = url
        at.fails("orders")
    os.environ[SOURCE] = right
    authority = Path(place.world.authority_ref.removeprefix("file:")).read_text().strip()
    wrong = place.root / "wrong-authority"
    for text in (with_password(authority, WRONG), *unreadable(authority)):
        write_private(wrong, text + "\n")
        for command in (("status",), ("recover", "--format", "json"), sync_arguments(at.deployment)):
            assert at.cli(*command, authority_connection_ref=f"file:{wrong}") in (10, 12)
    for engine, workload in (("warehouse", "orders"), ("analytics", "items")):
        file = place.world.root / "credentials" / engine / "controller"
        right = file.read_text()
        write_private(file, with_password(right.strip(), WRONG) + "\n")
        try:
            at.fails(workload)
            at.cli(*sync_arguments(at.deployment))
        finally:
            write_private(file, right)


def unreadable(url: str) -> Iterator[str]:
    """Yield URLs with a fault somewhere else than in the password."""
    yield url.replace("://", ":;")
    yield url.replace("@", "@[", 1)
    yield f"{url}?password={quote(WRONG)}"
    yield f"{url}#{WRONG}"


def with_password(url: str, password: str) -> str:
    """Return a URL with another password."""
    parts = urlsplit(url)
    return parts._replace(
        netloc=f"{parts.username}:{quote(password, safe='')}@{parts.netloc.rpartition('@')[2]}"
    ).geturl()


def refusals(at: Scene) -> None:
    """Promotions that are refused, an authority that is gone, and commands that only look, one as a process."""
    other = at.place.release(at.place.transfer("orders", timeout_seconds=60))
    assert at.cli(*sync_arguments(other, "--expect-current", "absent")) == 10
    assert at.cli(*sync_arguments(at.deployment, deployment_id="sha256:" + "0" * 64)) == 10
    at.place.world.wires["authority"].down()
    assert at.cli(*sync_arguments(at.deployment)) == 12
    at.fails("orders")
    at.place.world.up()
    for command in ("status", "reconcile", "recover"):
        assert at.cli(command, "--format", "json") in (0, 1)
    variables = {name: value for name, value in os.environ.items() if "CANARY" not in name}
    done = subprocess.run(
        [sys.executable, "-c", "from dpone_provider.cli import main; main()", "status"],
        env=variables | at.place.settings.variables(),
        capture_output=True,
        text=True,
        check=True,
    )
    at.kept.say("processes", done.stdout, done.stderr)


# ─── what is left of it ─────────────────────────────────────────────────────────────────────────────────────────────


def keep_servers(at: Scene) -> None:
    """Keep all rows of the ledger and of the receipts, every role, and what ClickHouse logs in tables, but for those of
    numbers and addresses alone: a server that is given has millions of them."""
    world = at.place.world
    tables = world.sql(
        WAREHOUSE,
        "SELECT quote_ident(table_schema) || '.' || quote_ident(table_name) FROM information_schema.tables"
        " WHERE table_schema LIKE 'dpone%%' OR table_schema IN ('stage', 'mart')",
    )
    assert len(tables) > 20
    for (table,) in (*tables, ("pg_authid",), ("pg_db_role_setting",)):
        at.kept.say("ledger", *world.sql(WAREHOUSE, f"SELECT t::text FROM {table} t"))
    for table in world.clickhouse(
        "SELECT name FROM system.tables WHERE database = 'system' AND name LIKE '%_log'"
        " AND name NOT LIKE '%metric%' AND name != 'trace_log'"
    ).split():
        at.kept.say("clickhouse", world.clickhouse(f"SELECT * FROM system.{table} FORMAT JSONEachRow"))
    at.kept.say("clickhouse", world.clickhouse("SELECT * FROM system.processes FORMAT JSONEachRow"))


@pytest.mark.timeout(400)  # as long as its many parts take on a busy machine
def test_no_secret_is_found_anywhere(place: Place, capfd: pytest.CaptureFixture[str]) -> None:
    world, kept = place.world, Kept(place.root / "kept")
    known(kept, world)
    with listening(kept, place.root / "tmp"), talkative(world):
        at = scene(place, kept)
        successes(at)
        failures(at)
        bad_credentials(at)
        refusals(at)
        keep_servers(at)
    kept.say("streams", *capfd.readouterr())
    os.environ.pop(SOURCE)

    assert len(kept.issued) >= 9
    assert world.lab.postgres is not None
    log = Path(world.lab.postgres.facts["log"]).read_text(errors="replace")
    assert "CREATE ROLE" in log.upper(), "the server's log says what was asked"
    engines = Path(world.lab.postgres.facts["data"]).parent
    leave_out_what_the_tester_said(kept)
    hits = found(kept.secrets, place.root, world.root, engines)
    assert [path for path in hits if not meant(path, at, kept)] == []
    assert {path.parent.name for path in hits} >= {"credentials", "environ", "warehouse"}, "the search finds something"


def commands_of(path: Path, kept: Kept) -> list[bytes]:
    """Return the command lines of the process whose environment is kept in a file."""
    pid = path.name.partition("-")[0]
    return [one.read_bytes() for one in (kept.directory / "cmdline").glob(f"{pid}-*")]


def leave_out_what_the_tester_said(kept: Kept) -> None:
    """Take the URL of a given ClickHouse out of the environments: the tests' own processes have it from whoever runs
    them. No worker and no child of dbt's may have it."""
    for path in (kept.directory / "environ").iterdir():
        if not any(WORKER in one or CHILD in one for one in commands_of(path, kept)):
            entries = path.read_bytes().split(b"\0")
            path.write_bytes(b"\0".join(one for one in entries if not one.startswith(VARIABLE.encode() + b"=")))


def meant(path: Path, at: Scene, kept: Kept) -> bool:
    """Tell whether a secret may stand in a file: a credential, or the environment of a child of dbt's."""
    if path.is_relative_to(kept.directory / "environ"):
        return any(CHILD in one for one in commands_of(path, kept))
    if "credentials" in path.parts:
        return at.place.world.root in path.parents
    return path == at.place.root / "wrong-authority"
