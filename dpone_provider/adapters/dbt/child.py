"""Run dbt for one job, in dbt's own interpreter. Standard library and dbt only.

Run by path: ``python -I child.py``, behind a guard, with an environment built from nothing. The first line of standard
input is the job (JSON, no secret in it); what happens is told as JSON lines on the descriptor in ``DPONE_EVENTS_FD``;
dbt's own output goes to standard output and error as always. dbt starts once: parsing, selecting and building share
one manifest in memory (https://docs.getdbt.com/reference/programmatic-invocations).

Events of ``compile``: one ``compiled``. Events of ``build``: ``node`` as each starts and ends, then one ``finished``.
Of both instead: one ``refused``. Exit codes are dbt's: 0 all well, 1 a node failed, 2 dbt could not run.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import io
import json
import os
import re
import socket
import sys
import threading
from importlib import import_module, metadata
from importlib.util import find_spec
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, TypedDict

PR_SET_DUMPABLE = 4
EVENTS_VARIABLE = "DPONE_EVENTS_FD"
SECRET_PREFIX = "DBT_ENV_SECRET_"
PROFILE = "dpone"
TAG = "dpone_selected_by_pack"
"""Marks the selected nodes in memory: no selection syntax of dbt names exactly one node of any kind."""
RESOURCES = ("model", "seed", "snapshot", "test")
MAX_MESSAGE = 2000
TRANSIENT_METADATA = (
    "generated_at",
    "invocation_id",
    "invocation_started_at",
    "run_started_at",
    "user_id",
    "env",
    "send_anonymous_usage_stats",
)
TRANSIENT_OF_NODE = ("created_at", "root_path", "build_path", "compiled_path")
"""When a node was read, and where on this machine (seeds have an absolute path)."""
ONE_SESSION = "ConnectRetryCount=0;Pooling=no;Language=us_english;"
CARRIED = re.compile(r"exec\('((?:[^']|'')*)'\)", re.IGNORECASE)
COMMENTED = re.compile(r"('(?:[^']|'')*'|\"[^\"]*\")|--[^\n]*|/\*.*?\*/", re.DOTALL)
LOST = (
    "SELECT given.letter FROM (VALUES {}) AS given (letter)"
    " WHERE CONVERT(nvarchar(9), CONVERT(varchar(9), given.letter)) COLLATE Latin1_General_100_BIN2"
    " <> given.letter COLLATE Latin1_General_100_BIN2;"
)
"""Asks which letters do not come back from the database's code page."""
OWN_PATHS: list[str] = []
"""The job's directories: true of this run only, so no message tells them."""
STATUSES = {
    "success": "success",
    "pass": "pass",
    "warn": "warn",
    "fail": "fail",
    "skipped": "skipped",
    "error": "error",
    "runtime error": "error",
    "partial success": "error",
}
"""dbt's words for how a node ended; one that is not here counts as an error."""


class Job(TypedDict, total=False):
    """What to do. ``selectors`` belong to ``compile``; ``nodes``, ``threads`` and what the project was compiled as
    (``manifest_digest``, ``versions``, ``flags``) to ``build``."""

    do: str
    project: str
    work: str
    adapter: str
    selectors: dict[str, list[str]]
    nodes: list[str]
    manifest_digest: str
    versions: list[list[str]]
    flags: list[list[Any]]
    threads: int


class Refusal(Exception):
    """dbt cannot do the job; carries a reason code and dbt's own words."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class Telling:
    """The event pipe. Whoever reads it decides everything, so a child that cannot tell any more does not go on."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def __call__(self, **event: object) -> None:
        """Write one event, whole, from any thread."""
        data = json.dumps(event).encode() + b"\n"
        with self._lock:
            try:
                while data:
                    data = data[os.write(self._descriptor, data) :]
            except OSError:
                os._exit(2)


class Dbt:
    """dbt over one project: common arguments, one manifest."""

    def __init__(self, job: Job) -> None:
        self._runner = import_module("dbt.cli.main").dbtRunner
        self._work = Path(job["work"])
        self._common = [
            *("--project-dir", job["project"]),
            *("--profiles-dir", job["work"]),
            *("--profile", PROFILE, "--target", PROFILE),
            *("--target-path", str(self._work / "target")),
            *("--log-path", str(self._work / "logs")),
            *("--log-level-file", "none", "--no-use-colors", "--no-partial-parse", "--no-send-anonymous-usage-stats"),
        ]
        self.manifest: Any = None

    def parse(self) -> bytes:
        """Parse the project and return its manifest in the one form that depends on the project alone."""
        result = self._runner().invoke(["parse", *self._common])
        if not result.success:
            raise Refusal("dbt_project_does_not_parse", problem_of(result))
        self.manifest = result.result
        return canonical_manifest((self._work / "target" / "manifest.json").read_bytes())

    def select(self, selectors: list[str]) -> list[str]:
        """Return the unique ids that the selectors mean together. Ephemeral models are part of others, never run."""
        kinds = [word for kind in RESOURCES for word in ("--resource-type", kind)]
        keys = ("--output", "json", "--output-keys", "unique_id")
        with contextlib.redirect_stdout(io.StringIO()):
            result = self._runner(manifest=self.manifest).invoke(
                ["list", *self._common, *kinds, *keys, "--select", *selectors]
            )
        if not result.success:
            raise Refusal("dbt_selector_malformed", problem_of(result))
        ids = {json.loads(line)["unique_id"] for line in result.result or ()}
        return sorted(one for one in ids if self.manifest.nodes[one].config.materialized != "ephemeral")

    def build(self, nodes: list[str], threads: int, heard: Any) -> Any:
        """Build exactly ``nodes``; ``heard`` gets every event of dbt."""
        for unique_id in nodes:
            self.manifest.nodes[unique_id].tags.append(TAG)
        kinds = [word for kind in RESOURCES for word in ("--resource-type", kind)]
        exactly = ("--select", f"tag:{TAG}", "--indirect-selection", "empty")
        plainly = ("--no-fail-fast", "--no-defer", "--no-favor-state", "--no-empty", "--cache-selected-only")
        return self._runner(manifest=self.manifest, callbacks=[heard]).invoke(
            ["build", *self._common, *kinds, *exactly, *plainly, "--threads", str(threads)]
        )


def compile_project(job: Job, tell: Telling) -> int:
    """Parse without any connection, resolve every selector, and leave the manifest in the work directory."""
    forbid_network()
    dbt = Dbt(job)
    manifest = dbt.parse()
    selected = {name: dbt.select(words) for name, words in sorted(job["selectors"].items())}
    path = Path(job["work"]) / "manifest.canonical.json"
    path.write_bytes(manifest)
    adapter = job["adapter"]
    tell(event="compiled", manifest=str(path), selected=selected, versions=versions(adapter), flags=flags(adapter))
    return 0


def build(job: Job, tell: Telling) -> int:
    """Build exactly the job's nodes, if the project still is what was compiled."""
    forbid_pooling(job["adapter"])
    keep_letters(job["adapter"])
    start_helper()
    require_same("dbt_versions_differ", "versions", versions(job["adapter"]), job["versions"])
    dbt = Dbt(job)
    found = "sha256:" + hashlib.sha256(dbt.parse()).hexdigest()
    if found != job["manifest_digest"]:
        raise Refusal(
            "dbt_project_not_as_compiled",
            f"the manifest is {found}, compiled was {job['manifest_digest']}: another version of dbt or its adapter, "
            "another database or schema, or a project that depends on its target or on the time",
        )
    require_same("dbt_flags_differ", "the adapter's behaviour flags", flags(job["adapter"]), job["flags"])
    missing = sorted(set(job["nodes"]) - set(dbt.manifest.nodes))
    if missing:
        raise Refusal("dbt_node_missing", f"not in the project: {', '.join(missing)}")
    ended: set[str] = set()
    outcome = dbt.build(job["nodes"], job["threads"], lambda event: pass_on(event, tell, ended))
    results = sorted((one.node.unique_id, status_of(one.status), scrub(one.message)) for one in results_of(outcome))
    for unique_id, status, message in results:
        if unique_id not in ended:  # skipped nodes have no event of their own
            tell(event="node", node=unique_id, status=status, message=message)
    pairs = [[unique_id, status] for unique_id, status, _ in results]
    problem = problem_of(outcome) if outcome.exception is not None else None
    tell(event="finished", success=bool(outcome.success), results=pairs, problem=problem)
    if outcome.success:
        return 0
    return 1 if pairs else 2


def pass_on(event: Any, tell: Telling, ended: set[str]) -> None:
    """Tell that a node started or ended, as dbt tells it."""
    if event.info.name == "NodeStart":
        tell(event="node", node=event.data.node_info.unique_id, status="started", message="")
    elif event.info.name == "NodeFinished":
        result = event.data.run_result
        unique_id = event.data.node_info.unique_id
        ended.add(unique_id)
        tell(event="node", node=unique_id, status=status_of(result.status), message=scrub(result.message))


def results_of(outcome: Any) -> list[Any]:
    """Return the results of a build, none where dbt did not come that far."""
    return list(getattr(outcome.result, "results", ()) or ())


def status_of(word: object) -> str:
    """Return the protocol's word for dbt's."""
    return STATUSES.get(str(word), "error")


def problem_of(result: Any) -> str:
    """Return dbt's own words for why it could not run."""
    return scrub(str(result.exception)) if result.exception is not None else "dbt gave no reason; see its output"


def canonical_manifest(data: bytes) -> bytes:
    """Return a manifest without what changes from one parsing to the next, keys sorted; columns keep their order."""
    manifest = json.loads(data)
    for key in TRANSIENT_METADATA:
        manifest["metadata"].pop(key, None)
    for section in manifest.values():
        entries = section.values() if isinstance(section, dict) else ()
        for entry in entries:
            for one in entry if isinstance(entry, list) else [entry]:
                if isinstance(one, dict):
                    for key in TRANSIENT_OF_NODE:
                        one.pop(key, None)
    return json.dumps(in_order(manifest), separators=(",", ":"), ensure_ascii=False).encode()


def in_order(value: Any, key: str = "") -> Any:
    """Return a value whose objects have sorted keys, but for a node's columns: their order is the contract's."""
    if isinstance(value, dict):
        keys = value if key == "columns" else sorted(value)
        return {name: in_order(value[name], name) for name in keys}
    return [in_order(one) for one in value] if isinstance(value, list) else value


def versions(adapter: str) -> list[list[str]]:
    """Return name and version of the distributions that decide what dbt does, in name order."""
    names = sorted({"dbt-core", "dbt-adapters", "dbt-common", f"dbt-{adapter}"})
    return [[name, metadata.version(name)] for name in names]


def flags(adapter: str) -> list[list[Any]]:
    """Return name and value of the adapter's behaviour flags, in name order; the project was parsed before.

    Once each: dbt-adapters tells one of its own flags again for every adapter that the process has made.
    """
    made = import_module("dbt.adapters.factory").get_adapter_by_type(adapter)
    return [
        [name, value]
        for name, value in sorted({flag.name: bool(flag.no_warn) for flag in made.behavior._flags}.items())
    ]


def require_same(reason: str, what: str, found: list[list[Any]], compiled: list[list[Any]]) -> None:
    """Refuse what is not as it was compiled, naming each difference."""
    was, now = dict(compiled), dict(found)
    names = [name for name in sorted(was | now) if was.get(name) != now.get(name)]
    if names:
        differing = "; ".join(f"{name} {now.get(name)}, compiled with {was.get(name)}" for name in names)
        raise Refusal(reason, f"{what}: {differing}")


def require_adapter(adapter: str) -> None:
    """Refuse an adapter that is not installed, naming what is."""
    try:
        spec = find_spec(f"dbt.adapters.{adapter}")
    except ModuleNotFoundError:  # no dbt at all
        spec = None
    if spec is None:
        found = sorted(dist.name for dist in metadata.distributions() if dist.name.startswith("dbt-"))
        raise Refusal("dbt_adapter_missing", f"dbt-{adapter} is not installed beside {', '.join(found) or 'nothing'}")


def forbid_pooling(adapter: str) -> None:
    """Make the ODBC environment without pooling before dbt-sqlserver asks for it: a pooled session outlives its close.

    pyodbc reads the flag once, when it makes its environment, and listing the drivers makes it. The adapter also asks
    for pooling and for lost connections to be replaced in the connection string: a session that was replaced has lost
    its transaction and its settings without a word. The language decides how a text is read as a date, and on which day
    a week begins: a login's own is the server's default, whatever that is. Of a keyword that stands twice ODBC takes
    the first.
    """
    if adapter == "sqlserver":
        pyodbc: Any = import_module("pyodbc")
        pyodbc.pooling = False
        registered, driver = pyodbc.drivers(), os.environ.get("DPONE_DBT_ODBC_DRIVER", "")
        if driver and "/" not in driver and driver not in registered:
            raise Refusal("odbc_driver_missing", f"dbt's process finds no ODBC driver {driver!r} beside {registered}")
        connect = pyodbc.connect
        pyodbc.connect = lambda text, *more, **named: connect(ONE_SESSION + text, *more, **named)


def keep_letters(adapter: str) -> None:
    """Let dbt-sqlserver send no statement that SQL Server would change on its way.

    It sends a model's text inside ``EXEC('…')``, a varchar: of a letter that the database's code page does not have
    the server makes a question mark or one that looks like it, and says nothing.
    """
    if adapter == "sqlserver":
        manager = import_module("dbt.adapters.sqlserver.sqlserver_connections").SQLServerConnectionManager
        error = import_module("dbt_common.exceptions").DbtRuntimeError
        send, kept = manager.add_query, set[str]()

        def add_query(self: Any, sql: str, *more: Any, **named: Any) -> Any:
            asked = sorted(letters(sql) - kept)
            if asked:
                values = ", ".join(f"(N'{letter}')" for letter in asked)
                found = self.get_thread_connection().handle.cursor().execute(LOST.format(values)).fetchall()
                if found:
                    lost = " ".join(letter for (letter,) in found)
                    raise error(f"the database's code page does not have {lost}, and dbt-sqlserver sends SQL in it")
                kept.update(asked)
            return send(self, sql, *more, **named)

        manager.add_query = add_query


def letters(sql: str) -> set[str]:
    """Return the letters beyond ASCII of what a batch carries in ``EXEC('…')``, but for those in comments."""
    carried = [] if sql.isascii() else CARRIED.findall(sql)
    kept = (COMMENTED.sub(lambda found: found[1] or " ", text.replace("''", "'")) for text in carried)
    return {letter for text in kept for letter in text if not letter.isascii()}


def start_helper() -> None:
    """Start the process that multiprocessing keeps beside dbt's locks, while the secret is not in what it inherits."""
    secrets = {name: os.environ.pop(name) for name in tuple(os.environ) if name.startswith(SECRET_PREFIX)}
    resource_tracker.ensure_running()
    os.environ.update(secrets)


def forbid_network() -> None:
    """Make every outgoing connection of Python code an error; the profile's address answers nobody else either."""

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        reaches_out = event in ("socket.getaddrinfo", "socket.gethostbyname", "urllib.Request")
        if reaches_out or (event == "socket.connect" and arguments[0].family != socket.AF_UNIX):
            raise RuntimeError(f"no network while a project is compiled: {event}")

    sys.addaudithook(audit)


def scrub(text: str | None) -> str:
    """Return a bounded message without secrets, control characters and the paths of this job's own directories."""
    found = text or ""
    for path in OWN_PATHS:
        found = found.replace(f"{path}/", "").replace(path, ".")
    for name, value in os.environ.items():
        if name.startswith(SECRET_PREFIX) and value:
            found = found.replace(value, "*****")
    printable = "".join(letter if letter.isprintable() or letter == "\n" else " " for letter in found)
    return printable.strip()[:MAX_MESSAGE]


def main() -> int:
    """Do the job on standard input."""
    # Other processes of this user can then not read the secret from here.
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    tell = Telling(int(os.environ.pop(EVENTS_VARIABLE)))
    job: Job = json.loads(sys.stdin.readline())
    OWN_PATHS.extend((job["work"], job["project"]))
    jobs = {"compile": compile_project, "build": build}
    try:
        require_adapter(job["adapter"])
        return jobs[job["do"]](job, tell)
    except Refusal as refusal:
        tell(event="refused", reason=refusal.reason, message=scrub(refusal.message))
        return 2


if __name__ == "__main__":
    sys.exit(main())
