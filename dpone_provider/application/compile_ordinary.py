"""The ordinary constituent: transfers as people declared them, columns pinned."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, assert_never

from dpone_provider.application.binding import lookup, registered
from dpone_provider.application.compile_parts import (
    NEXT,
    Compilation,
    CompiledConstituent,
    Pinned,
    constituent,
    require_cell,
    target_fields,
    transfer_pack,
)
from dpone_provider.application.dag_plans import Planned, transfer_dag
from dpone_provider.application.ports.workspace import SchemaReaders
from dpone_provider.documents.canonical import canonical_digest
from dpone_provider.documents.transfer_pack import ColumnText
from dpone_provider.documents.workspace import OrdinaryTransfer
from dpone_provider.domain.cells import Asked, Feature, Job, JobKind
from dpone_provider.domain.identity import EngineKind, Relation
from dpone_provider.domain.outcomes import refuse, unwind
from dpone_provider.domain.schema.tables import Absent, Observed, Occupied, Present, Table, Unreadable

_ROUTES: Final = {
    "nested": Feature.NESTED_ROUTE,
    "snapshot": Feature.SNAPSHOT_ROUTE,
    "backfill": Feature.BACKFILL_ROUTE,
}


def compile_transfers(compilation: Compilation, schemas: SchemaReaders) -> CompiledConstituent:
    """Return the ordinary constituent of a workspace.

    Raises:
        DponeError: Refused with the first reason, naming the transfer.
    """
    transfers = sorted(compilation.workspace.ordinary, key=lambda each: each.id)
    for transfer in transfers:
        source, target = (
            compilation.connection(transfer.source.connection),
            compilation.connection(transfer.to.connection),
        )
        require_cell(_job(transfer), source, target, transfer.to.namespace)
    observed = _observe(compilation, [each for each in transfers if each.columns is None], schemas)
    pinned = {each.id: _pin(each, observed.get(each.id)) for each in transfers}
    planned = [_plan(compilation, each, pinned[each.id]) for each in transfers]
    tree = canonical_digest([each.model_dump(mode="json") for each in transfers])
    dags = [transfer_dag(compilation.workspace.name, each) for each in planned]
    return constituent("ordinary", compilation, tree, planned, dags, {}, pinned.values())


def workload_id(transfer: OrdinaryTransfer) -> str:
    """Return the workload id of an ordinary transfer."""
    return f"ordinary.{transfer.id}"


def _job(transfer: OrdinaryTransfer) -> Job:
    asked = [Asked(Feature.CUSTOM_HOOK, f"hook {hook[:60]!r}") for hook in transfer.hooks]
    if transfer.source.query is not None:
        asked.append(Asked(Feature.SOURCE_QUERY, "a query as source"))
    if transfer.route in _ROUTES:
        asked.append(Asked(_ROUTES[transfer.route], f"route {transfer.route}"))
    return Job(
        workload_id=workload_id(transfer),
        kind=JobKind.TRANSFER,
        strategy=transfer.strategy,
        atomicity=transfer.state.atomicity,
        provisioning=transfer.state.provisioning,
        asked=tuple(asked),
    )


def _observe(
    compilation: Compilation, transfers: Sequence[OrdinaryTransfer], schemas: SchemaReaders
) -> Mapping[str, Observed]:
    """Read every source whose columns are not declared: one batch for each connection."""
    by_alias: dict[str, list[OrdinaryTransfer]] = defaultdict(list)
    for transfer in transfers:
        by_alias[transfer.source.connection].append(transfer)
    found: dict[str, Observed] = {}
    for alias, group in sorted(by_alias.items()):
        reader = schemas.schema_reader(registered(*lookup(compilation.environment, alias)))
        relations = [Relation(each.source.schema_name, each.source.table) for each in group]
        found |= {each.id: seen for each, seen in zip(group, reader.tables(relations), strict=True)}
    return found


def _pin(transfer: OrdinaryTransfer, observed: Observed | None) -> Pinned:
    if observed is None:
        return Pinned(
            workload_id=workload_id(transfer),
            columns=transfer.columns or (),
            key=transfer.key or (),
            came_from="the workspace",
        )
    table = _present(transfer, observed)
    return Pinned(
        workload_id=workload_id(transfer),
        columns=tuple(ColumnText.of(column) for column in table.columns),
        key=table.primary_key or () if transfer.key is None else transfer.key,
        came_from=f"{transfer.source.connection} {table.relation}, as read now",
    )


def _present(transfer: OrdinaryTransfer, observed: Observed) -> Table:
    subject = f"source {transfer.source.schema_name}.{transfer.source.table} of workload {workload_id(transfer)}"
    match observed:
        case Present():
            return observed.table
        case Occupied():
            found, reason = f"a {observed.kind}", "source_not_a_table"
        case Absent():
            found, reason = "nothing at that name", "source_missing"
        case Unreadable():
            # The reader's own reason (an unsupported column type, a missing right) is what a person needs.
            problem = observed.failure.problem
            unwind(
                refuse(
                    problem.reason,
                    f"{subject}, {problem.subject}",
                    found=problem.found,
                    allowed=problem.allowed,
                    next_command=problem.next_command,
                )
            )
        case _:
            assert_never(observed)
    unwind(refuse(reason, subject, found=found, allowed="an ordinary table", next_command=NEXT))


def _plan(compilation: Compilation, transfer: OrdinaryTransfer, pinned: Pinned) -> Planned:
    source, target = compilation.connection(transfer.source.connection), compilation.connection(transfer.to.connection)
    fields = {
        "origin": {"kind": "ordinary"},
        "source": {
            "connection": transfer.source.connection,
            "kind": EngineKind(source.kind),
            "schema": transfer.source.schema_name,
            "table": transfer.source.table,
        },
        "target": target_fields(pinned.workload_id, transfer.to, EngineKind(target.kind)),
        "strategy": transfer.strategy,
        "state": transfer.state,
    }
    pack = transfer_pack(compilation.where, pinned.workload_id, transfer, fields, pinned.columns, pinned.key)
    return Planned(pack=pack, file=f"ordinary/{transfer.id}.json", retries=transfer.retries)
