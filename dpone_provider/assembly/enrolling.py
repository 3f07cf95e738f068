"""What an administrator does with a database beside running scripts: enrol it on ClickHouse, verify it, pin it.

The pins are what an environment file says of a connection; they are read from the server, never made up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpone_provider.adapters.secrets.references import ReferencedCredentials
from dpone_provider.adapters.system.clock import SystemClock
from dpone_provider.application.admission_rules import require_no_other_writers, require_obeyed
from dpone_provider.application.ledger.calls import settled
from dpone_provider.application.ports.catalog import Enrolment
from dpone_provider.application.ports.ledger import Authority
from dpone_provider.application.unenrolled import NOT_ENROLLED
from dpone_provider.assembly.engines import ENGINES, ControlNames
from dpone_provider.assembly.ledgers import ledger_at
from dpone_provider.assembly.reach import authority_login, require_same_tls, said_tls
from dpone_provider.assembly.worker_job import Login
from dpone_provider.domain.connection import Endpoint, TlsMode
from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.outcomes import Refused, Unknown, refuse, unwind


def login_of(reference: str, asked: TlsMode | None) -> Login:
    """Return the login that a credential reference stands for, and where. Where no TLS mode is asked for it is the
    URL's, or else the certificate is verified.

    Raises:
        DponeError: Refused when the reference cannot be resolved, or its URL says another mode.
    """
    found = settled(ReferencedCredentials().resolve(reference))
    said = said_tls(found, f"credential {reference}")
    tls = asked or said or TlsMode.VERIFY
    require_same_tls(said, tls, f"credential {reference}, --tls")
    endpoint = Endpoint(kind=found.kind, host=found.host, port=found.port, database=found.database, tls=tls)
    return Login(endpoint, found.credential)


def authority_of(reference: str, control_schema: str) -> Authority:
    """Return who the control authority is.

    Raises:
        DponeError: Refused or Unknown when it cannot be reached or is none.
    """
    at = authority_login(ReferencedCredentials(), reference)
    ledger = ledger_at(at, SystemClock(), control_schema=control_schema)
    try:
        return settled(ledger.authority())
    finally:
        ledger.close()


@dataclass(frozen=True, slots=True)
class Pins:
    """A connection's entry of an environment file, as far as the server can tell it.

    ``refused`` is why an enrolment that is there is not fit, so that the entry has no schemas; None for a fit one, and
    for a database that nobody enrolled: a pure source.
    """

    entry: Mapping[str, Any]
    refused: Refused | None


def pins(login: Login, names: ControlNames) -> Pins:
    """Return a connection's entry.

    Raises:
        DponeError: Refused or Unknown when the server cannot be read.
    """
    from dpone_provider.adapters.clickhouse.enrolment import STAGING_DATABASE

    at = login.endpoint
    catalog = ENGINES[at.kind].catalog(login, names)
    incarnation = settled(catalog.incarnation())
    enrolment = catalog.enrolment()
    database: dict[str, Any] = {"facts": dict(incarnation.facts)}
    entry: dict[str, Any] = {
        "kind": at.kind.value,
        "endpoint": {"host": at.host, "port": at.port, "database": at.database},
        "tls": at.tls.value,
        "composition_service_id": incarnation.service.service_id,
        "databases": {at.database: database},
    }
    if isinstance(enrolment, Enrolment):
        entry["family"] = enrolment.family.value
        database["managed_schemas"] = list(enrolment.managed_schemas)
        if at.kind is EngineKind.CLICKHOUSE:
            database |= {"engine": "Atomic", "staging_schema": STAGING_DATABASE}
        return Pins(entry, None)
    if isinstance(enrolment, Unknown):
        unwind(enrolment)
    return Pins(entry, None if enrolment.problem.reason == NOT_ENROLLED else enrolment)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """An enrolment that an administrator's scripts made, and everybody who could write there: who, what, why, how it
    counts."""

    managed_schemas: tuple[str, ...]
    could_write: tuple[Mapping[str, str], ...]


def verify_mssql(login: Login, authority: Authority, control_database: str) -> Verified:
    """Look whether the login's database of SQL Server is enrolled with ``authority`` and fit to be written.

    Raises:
        DponeError: Refused with the reason that admission would give, Unknown when the server cannot be read.
    """
    from dpone_provider.adapters.mssql.catalog import MssqlCatalog
    from dpone_provider.adapters.mssql.session import MssqlServer

    catalog = MssqlCatalog(MssqlServer(login.endpoint, login.credential), control_database)
    enrolment = settled(catalog.enrolment())
    if enrolment.authority_id != authority.authority_id:
        unwind(
            refuse(
                "target_obeys_another_authority",
                str(login.endpoint),
                found=f"authority {enrolment.authority_id}",
                allowed=f"authority {authority.authority_id}",
                next_command="give the reference of the authority that this database was enrolled with",
            )
        )
    # Its mark is admission's to judge, which asks the ledger how far it is.
    require_obeyed(str(login.endpoint), enrolment, authority, enrolment.mark)
    require_no_other_writers(str(login.endpoint), enrolment.other_writers)
    trusted = [one for one in settled(catalog.could_write()) if one.trusted]
    return Verified(
        managed_schemas=enrolment.managed_schemas,
        could_write=tuple(
            {"principal": one.principal, "kind": one.kind, "why": one.why, "counts": "trusted administrator"}
            for one in trusted
        ),
    )


def require_clickhouse(login: Login) -> None:
    """Refuse a database that is enrolled in another way.

    Raises:
        DponeError: Refused ``enrolled_by_scripts``.
    """
    if login.endpoint.kind is not EngineKind.CLICKHOUSE:
        unwind(
            refuse(
                "enrolled_by_scripts",
                str(login.endpoint),
                found=f"a database of kind {login.endpoint.kind}",
                allowed="a ClickHouse database, or one of SQL Server that scripts have enrolled, to be verified",
                next_command="dpone control render 040_enrol_target.sql",
            )
        )


def enrol_clickhouse(login: Login, authority: Authority) -> None:
    """Leave the marker of ``authority`` for the login's database; once more changes nothing.

    Raises:
        DponeError: Refused when the database is not fit to be enrolled, Failed or Unknown with the server's own words.
    """
    from dpone_provider.adapters.clickhouse.enrolment import EnrolmentOrder, enrol
    from dpone_provider.adapters.clickhouse.session import ClickHouseServer

    order = EnrolmentOrder(
        authority_id=authority.authority_id,
        authority_incarnation=authority.incarnation,
        family=authority.family,
        database=login.endpoint.database,
    )
    settled(enrol(ClickHouseServer(endpoint=login.endpoint, credential=login.credential), order))
