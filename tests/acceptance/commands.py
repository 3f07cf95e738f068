"""``dpone`` as a shell or a program meets it: arguments in; exit code, standard output and standard error out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from click.testing import CliRunner

from dpone_provider.cli.root import dpone as root
from tests.acceptance.world import Deployment, Place


@dataclass(frozen=True, slots=True)
class Said:
    """What a command said, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """Standard output, which must be one JSON object."""
        found: dict[str, Any] = json.loads(self.out)
        return found

    @property
    def everything(self) -> str:
        """Both streams."""
        return self.out + self.err


def dpone(place: Place, *arguments: str) -> Said:
    """Run a command with a place's settings in its environment. What it raises passes through: no command may."""
    variables = place.settings.variables()
    done = CliRunner().invoke(root, list(arguments), env=variables, catch_exceptions=False)
    return Said(done.exit_code, done.stdout, done.stderr)


def sync_arguments(deployment: Deployment, *more: str, deployment_id: str | None = None) -> tuple[str, ...]:
    """Return the arguments of ``cache-sync`` for a deployment."""
    wanted = deployment_id or deployment.deployment_id
    return "airflow", "cache-sync", "--deployment", str(deployment.directory), "--deployment-id", wanted, *more


def cache_sync(place: Place, deployment: Deployment, *more: str, deployment_id: str | None = None) -> Said:
    """Run ``dpone airflow cache-sync``."""
    return dpone(place, *sync_arguments(deployment, *more, deployment_id=deployment_id))


def refused(place: Place, deployment: Deployment, *more: str, deployment_id: str | None = None) -> dict[str, Any]:
    """Run ``cache-sync`` both ways; both must refuse alike and say that nothing changed. Return the JSON one."""
    text = cache_sync(place, deployment, *more, deployment_id=deployment_id)
    said = cache_sync(place, deployment, *more, "--format", "json", deployment_id=deployment_id)
    assert (text.code, said.code) == (10, 10), text.everything + said.everything
    value = said.json
    assert (value["outcome"], value["class"], value["state_change"]) == ("failure", "refused", "nothing changed")
    assert text.out == ""
    for part in (f"refused: {value['reason']}", "state:   nothing changed", f"next:    {value['next_command']}"):
        assert part in text.err
    return value
