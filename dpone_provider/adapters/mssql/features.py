"""What a database or its instance must not be, each with a reason of its own: what is allowed, and the way out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from dpone_provider.domain.outcomes import Refused, refuse

THEN: Final = "; then run the same command again"


def refusal_of(rows: Iterable[tuple[str, str, str]]) -> Refused | None:
    """Return the refusal of the first feature that was found, with the others of the same reason beside it, or None.

    Each row is (reason, what it is about, what was found), as ``enrolment.sql`` tells it.
    """
    found = list(rows)
    if not found:
        return None
    reason = found[0][0]
    same = [(subject, what) for kind, subject, what in found if kind == reason]
    return _MAKERS[reason](
        ", ".join(dict.fromkeys(subject for subject, _ in same)), "; ".join(what for _, what in same)
    )


def _contained(subject: str, found: str) -> Refused:
    way = "ALTER DATABASE … SET CONTAINMENT = NONE" + THEN
    allowed = "containment NONE: a contained user passes by the login gate"
    return refuse("database_contained", subject, found=found, allowed=allowed, next_command=way)


def _trustworthy(subject: str, found: str) -> Refused:
    way = "ALTER DATABASE … SET TRUSTWORTHY OFF" + THEN
    allowed = "TRUSTWORTHY OFF: else its modules may act outside of it"
    return refuse("database_trustworthy", subject, found=found, allowed=allowed, next_command=way)


def _chaining(subject: str, found: str) -> Refused:
    way = "ALTER DATABASE … SET DB_CHAINING OFF, and sp_configure 'cross db ownership chaining', 0" + THEN
    allowed = "no ownership chaining across databases"
    return refuse("ownership_chaining", subject, found=found, allowed=allowed, next_command=way)


def _availability(subject: str, found: str) -> Refused:
    allowed = "a database outside of availability groups: logins and triggers do not fail over"
    way = "use a database on a single instance; availability groups are not supported in this version"
    return refuse("availability_group", subject, found=found, allowed=allowed, next_command=way)


def _mirrored(subject: str, found: str) -> Refused:
    way = "ALTER DATABASE … SET PARTNER OFF" + THEN
    allowed = "a database that is not mirrored"
    return refuse("database_mirrored", subject, found=found, allowed=allowed, next_command=way)


def _durability(subject: str, found: str) -> Refused:
    way = "ALTER DATABASE … SET DELAYED_DURABILITY = DISABLED" + THEN
    allowed = "full durability: a receipt that was answered is on disk"
    return refuse("database_delayed_durability", subject, found=found, allowed=allowed, next_command=way)


def _read_only(subject: str, found: str) -> Refused:
    way = "ALTER DATABASE … SET READ_WRITE" + THEN
    return refuse("database_read_only", subject, found=found, allowed="a writable database", next_command=way)


def _restricted(subject: str, found: str) -> Refused:
    way = "wait for the restore, or ALTER DATABASE … SET MULTI_USER" + THEN
    return refuse("database_restricted", subject, found=found, allowed="ONLINE, MULTI_USER", next_command=way)


def _compatibility(subject: str, found: str) -> Refused:
    way = "ALTER DATABASE … SET COMPATIBILITY_LEVEL = 150" + THEN
    return refuse("database_compatibility", subject, found=found, allowed="150 or higher", next_command=way)


def _replicated(subject: str, found: str) -> Refused:
    way = "remove it from replication, or choose another database" + THEN
    allowed = "a database outside of replication"
    return refuse("database_replicated", subject, found=found, allowed=allowed, next_command=way)


def _captured(subject: str, found: str) -> Refused:
    way = "EXEC sys.sp_cdc_disable_db, or choose another database" + THEN
    allowed = "a database without change data capture"
    return refuse("database_change_data_capture", subject, found=found, allowed=allowed, next_command=way)


def _linked(subject: str, found: str) -> Refused:
    way = "EXEC sp_droplinkedsrvlogin N'…', NULL; map the logins that need it by name" + THEN
    allowed = "mappings for named logins: an issued login must reach no other server"
    return refuse("linked_server_for_everybody", subject, found=found, allowed=allowed, next_command=way)


def _queue(subject: str, found: str) -> Refused:
    way = "ALTER QUEUE … WITH ACTIVATION (DROP), or choose another database" + THEN
    allowed = "no queue that runs a procedure by itself"
    return refuse("service_queue", subject, found=found, allowed=allowed, next_command=way)


def _impersonation(subject: str, found: str) -> Refused:
    way = "REVOKE IMPERSONATE ON USER::… FROM …" + THEN
    allowed = "nobody who may act as another user of the database"
    return refuse("impersonation_granted", subject, found=found, allowed=allowed, next_command=way)


def _definition_trigger(subject: str, found: str) -> Refused:
    way = "DISABLE TRIGGER … ON DATABASE, or ON ALL SERVER, or choose another database" + THEN
    allowed = "no DDL trigger but ours: it could change or refuse what an attempt creates"
    return refuse("definition_trigger", subject, found=found, allowed=allowed, next_command=way)


def _row_versions(subject: str, found: str) -> Refused:
    way = "ALTER DATABASE … SET READ_COMMITTED_SNAPSHOT OFF WITH ROLLBACK IMMEDIATE" + THEN
    allowed = "a control database whose readers wait for locks: the fence and settle rely on it"
    return refuse("control_row_versions", subject, found=found, allowed=allowed, next_command=way)


def _optimized_locking(subject: str, found: str) -> Refused:
    way = "ALTER DATABASE … SET OPTIMIZED_LOCKING = OFF WITH ROLLBACK IMMEDIATE" + THEN
    allowed = "a control database whose transactions lock the rows that they read and change, until this was tested"
    return refuse("control_optimized_locking", subject, found=found, allowed=allowed, next_command=way)


def _code(subject: str, found: str) -> Refused:
    way = "drop it, or move it to a schema that is not managed" + THEN
    allowed = "tables and views: code there runs with the rights of the schema's owner"
    return refuse("code_in_managed_schema", subject, found=found, allowed=allowed, next_command=way)


_MAKERS: Final[Mapping[str, Callable[[str, str], Refused]]] = MappingProxyType(
    {
        "database_contained": _contained,
        "database_trustworthy": _trustworthy,
        "ownership_chaining": _chaining,
        "availability_group": _availability,
        "database_mirrored": _mirrored,
        "database_delayed_durability": _durability,
        "database_read_only": _read_only,
        "database_restricted": _restricted,
        "database_compatibility": _compatibility,
        "database_replicated": _replicated,
        "database_change_data_capture": _captured,
        "linked_server_for_everybody": _linked,
        "service_queue": _queue,
        "impersonation_granted": _impersonation,
        "definition_trigger": _definition_trigger,
        "control_row_versions": _row_versions,
        "control_optimized_locking": _optimized_locking,
        "code_in_managed_schema": _code,
    }
)
"""By reason; ``enrolment.sql`` names no other."""
