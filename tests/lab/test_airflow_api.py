"""What the lab makes of Airflow's API: answers, refusals, and an Airflow that has ended."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from dpone_provider.domain.outcomes import DponeError, fail
from dpone_provider.domain.secret import Secret
from dpone_provider.lab.airflow_api import AirflowApi, AirflowRun
from dpone_provider.lab.ports import free_port


@dataclass(slots=True)
class StandIn:
    """Answers as Airflow would: by path, and only who has logged in."""

    answers: dict[str, object] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def answer(self, method: str, path: str, body: bytes, token: str | None) -> tuple[int, object]:
        if path == "/auth/token":
            right = json.loads(body) == {"username": "admin", "password": "opensesame"}
            return (201, {"access_token": "granted"}) if right else (401, {"detail": "Invalid credentials"})
        if token != "Bearer granted":
            return 401, {"detail": "Not authenticated"}
        self.asked.append(f"{method} {path}")
        found = self.answers.get(path.split("?")[0])
        return (200, found) if found is not None else (404, {"detail": "not found"})


@contextmanager
def serving(stand_in: StandIn) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            status, found = stand_in.answer(self.command, self.path, body, self.headers.get("Authorization"))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(found).encode())

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, format: str, *args: object) -> None:
            """Keep the test's output to itself."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def nothing() -> None:
    """Airflow lives."""


def api(port: int, password: str = "opensesame", alive: Callable[[], None] = nothing) -> AirflowApi:
    return AirflowApi(port, Secret(password), alive)


RUN = AirflowRun("sales.orders", "manual__2026-11-29T12:00:00+00:00")


def test_a_run_is_triggered_and_waited_for() -> None:
    stand_in = StandIn(
        {"/api/v2/dags/sales.orders/dagRuns": {"dag_run_id": RUN.run_id}, RUN.path: {"state": "success"}}
    )
    with serving(stand_in) as port:
        asking = api(port)
        assert asking.trigger("sales.orders") == RUN
        assert asking.wait(RUN, seconds=1) == "success"
    assert stand_in.asked == [
        "POST /api/v2/dags/sales.orders/dagRuns",
        "GET /api/v2/dags/sales.orders/dagRuns/manual__2026-11-29T12%3A00%3A00%2B00%3A00",
    ]


def test_a_dag_is_told_with_its_newest_version_and_a_stale_one_not_at_all() -> None:
    dags = [
        {"dag_id": "a", "is_stale": False},
        {"dag_id": "old", "is_stale": True},
        {"dag_id": "new", "is_stale": False},
    ]
    versions = [{"dag_id": "a", "bundle_version": "2.x"}, {"dag_id": "a", "bundle_version": "1.x"}]
    stand_in = StandIn({"/api/v2/dags": {"dags": dags}, "/api/v2/dags/~/dagVersions": {"dag_versions": versions}})
    with serving(stand_in) as port:
        asking = api(port)
        assert asking.dags() == {"a": "2.x", "new": None}
        asking.wait_for_dags(["a"], generation=2, seconds=1)
        with pytest.raises(DponeError, match="DAGs a, new of generation 2"):
            asking.wait_for_dags(["a", "new"], generation=2, seconds=0)


def test_a_refusal_is_told_with_what_was_asked() -> None:
    with serving(StandIn()) as port:
        with pytest.raises(DponeError, match=r"airflow_refused: POST /api/v2/dags/gone/dagRuns: found 404.*not found"):
            api(port).trigger("gone")
        with pytest.raises(DponeError, match="401") as raised:
            api(port, password="wrong-one").trigger("gone")
        assert "wrong-one" not in str(raised.value)


def test_waiting_ends_with_the_deadline_or_with_airflow() -> None:
    def dead() -> None:
        raise DponeError(fail("airflow_process_ended", "x", found="it ended", allowed="y", next_command="z"))

    with serving(StandIn({RUN.path: {"state": "running"}})) as port:
        with pytest.raises(DponeError, match="airflow_too_slow"):
            api(port).wait(RUN, seconds=0)
        with pytest.raises(DponeError, match="airflow_process_ended"):
            api(port, alive=dead).wait(RUN, seconds=60)


def test_a_server_that_is_not_there_yet_is_no_error_to_whoever_waits() -> None:
    asking = api(free_port())
    assert asking.health() is None
    assert asking.warm() is False


def test_a_log_is_one_line_per_event_with_what_was_raised() -> None:
    raised = {"event": "Task failed", "error_detail": [{"exc_type": "AirflowFailException", "exc_value": "why"}]}
    events = {"content": ["plain", {"event": "begins"}, raised]}
    with serving(StandIn({f"{RUN.path}/taskInstances/t/logs/1": events})) as port:
        assert api(port).logs(RUN, "t") == "plain\nbegins\nTask failed | AirflowFailException: why"
