"""Aliases to connections: from an environment as a person writes it, and every check that a bound release must pass."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Never

from dpone_provider.application.jobs import cell_of
from dpone_provider.application.loading import LoadedConstituents
from dpone_provider.application.parent import Pack
from dpone_provider.application.refusing import accepted
from dpone_provider.documents.binding_set import Binding, BindingSetV1
from dpone_provider.documents.connection_registry import Connection, ConnectionRegistryV1
from dpone_provider.documents.environment import EnvironmentConnection, EnvironmentDatabase, EnvironmentV1
from dpone_provider.documents.execution_pack import ExecutionPackV2
from dpone_provider.documents.reading import built
from dpone_provider.documents.transfer_pack import TransferPackV1
from dpone_provider.domain.collision import WorkloadRelation, collisions, name_faults, refusal_of
from dpone_provider.domain.footprint import Role
from dpone_provider.domain.identity import (
    EngineKind,
    Family,
    Incarnation,
    IncarnationId,
    Relation,
    Service,
)
from dpone_provider.domain.outcomes import refuse, unwind

_NEXT: Final = "correct the environment file, then `dpone build` again"


def aliases_of(packs: Iterable[Pack]) -> frozenset[str]:
    """Return every alias that some packs need."""
    found: set[str] = set()
    for pack in packs:
        match pack:
            case ExecutionPackV2():
                found.add(pack.connection)
            case TransferPackV1():
                found |= {pack.source.connection, pack.target.connection}
    return frozenset(found)


def lookup(environment: EnvironmentV1, alias: str) -> tuple[str, EnvironmentConnection]:
    """Return reference and connection of an alias.

    Raises:
        DponeError: Refused ``alias_without_connection`` or ``another_family``.
    """
    subject = f"alias {alias} in environment {environment.name}"
    reference = environment.bindings.get(alias)
    connection = environment.connections.get(reference) if reference is not None else None
    if reference is None or connection is None:
        found = "no binding" if reference is None else f"a binding to {reference}, which is not among the connections"
        _refuse("alias_without_connection", subject, found, "a binding to one of the environment's connections")
    if connection.family is not environment.family:
        _refuse("another_family", f"connection {reference}", f"family {connection.family}", f"{environment.family}")
    return reference, connection


def bind(environment: EnvironmentV1, aliases: Iterable[str]) -> tuple[BindingSetV1, ConnectionRegistryV1]:
    """Return binding set and registry for exactly the aliases that are needed.

    Raises:
        DponeError: Refused, as ``lookup``, or ``unsupported_connector``, ``incarnation_differs``, or a contradiction
            within the environment file.
    """
    found = {alias: lookup(environment, alias) for alias in sorted(set(aliases))}
    bindings = BindingSetV1(
        environment=environment.name,
        bindings=tuple(Binding(alias=alias, reference=reference) for alias, (reference, _) in found.items()),
    )
    entries = {reference: registered(reference, connection) for reference, connection in found.values()}
    registry = ConnectionRegistryV1(connections=tuple(entries[reference] for reference in sorted(entries)))
    return bindings, registry


def registered(reference: str, connection: EnvironmentConnection) -> Connection:
    """Return the registry entry of a connection.

    Raises:
        DponeError: Refused, as ``bind``.
    """
    kinds = [kind.value for kind in EngineKind]
    if connection.kind not in kinds:
        _refuse("unsupported_connector", f"connection {reference}", connection.kind, ", ".join(kinds))
    service = Service(EngineKind(connection.kind), connection.composition_service_id)
    return built(
        Connection,
        f"connection {reference} of the environment",
        {
            "reference": reference,
            "kind": service.kind,
            "endpoint": connection.endpoint,
            "tls": connection.tls,
            "composition_service_id": connection.composition_service_id,
            "family": connection.family,
            "databases": tuple(
                _authority(reference, service, name, database)
                for name, database in sorted(connection.databases.items())
            ),
            "credentials": connection.credentials,
            "login_issuer": connection.login_issuer,
        },
        _NEXT,
    )


def require_bound(
    loaded: LoadedConstituents, bindings: BindingSetV1, registry: ConnectionRegistryV1, family: Family
) -> None:
    """Require that every workload can be what it says where it is bound: cell, kinds, databases, schemas, names.

    Collisions are looked for with each name as its own class; the databases' collations come into it at admission.

    Raises:
        DponeError: Refused with the first reason.
    """
    for workload_id, pack in sorted(loaded.packs.items()):
        accepted(cell_of(pack, family))
        _require_target(workload_id, pack, bindings, registry, family)
    owned: dict[tuple[IncarnationId, EngineKind, str], list[WorkloadRelation]] = defaultdict(list)
    for pack in loaded.packs.values():
        connection = _connection(pack_target(pack), bindings, registry)
        incarnation, staging = _incarnation_of(connection)
        owned[incarnation, connection.kind, staging].extend(_written(pack, loaded, incarnation))
    for (_, kind, staging), relations in sorted(owned.items()):
        refused = refusal_of(name_faults(kind, relations, [staging] if staging else [])) or refusal_of(
            collisions(relations)
        )
        if refused is not None:
            unwind(refused)


def require_no_collision_by_alias(loaded: LoadedConstituents) -> None:
    """Require that no two workloads write one relation through one alias: what can be known without an environment.

    Raises:
        DponeError: Refused, naming both owners.
    """
    owned: dict[tuple[str, EngineKind], list[WorkloadRelation]] = defaultdict(list)
    for pack in loaded.packs.values():
        kind = pack.adapter.kind if isinstance(pack, ExecutionPackV2) else pack.target.kind
        owned[pack_target(pack), kind].extend(_written(pack, loaded, IncarnationId(pack_target(pack))))
    for (_, kind), relations in sorted(owned.items()):
        refused = refusal_of(name_faults(kind, relations)) or refusal_of(collisions(relations))
        if refused is not None:
            unwind(refused)


def pack_target(pack: Pack) -> str:
    """Return the alias that a pack writes through."""
    return pack.connection if isinstance(pack, ExecutionPackV2) else pack.target.connection


def _written(pack: Pack, loaded: LoadedConstituents, incarnation: IncarnationId) -> Iterator[WorkloadRelation]:
    def one(relation: Relation, role: Role, node: str) -> WorkloadRelation:
        return WorkloadRelation(
            incarnation_id=incarnation,
            relation_class=relation,
            relation=relation,
            workload_id=pack.id,
            node=node,
            role=role,
        )

    match pack:
        case ExecutionPackV2():
            for node, written in loaded.derived[pack.id].written:
                yield one(written.relation, written.role, node)
        case TransferPackV1():
            yield one(pack.target.relation, Role.TARGET, "")


def _require_target(
    workload_id: str, pack: Pack, bindings: BindingSetV1, registry: ConnectionRegistryV1, family: Family
) -> None:
    match pack:
        case ExecutionPackV2():
            target = _bound(workload_id, pack.connection, pack.adapter.kind, bindings, registry, family)
            if pack.database != target.endpoint.database:
                allowed = f"database {pack.database}, for which the project was compiled"
                found = f"{target.endpoint.database}"
                _refuse("other_database", f"workload {workload_id} on {target.reference}", found, allowed)
            schemas = {written.schema_name for written in pack.writes}
        case TransferPackV1():
            source = _bound(workload_id, pack.source.connection, pack.source.kind, bindings, registry, family)
            if source.credentials.reader is None:
                allowed = "a reader reference: sources are read with read-only credentials"
                _refuse("source_without_reader", f"connection {source.reference}", "none", allowed)
            target = _bound(workload_id, pack.target.connection, pack.target.kind, bindings, registry, family)
            schemas = {pack.target.schema_name}
    if target.credentials.controller is None:
        allowed = "a controller reference: it issues the logins that write"
        _refuse("target_without_controller", f"connection {target.reference}", "none", allowed)
    managed = {schema for database in target.databases for schema in database.managed_schemas}
    if not schemas <= managed:
        found = f"schema {', '.join(sorted(schemas - managed))}"
        allowed = f"managed schemas of {target.reference}: {', '.join(sorted(managed)) or 'none'}"
        _refuse("schema_not_managed", f"workload {workload_id}", found, allowed)


def _bound(
    workload_id: str,
    alias: str,
    kind: EngineKind,
    bindings: BindingSetV1,
    registry: ConnectionRegistryV1,
    family: Family,
) -> Connection:
    connection = _connection(alias, bindings, registry)
    subject = f"workload {workload_id}, alias {alias} bound to {connection.reference}"
    if connection.kind is not kind:
        _refuse("other_engine", subject, connection.kind, f"{kind}, for which the workload was compiled")
    if connection.family is not family:
        _refuse("another_family", subject, f"family {connection.family}", f"family {family}")
    return connection


def _connection(alias: str, bindings: BindingSetV1, registry: ConnectionRegistryV1) -> Connection:
    reference = bindings.reference(alias)
    found = registry.connection(reference) if reference is not None else None
    if found is None:
        allowed = "a binding to an entry of the connection registry"
        _refuse("alias_without_connection", f"alias {alias}", f"{reference or 'no binding'}", allowed)
    return found


def _incarnation_of(connection: Connection) -> tuple[IncarnationId, str]:
    for database in connection.databases:
        if database.name == connection.endpoint.database:
            return database.incarnation_id, database.staging_schema or ""
    found = ", ".join(database.name for database in connection.databases)
    _refuse("database_not_pinned", f"connection {connection.reference}", found, connection.endpoint.database)


def _authority(reference: str, service: Service, name: str, database: EnvironmentDatabase) -> Mapping[str, object]:
    facts = tuple(sorted(database.facts.items()))
    incarnation_id = Incarnation(service, name, facts).incarnation_id
    if database.incarnation_id not in (None, incarnation_id):
        subject = f"database {name} of connection {reference}"
        _refuse("incarnation_differs", subject, database.incarnation_id, f"{incarnation_id}, the id of its facts")
    return {
        "name": name,
        "incarnation_id": incarnation_id,
        "facts": tuple({"name": fact, "value": value} for fact, value in facts),
        "managed_schemas": tuple(sorted(set(database.managed_schemas))),
        "staging_schema": database.staging_schema,
    }


def _refuse(reason: str, subject: str, found: object, allowed: object) -> Never:
    unwind(refuse(reason, subject, found=found, allowed=allowed, next_command=_NEXT))
