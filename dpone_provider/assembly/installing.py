"""What an administrator does with the installation of SQL Server: list what is shipped, compare, try the gate.

``reader_of`` and ``trial_of`` import SQL Server's adapter when it is met.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpone_provider.adapters.system.entropy import SystemEntropy
from dpone_provider.application.installation.check import check, digests
from dpone_provider.application.installation.rendering import require_value
from dpone_provider.application.installation.self_test import self_test
from dpone_provider.application.installation.shipped import Names, Target
from dpone_provider.application.ledger.calls import settled
from dpone_provider.application.ports.installation import GateTrial, InstallationReader
from dpone_provider.assembly.worker_job import Login
from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.outcomes import refuse, unwind


@dataclass(frozen=True, slots=True)
class Asked:
    """The names that were filled into the scripts, and the enrolled databases."""

    names: Names
    targets: tuple[Target, ...]


def asked(control_database: str, controller_login: str, targets: Sequence[str]) -> Asked:
    """Return what was asked for; a target reads ``database:schema,schema``, and may be given in parts.

    Raises:
        DponeError: Refused ``target_form``, or ``script_variable_unsafe`` for a name that no script was filled in with.
    """
    require_value("control_database", control_database, where="--control-database")
    require_value("controller_login", controller_login, where="--controller-login")
    schemas: dict[str, dict[str, None]] = {}
    for text in targets:
        database, listed = _target(text)
        schemas.setdefault(database, {}).update(dict.fromkeys(listed))
    names = Names(control_database=control_database, controller_login=controller_login)
    return Asked(names, tuple(Target(database=name, schemas=tuple(managed)) for name, managed in schemas.items()))


def shipped(wanted: Asked) -> list[dict[str, str]]:
    """Return every object that is shipped, in words, with its digest."""
    return [
        {"place": str(place), "kind": str(one.kind), "name": one.name, "digest": digest}
        for place, one, digest in digests(wanted.names, wanted.targets)
    ]


def compare(reader: InstallationReader, wanted: Asked, instance: str) -> None:
    """Compare what is installed.

    Raises:
        DponeError: Refused ``not_as_shipped`` that names each object, or what the reader could not read.
    """
    found = settled(check(reader, wanted.names, wanted.targets))
    if found:
        unwind(
            refuse(
                "not_as_shipped",
                instance,
                found="; ".join(map(str, found)),
                allowed="every object as this version ships it (dpone control objects)",
                next_command="have an administrator look at each, then run the script that installs it again",
            )
        )


def try_gate(trial: GateTrial, instance: str) -> None:
    """Try the gate.

    Raises:
        DponeError: it does not hold, or nobody can tell.
    """
    settled(self_test(trial, instance))


def reader_of(login: Login, control_database: str) -> InstallationReader:
    """Return the reader of the instance of ``login``.

    Raises:
        DponeError: Refused ``installed_by_scripts``.
    """
    _require_mssql(login)
    from dpone_provider.adapters.mssql.installation import MssqlInstallationReader
    from dpone_provider.adapters.mssql.session import MssqlServer

    return MssqlInstallationReader(MssqlServer(login.endpoint, login.credential), control_database)


def trial_of(login: Login, control_database: str) -> GateTrial:
    """Return the try of the gate of the instance of ``login``.

    Raises:
        DponeError: Refused ``installed_by_scripts``.
    """
    _require_mssql(login)
    from dpone_provider.adapters.mssql.installation import MssqlGateTrial
    from dpone_provider.adapters.mssql.session import MssqlServer

    server = MssqlServer(login.endpoint, login.credential)
    return MssqlGateTrial(server=server, control_database=control_database, entropy=SystemEntropy())


def _require_mssql(login: Login) -> None:
    kind = login.endpoint.kind
    if kind is EngineKind.MSSQL:
        return
    unwind(
        refuse(
            "installed_by_scripts",
            str(login.endpoint),
            found=f"a database of kind {kind}",
            allowed="SQL Server; PostgreSQL verifies itself by a script, and on ClickHouse nothing is installed",
            next_command="dpone control render 050_verify.sql for PostgreSQL, dpone control enroll for ClickHouse",
        )
    )


def _target(text: str) -> tuple[str, tuple[str, ...]]:
    database, _, schemas = text.partition(":")
    listed = tuple(schemas.split(","))
    if not database or not all(listed):
        unwind(
            refuse(
                "target_form",
                f"--target {text}",
                found="no database, or no schema",
                allowed="DATABASE:SCHEMA,SCHEMA",
                next_command="name the database and its managed schemas",
            )
        )
    for name in (database, *listed):
        require_value("target_database", name, where=f"--target {text}")
    return database, listed
