"""dbt, simulated: the runner that turns packs into commands, and a program that builds nodes one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dpone_provider.application.ports.dbt import CompiledAs, DbtFinished, DbtNodeEvent, NodeStatus
from dpone_provider.application.ports.process import ChildCommand
from dpone_provider.domain.connection import Credential, Endpoint
from dpone_provider.domain.identity import Relation
from dpone_provider.domain.schema.tables import Column
from dpone_provider.domain.secret import Secret
from tests.simulation.children import ServerAt, SimulatedChild
from tests.simulation.server import ConnectionLost, LoginDenied, StoredTable
from tests.simulation.tables import batch_of
from tests.simulation.wire import Call, Fault, Wire

DBT = "dbt"
PASSWORD = "DBT_ENV_SECRET_PASSWORD"


@dataclass(slots=True)
class SimulatedDbt:
    """``DbtRunner``."""

    endpoints: dict[str, Endpoint] = field(default_factory=dict)

    def command(
        self,
        bundle: Path,
        directory: Path,
        selection: Sequence[str],
        endpoint: Endpoint,
        schema: str,
        credential: Credential,
        threads: int,
        compiled: CompiledAs,
    ) -> ChildCommand:
        """Return the command: nodes in argv, the secret in the environment."""
        self.endpoints[credential.user] = endpoint
        return ChildCommand(
            argv=(DBT, *selection),
            environment={"DBT_USER": credential.user},
            secret_environment={PASSWORD: Secret(credential.password.reveal())},
            standard_input=None,
            directory=directory,
        )

    def read(self, events: Iterator[Mapping[str, object]]) -> Iterator[DbtNodeEvent | DbtFinished]:
        """Translate."""
        for event in events:
            if "node" in event:
                yield DbtNodeEvent(str(event["node"]), NodeStatus(str(event["status"])), "")
            elif "finished" in event:
                results = event["results"]
                assert isinstance(results, dict)
                problem = event.get("problem")
                yield DbtFinished(
                    success=event["finished"] is True,
                    results=tuple(sorted((node, NodeStatus(status)) for node, status in results.items())),
                    problem=None if problem is None else str(problem),
                )


@dataclass(slots=True)
class DbtProgram:
    """Logs in with the issued login and builds each node. ``ends`` says how nodes end that do not succeed.

    ``dies_in`` is a node during which the process is killed; ``code`` is dbt's exit code when it ends by itself.
    """

    wire: Wire
    dbt: SimulatedDbt
    server_at: ServerAt
    builds: Mapping[str, Relation] = field(default_factory=dict)
    columns: tuple[Column, ...] = ()
    rows: tuple[tuple[object, ...], ...] = ()
    ends: dict[str, NodeStatus] = field(default_factory=dict)
    dies_in: str | None = None
    forgets: set[str] = field(default_factory=set)
    also: tuple[str, ...] = ()

    def __call__(self, child: SimulatedChild) -> int:
        """Run."""
        user = child.command.environment["DBT_USER"]
        server = self.server_at(self.dbt.endpoints[user])
        credential = Credential(user, child.command.secret_environment[PASSWORD])
        results: dict[str, str] = {}
        try:
            with server.session(credential) as session:
                for node in (*child.command.argv[1:], *self.also):
                    child.say({"node": node, "status": "started"})
                    fault = self.wire.send(Call("dbt", "node", node), lambda: None, lambda found: found)
                    if node == self.dies_in:
                        return -9
                    server.require(session)
                    relation = self.builds.get(node)
                    builds = node not in self.forgets and node not in self.ends and fault is not Fault.ERROR
                    if relation is not None and builds:
                        content = [batch_of(self.columns, self.rows)]
                        server.tables[relation] = StoredTable(server.new_identity(), self.columns, content)
                    default = NodeStatus.PASS if node.startswith("test.") else NodeStatus.SUCCESS
                    # A node whose answer is lost is one that failed, to dbt; what it built stays.
                    results[node] = str(self.ends.get(node, default) if fault is None else NodeStatus.ERROR)
                    child.say({"node": node, "status": results[node]})
        except (ConnectionLost, LoginDenied) as error:
            child.say({"finished": False, "results": results, "problem": str(error)})
            return 2
        good = not set(results.values()) & {"error", "fail", "skipped"}
        child.say({"finished": good, "results": results})
        return 0 if good else 1
