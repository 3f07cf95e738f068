"""What an operator sees of a server that cannot be used: exit code, reason, both names and the next command.

The server is the tests' own, over Microsoft's driver; the commands are those that an administrator runs first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import quote

import pytest
from click.testing import CliRunner, Result

from dpone_provider.application.installation.shipped import Names, expected
from dpone_provider.cli.root import dpone
from tests.adapters.mssql.fake_instance import FakeInstance
from tests.adapters.mssql.odbc import PASSWORD, needs_odbc
from tests.adapters.mssql.tds_server import Answer, Cell, Cut, Error, Rows, serving
from tests.adapters.mssql.tds_tls import self_signed

pytestmark = needs_odbc
REFERENCE = "env:DPONE_TEST_CONTROLLER"
CLOSED = Error(4060, 'Cannot open database "sales" requested by the login. The login failed.', 11)
LOOKING = [
    pytest.param(("control", "pin", "--credential", REFERENCE), id="pin"),
    pytest.param(("control", "self-test", "--credential", REFERENCE), id="self-test"),
    pytest.param(("control", "check", "--credential", REFERENCE), id="check"),
]


def run(
    monkeypatch: pytest.MonkeyPatch, port: int, *arguments: str, password: str = PASSWORD, query: str = ""
) -> Result:
    """Run a command with the controller's credential for a port of this machine."""
    url = f"mssql://controller:{quote(password, safe='')}@127.0.0.1:{port}/sales{query}"
    monkeypatch.setenv("DPONE_TEST_CONTROLLER", url)
    return CliRunner().invoke(dpone, [*arguments, "--format", "json"])


def told(done: Result) -> dict[str, str]:
    """Return the failure that a command ended with; no password is in it."""
    assert PASSWORD not in done.output
    value: dict[str, str] = json.loads(done.output)
    return value


@pytest.mark.parametrize("command", LOOKING)
def test_a_certificate_that_is_not_trusted(monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]) -> None:
    """Verifying is the default; no password was sent."""
    with serving(lambda text, values, session: [], tls=self_signed()) as server:
        done = run(monkeypatch, server.port, *command)
        assert server.passwords == []
    said = told(done)
    assert (done.exit_code, said["reason"]) == (10, "certificate_not_trusted")
    assert f"127.0.0.1:{server.port}" in said["subject"]
    assert "self-signed certificate" in said["found"]
    assert "update-ca-certificates" in said["next_command"]


@pytest.mark.parametrize("command", LOOKING)
def test_a_database_that_is_offline(monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]) -> None:
    def script(text: str, values: Sequence[Cell], session: int) -> Sequence[Answer]:
        return [Rows(("s", "a"), [("OFFLINE", "MULTI_USER")])] if "sys.databases" in text else []

    def door(user: str, password: str, session: int) -> Error | None:
        return None if server.databases[-1] == "master" else CLOSED

    with serving(script, door=door) as server:
        done = run(monkeypatch, server.port, *command, "--tls", "disabled")
    said = told(done)
    assert (done.exit_code, said["reason"]) == (10, "database_unavailable")
    assert "database sales is OFFLINE" in said["found"]
    assert "controller" in said["subject"]


def test_a_password_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeInstance().serving() as instance:
        done = run(
            monkeypatch,
            instance.server.port,
            *("control", "pin", "--credential", REFERENCE, "--tls", "disabled"),
            password="another",
        )
    said = told(done)
    assert (done.exit_code, said["reason"]) == (10, "login_refused")
    assert "18456" in said["found"]
    assert "another" not in done.output


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeInstance().serving() as instance:
        port = instance.server.port
    done = run(monkeypatch, port, "control", "pin", "--credential", REFERENCE, "--tls", "disabled")
    assert done.exit_code == 12
    assert f"nobody listens at 127.0.0.1:{port}" in told(done)["found"]


def refusing(error: Error) -> Callable[[str, Sequence[Cell], int], Sequence[Answer]]:
    """Let everybody in, and refuse every question about what is installed."""

    def script(text: str, values: Sequence[Cell], session: int) -> Sequence[Answer]:
        if "dpone" in text:
            return [error]
        return [Rows(("may_see",), [(1,)])] if "VIEW ANY DEFINITION" in text else []

    return script


@pytest.mark.parametrize("command", LOOKING[1:])
@pytest.mark.parametrize(
    ("error", "reason", "next_word"),
    [
        (Error(229, "The EXECUTE permission was denied on the object 'describe'.", 14), "permission_missing", "grants"),
        (
            Error(2812, "Could not find stored procedure 'dpone_gate.describe'.", 16),
            "control_schema_missing",
            "install",
        ),
        (Error(911, "Database 'dpone_control' does not exist.", 16), "control_schema_missing", "--control-database"),
    ],
)
def test_what_is_not_granted_or_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], error: Error, reason: str, next_word: str
) -> None:
    """The right and the object in the server's words, the login, and what puts it right."""
    with serving(refusing(error)) as server:
        done = run(monkeypatch, server.port, *command, "--tls", "disabled")
    said = told(done)
    assert (done.exit_code, said["reason"], said["state_change"]) == (10, reason, "nothing changed")
    assert error.text in said["found"]
    assert "login controller" in said["subject"]
    assert next_word in said["next_command"]


@pytest.mark.parametrize("command", LOOKING)
def test_a_server_that_falls_silent_was_only_read(monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]) -> None:
    """It lets the login in, and then hangs up at the first question."""
    with serving(lambda text, values, session: [Cut()]) as server:
        done = run(monkeypatch, server.port, *command, "--tls", "disabled")
    said = told(done)
    assert (done.exit_code, said["state_change"]) == (12, "nothing changed")
    assert f"127.0.0.1:{server.port}" in said["subject"]


@pytest.mark.parametrize("command", LOOKING)
def test_the_url_says_how_to_connect(monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]) -> None:
    """As the authority's URL does: what is trusted there is trusted here, without an option."""
    with serving(lambda text, values, session: [Cut()], tls=self_signed()) as server:
        done = run(monkeypatch, server.port, *command, query="?encrypt=trust")
        assert server.passwords == [PASSWORD]
    assert done.exit_code == 12


@dataclass
class Stopping(FakeInstance):
    """An instance with everything installed, that hangs up at one of the batches that it is sent."""

    at: int | None = None

    def answer(self, text: str, values: Sequence[Cell], number: int) -> Sequence[Answer]:
        """Answer, or hang up."""
        return [Cut()] if len(self.server.batches) - 1 == self.at else super().answer(text, values, number)


def everything_installed() -> dict[str | None, list[tuple[Cell, ...]]]:
    """Return what an instance says of itself on which each script was run."""
    found = expected(Names(control_database="dpone_control", controller_login="dpone_controller"), ())
    return {
        place.database or None: [(str(one.kind), one.name, one.definition, int(one.enabled)) for one in objects]
        for place, objects in found.items()
    }


@pytest.mark.parametrize("command", LOOKING)
def test_a_server_that_stops_at_any_step(monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]) -> None:
    """Never a success, never a shorter list: unknown at each step; what only reads says that nothing changed."""

    def looked(at: int | None) -> tuple[Result, FakeInstance]:
        with Stopping(described=everything_installed(), at=at).serving() as instance:
            return run(monkeypatch, instance.server.port, *command, "--tls", "disabled"), instance

    done, whole = looked(None)
    assert (done.exit_code, whole.logins) == (0, {}), done.output
    steps = len(whole.server.batches)
    assert steps >= 4
    changes = set()
    for at in range(steps):
        done, instance = looked(at)
        said = told(done)
        assert (done.exit_code, said["outcome"]) == (12, "failure"), (at, said)
        changes.add(said["state_change"])
        if instance.logins:
            assert "dpone recover" in said["next_command"]
    assert changes == {"nothing changed", *(["state may have changed"] if "self-test" in command else [])}
