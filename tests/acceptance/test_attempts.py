"""Attempts whose login is refused, whose closing meets silent clients, and whose outcome nobody can tell at first."""

from __future__ import annotations

import socket
from dataclasses import replace

import pytest

from dpone_provider.application.attempt import AttemptReport
from dpone_provider.domain.attempt import AttemptState
from dpone_provider.domain.connection import Credential, Endpoint, TlsMode
from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.outcomes import Refused, Unknown
from dpone_provider.domain.secret import Secret
from dpone_provider.lab.provisioning import CONTROLLER
from tests.acceptance.commands import cache_sync, dpone
from tests.acceptance.test_transfers import failed, load
from tests.acceptance.world import Place, succeeded
from tests.adapters.postgres.slow_client import SlowClient

ISSUED = b"user\0dpone_v3_"
"""How the start packet of an issued login to PostgreSQL begins."""
BEFORE_COMMIT = b"SELECT dpone_receipt.add_receipt("
"""The last statement of the worker's transaction."""
OBSERVING = b"dpone publisher: observe"


# ─── a login that is refused ────────────────────────────────────────────────────────────────────────────────────────


def test_a_gate_that_closes_under_the_workers_feet(place: Place) -> None:
    """The child is refused, and looks for no other way in."""
    loaded = load(place)
    place.in_shop("DELETE FROM {orders}")
    wire = place.world.wires["warehouse"]

    def close() -> None:
        place.ledger("UPDATE dpone_control.login_gate SET gate_state = 'CLOSING' WHERE gate_state = 'READY'")

    moment = wire.at_bytes(ISSUED, close)
    wire.logins.clear()
    problem = loaded.fails()
    assert moment.came()
    assert problem.problem.reason == "login_refused"
    users = {user for user, _ in wire.logins}
    assert {user for user in users if not user.startswith("dpone_v3_")} == {CONTROLLER}
    as_controller = [application for user, application in wire.logins if user == CONTROLLER]
    # The controller's own hands, by name; a child is none of them.
    assert {name.split(":")[0] for name in as_controller} <= {"dpone catalog", "dpone gate", "dpone publisher"}
    assert place.attempts()[-1][1] == "FAILED"
    succeeded(place.run(loaded.promoted, "orders"))
    assert place.target("orders") == []


# ─── clients that say nothing ───────────────────────────────────────────────────────────────────────────────────────


def test_silent_clients_do_not_keep_a_gate_from_closing(place: Place) -> None:
    """One that has only connected, one that wants in as the issued login, one as somebody else."""
    loaded = load(place)
    postgres = place.world.lab.postgres
    assert postgres is not None
    endpoint = Endpoint(
        kind=EngineKind.POSTGRES, host=postgres.host, port=postgres.port, database="warehouse", tls=TlsMode.DISABLED
    )
    wire = place.world.wires["warehouse"]
    clients: list[SlowClient] = []

    def come() -> None:
        issued, _ = wire.logins[-1]
        for user in (issued, "warehouse_reader"):
            clients.append(SlowClient(endpoint, Credential(user, Secret("not its password"))))
            clients[-1].send_start_packet()

    with socket.create_connection((postgres.host, postgres.port)):
        moment = wire.at_bytes(ISSUED, come)
        report = succeeded(place.run(loaded.promoted, "orders"))
        assert moment.came()
        assert report.attempt.state is AttemptState.SUCCEEDED
        for client in clients:
            with client:
                assert client.finish() == "refused"


# ─── nobody can tell ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("committed", [True, False])
def test_an_outcome_that_cannot_be_read_blocks_until_it_is_settled(place: Place, committed: bool) -> None:
    """The target is cut off: from the worker before its COMMIT, or not; and from who looks for the receipt."""
    loaded = load(place)
    place.in_shop("DELETE FROM {orders} WHERE id > 1")
    wire = place.world.wires["warehouse"]
    if not committed:
        wire.at_bytes(BEFORE_COMMIT, wire.cut)
    moment = wire.at_bytes(OBSERVING, wire.cut)
    tried = place.tried("the run")
    problem = failed(place.run(loaded.promoted, "orders", tried))
    assert moment.came(), problem
    assert isinstance(problem, Unknown), problem
    assert problem.problem.reason == "commit_unknown"
    (_, (attempt_id, state)) = place.attempts()
    assert state == "COMMIT_UNKNOWN"
    assert f"dpone attempt reconcile {attempt_id}" in problem.problem.next_command

    # Its slots stay its own: for the next try, for another run, for a promotion; the environment stays up.
    for number, run in ((2, "the run"), (1, "another run")):
        refused = failed(place.run(loaded.promoted, "orders", replace(place.tried(run), try_number=number)))
        assert isinstance(refused, Refused)
        assert f"dpone attempt reconcile {attempt_id}" in refused.problem.next_command
    following = place.release(place.transfer("orders", timeout_seconds=60))
    said = cache_sync(place, following, "--format", "json")
    assert (said.code, said.json["reason"]) == (10, "attempt_commit_unknown"), said.everything
    assert f"dpone attempt reconcile {attempt_id}" in said.json["next_command"]
    assert place.states() == ["ACTIVE", "REQUESTED"]
    blocked = dpone(place, "status", "--format", "json").json
    assert any(attempt_id in str(block) for block in blocked["blocks"])

    settled = dpone(place, "attempt", "reconcile", attempt_id, "--format", "json")
    assert settled.code == 0, settled.everything
    assert settled.json["attempt"]["state"] == ("SUCCEEDED" if committed else "FAILED")
    assert len(place.target("orders")) == (1 if committed else 5)
    assert cache_sync(place, following).code == 0
    assert place.states() == ["RETIRED", "ACTIVE"]


def test_an_outcome_that_is_judged(place: Place) -> None:
    """Against or without evidence it needs a reason, and is recorded as what it is."""
    loaded = load(place)
    wire = place.world.wires["warehouse"]
    wire.at_bytes(OBSERVING, wire.cut)
    failed(place.run(loaded.promoted, "orders"))
    (_, (attempt_id, _)) = place.attempts()
    reconcile = ("attempt", "reconcile", attempt_id)
    assert dpone(place, *reconcile, "--as", "failed").code == 2
    assert dpone(place, *reconcile, "--because", "I say so").code == 2
    said = dpone(place, *reconcile, "--as", "failed", "--because", "the target was restored", "--format", "json")
    assert (said.code, said.json["attempt"]["state"]) == (0, "FAILED"), said.everything
    shown = dpone(place, "attempt", "show", attempt_id, "--format", "json")
    judgement = [one["judgement"] for one in shown.json["evidence"] if one.get("judgement")]
    assert [one["because"] for one in judgement] == ["the target was restored"]
    assert judgement[0]["by"]
    assert "SUCCEEDED" in str(shown.json["evidence"]), "what the evidence showed stands beside it"
    again = dpone(place, *reconcile, "--format", "json")
    assert (again.code, again.json["reason"]) == (10, "attempt_is_unknown")


def test_a_clickhouse_publication_whose_answer_is_lost(place: Place) -> None:
    """The exchange is sent and the server is gone; when it is there again, its table's identity decides."""
    place.source("orders")
    promoted = place.promote(place.release(place.onward("orders")))
    succeeded(place.run(promoted, "orders"))
    place.in_shop("DELETE FROM {orders} WHERE id > 1")
    wire = place.world.wires["analytics"]
    moment = wire.at_bytes(b"EXCHANGE TABLES", wire.down)
    problem = failed(place.run(promoted, "orders"))
    assert moment.came()
    assert isinstance(problem, Unknown), problem
    (_, (attempt_id, state)) = place.attempts()
    assert state == "COMMIT_UNKNOWN"
    again = dpone(place, "attempt", "reconcile", attempt_id, "--format", "json")
    assert again.code == 12, again.everything
    wire.up()
    settled = dpone(place, "attempt", "reconcile", attempt_id, "--format", "json")
    assert settled.code == 0, settled.everything
    rows = place.mart("orders")
    assert (settled.json["attempt"]["state"], len(rows)) in (("SUCCEEDED", 1), ("FAILED", 5))
    report = succeeded(place.run(promoted, "orders"))
    assert isinstance(report, AttemptReport)
    assert len(place.mart("orders")) == 1
