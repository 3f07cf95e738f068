"""Airflow's public REST API, as far as the lab needs it: what a user of Airflow would call, over loopback."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import ProxyHandler, Request, build_opener

from dpone_provider.domain.outcomes import fail, unwind
from dpone_provider.domain.secret import Secret
from dpone_provider.lab.airflow_home import USER
from dpone_provider.lab.ports import LOOPBACK

POLL_SECONDS = 0.25
Seen = TypeVar("Seen")
Json = Mapping[str, Any]
# Never through a proxy of the caller's environment.
_OPENER = build_opener(ProxyHandler({}))


@dataclass(frozen=True, slots=True)
class AirflowRun:
    """One run of one DAG."""

    dag_id: str
    run_id: str

    @property
    def path(self) -> str:
        """Its place in the API."""
        return f"/api/v2/dags/{quote(self.dag_id, safe='')}/dagRuns/{quote(self.run_id, safe='')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOfRun:
    """One task instance: its state in Airflow's words (None: not scheduled yet), the number of its try, seconds."""

    task_id: str
    state: str | None
    try_number: int
    seconds: float | None


@dataclass(slots=True)
class AirflowApi:
    """The API server on loopback ``port``. ``alive`` raises when a process of this Airflow has ended."""

    port: int
    password: Secret
    alive: Callable[[], None]
    _token: Secret | None = field(default=None, repr=False)

    def health(self) -> Json | None:
        """Return what the server says of all components, or None while it does not answer."""
        return self._try("/api/v2/monitor/health")

    def warm(self) -> bool:
        """Ask the execution API once: the first question costs it seconds, which would be the first task's."""
        return self._try("/execution/health") is not None

    def dags(self) -> dict[str, str | None]:
        """Return the DAGs that are not stale, each with the bundle version whose tasks a new run of it gets."""
        standing = self._get("/api/v2/dags", limit=1000)["dags"]
        versions = self._get("/api/v2/dags/~/dagVersions", limit=1000, order_by="-version_number")["dag_versions"]
        newest: dict[str, str | None] = {}
        for one in versions:
            newest.setdefault(one["dag_id"], one["bundle_version"])
        return {dag["dag_id"]: newest.get(dag["dag_id"]) for dag in standing if not dag["is_stale"]}

    def wait_for_dags(self, dag_ids: Iterable[str], *, generation: int, seconds: float) -> None:
        """Wait until each of the DAGs shows the deployment of that generation.

        Raises:
            DponeError: one of them does not after ``seconds``.
        """
        wanted = tuple(dag_ids)

        def shown() -> bool | None:
            found = self.dags()
            return all((found.get(one) or "").startswith(f"{generation}.") for one in wanted) or None

        self.until(shown, what=f"DAGs {', '.join(wanted)} of generation {generation}", seconds=seconds)

    def import_errors(self) -> tuple[str, ...]:
        """Return the texts of Airflow's import errors."""
        return tuple(one["stack_trace"] for one in self._get("/api/v2/importErrors", limit=1000)["import_errors"])

    def trigger(self, dag_id: str) -> AirflowRun:
        """Start a run, as the button does; return it."""
        body = {"logical_date": None}
        run = self._call("POST", f"/api/v2/dags/{quote(dag_id, safe='')}/dagRuns", body)
        return AirflowRun(dag_id, run["dag_run_id"])

    def state(self, run: AirflowRun) -> str:
        """Return the state of a run: queued, running, success or failed."""
        return str(self._get(run.path)["state"])

    def wait(self, run: AirflowRun, *, seconds: float) -> str:
        """Return the end state of a run.

        Raises:
            DponeError: it has none after ``seconds``.
        """

        def ended() -> str | None:
            state = self.state(run)
            return state if state in ("success", "failed") else None

        return self.until(ended, what=f"run {run.run_id} of DAG {run.dag_id} to end", seconds=seconds)

    def task_states(self, run: AirflowRun) -> dict[str, TaskOfRun]:
        """Return the task instances of a run by task id."""
        found = self._get(f"{run.path}/taskInstances", limit=1000)["task_instances"]
        return {
            one["task_id"]: TaskOfRun(
                task_id=one["task_id"],
                state=one["state"],
                try_number=one["try_number"],
                seconds=one["duration"],
            )
            for one in found
        }

    def returned(self, run: AirflowRun, task_id: str) -> Any:
        """Return what a task left in XCom."""
        path = f"{run.path}/taskInstances/{quote(task_id, safe='')}/xcomEntries/return_value"
        return self._get(path, deserialize="true")["value"]

    def logs(self, run: AirflowRun, task_id: str, try_number: int = 1) -> str:
        """Return the log of one try, one line per event, errors with their text."""
        path = f"{run.path}/taskInstances/{quote(task_id, safe='')}/logs/{try_number}"
        events = self._get(path, full_content="true")["content"]
        return "\n".join(_line(one) for one in events)

    def clear(self, run: AirflowRun, *task_ids: str) -> None:
        """Have tasks of a run executed again."""
        body = {"dry_run": False, "dag_run_id": run.run_id, "task_ids": list(task_ids), "only_failed": False}
        self._call("POST", f"/api/v2/dags/{quote(run.dag_id, safe='')}/clearTaskInstances", body)

    def until(self, look: Callable[[], Seen | None], *, what: str, seconds: float) -> Seen:
        """Return the first thing that ``look`` finds.

        Raises:
            DponeError: it finds nothing within ``seconds``, or Airflow has ended.
        """
        deadline = time.monotonic() + seconds
        while (seen := look()) is None:
            self.alive()
            if time.monotonic() > deadline:
                _in_vain(what, seconds)
            time.sleep(POLL_SECONDS)
        return seen

    def _get(self, path: str, **query: object) -> Json:
        return self._call("GET", f"{path}?{urlencode(query)}" if query else path)

    def _try(self, path: str) -> Json | None:
        try:
            return self._send(Request(f"http://{LOOPBACK}:{self.port}{path}"))
        except (URLError, HTTPException, ConnectionError, TimeoutError):
            return None

    def _call(self, method: str, path: str, body: Json | None = None) -> Json:
        if self._token is None:
            login = {"username": USER, "password": self.password.reveal()}
            answer = self._request("POST", "/auth/token", login, {})
            self._token = Secret(answer["access_token"])
        headers = {"Authorization": f"Bearer {self._token.reveal()}", "Accept": "application/json"}
        return self._request(method, path, body, headers)

    def _request(self, method: str, path: str, body: Json | None, headers: Mapping[str, str]) -> Json:
        data = None if body is None else json.dumps(body).encode()
        kind = {} if data is None else {"Content-Type": "application/json"}
        url = f"http://{LOOPBACK}:{self.port}{path}"
        try:
            return self._send(Request(url, data=data, method=method, headers={**headers, **kind}))
        except HTTPError as error:
            unwind(
                fail(
                    "airflow_refused",
                    f"{method} {path}",
                    found=f"{error.code}: {error.read(500).decode(errors='replace')}",
                    allowed="an answer of Airflow's API",
                    next_command="read the logs of this Airflow",
                )
            )

    def _send(self, request: Request) -> Json:
        with _OPENER.open(request, timeout=60.0) as answer:
            content = answer.read()
        found: Json = json.loads(content) if content else {}
        return found


def _line(event: Json | str) -> str:
    if isinstance(event, str):
        return event
    raised = [f"{one.get('exc_type')}: {one.get('exc_value')}" for one in event.get("error_detail") or ()]
    return " | ".join([str(event.get("event", "")), *raised])


def _in_vain(what: str, seconds: float) -> None:
    unwind(
        fail(
            "airflow_too_slow",
            "the lab's Airflow",
            found=f"waited {seconds:g} seconds in vain for {what}",
            allowed="an Airflow that gets there",
            next_command="read the logs of this Airflow; run the command again",
        )
    )
