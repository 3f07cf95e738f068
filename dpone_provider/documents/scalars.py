"""The scalar types of documents, each with exactly one spelling per value."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Final

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from dpone_provider.documents.canonical import MAX_INTEGER
from dpone_provider.domain import identity

_UUID: Final = r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
_HEX64: Final = r"^[0-9a-f]{64}$"
_DIGEST: Final = r"^sha256:[0-9a-f]{64}$"
_PART: Final = r"[a-z][a-z0-9_-]{0,62}"
_DBT_PART: Final = r"[A-Za-z_][A-Za-z0-9_]{0,99}"
_DEVICES: Final = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(10))]
)
_MAX_PATH: Final = 512


def _invalid(kind: str, allowed: str) -> PydanticCustomError:
    return PydanticCustomError(kind, "{allowed}", {"allowed": allowed})


def _relation_name(name: str) -> str:
    if not name.isprintable():
        raise _invalid("relation_name", "printable characters")
    return name


def unsafe_path(path: str) -> str | None:
    """Return why ``path`` may not stand in a document or an archive, or None.

    Allowed are relative POSIX paths in normal form: no ``.`` or ``..``, no empty part, no backslash, colon or control
    character, no part that ends in a dot or blank, no name that Windows takes for a device.
    """
    if not path or len(path) > _MAX_PATH:
        return f"a path of {len(path)} characters"
    if not path.isprintable() or "\\" in path or ":" in path:
        return "a control character, backslash or colon"
    for part in path.split("/"):
        if part in ("", ".", ".."):
            return "an absolute path" if path.startswith("/") else f"the part {part!r}"
        if part[-1] in ". ":
            return f"the part {part!r}, which ends in a dot or blank"
        if part.split(".")[0].casefold() in _DEVICES:
            return f"the device name {part!r}"
    return None


def _document_path(path: str) -> str:
    reason = unsafe_path(path)
    if reason is not None:
        raise _invalid("document_path", f"a relative path in normal form, without {reason}")
    return path


def _instant(text: str) -> str:
    try:
        parse_instant(text)
    except ValueError:
        raise _invalid("instant", "an instant in UTC, spelt YYYY-MM-DDTHH:MM:SS.ffffffZ") from None
    return text


def format_instant(at: datetime) -> str:
    """Return ``at`` in the one spelling of an instant: UTC, microseconds, ``Z``.

    Raises:
        ValueError: ``at`` has no zone.
    """
    if at.tzinfo is None:
        raise ValueError(f"an instant needs a zone: {at!r}")
    return at.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def parse_instant(text: str) -> datetime:
    """Return the instant that ``format_instant`` wrote.

    Raises:
        ValueError: it is not ``YYYY-MM-DDTHH:MM:SS.ffffffZ``.
    """
    at = datetime.fromisoformat(text)
    if at.tzinfo is None or format_instant(at) != text:
        raise ValueError(f"not the canonical spelling of an instant: {text!r}")
    return at


def _credential_reference(text: str) -> str:
    scheme, _, rest = text.partition(":")
    if scheme not in ("env", "file", "airflow") or not rest or "://" in text or not rest.isprintable():
        raise _invalid("credential_reference", "env:NAME, file:PATH or airflow:CONN_ID; never the credential itself")
    return text


Digest = Annotated[identity.Digest, StringConstraints(pattern=_DIGEST)]
SlotId = Annotated[identity.SlotId, StringConstraints(pattern=_HEX64)]
AttemptId = Annotated[identity.AttemptId, StringConstraints(pattern=_HEX64)]
IncarnationId = Annotated[identity.IncarnationId, StringConstraints(pattern=_HEX64)]
ServiceId = Annotated[identity.ServiceId, StringConstraints(pattern=_UUID)]
OccurrenceId = Annotated[identity.OccurrenceId, StringConstraints(pattern=_UUID)]
UuidText = Annotated[str, StringConstraints(pattern=_UUID)]

Name = Annotated[str, StringConstraints(pattern=f"^{_PART}$")]
"""A name that we give: workspaces, environments, aliases, transfers, workloads. Safe in paths and DAG ids."""
DbtName = Annotated[str, StringConstraints(pattern=f"^{_DBT_PART}$")]
"""A name of a dbt project or model; dbt's own rule, ASCII only."""
Reference = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_.-]{0,127}$")]
"""A connection reference: the key of a registry entry."""
WorkloadId = Annotated[
    str,
    StringConstraints(
        pattern=rf"^(ordinary\.{_PART}|native\.{_DBT_PART}\.{_PART}|generated\.{_DBT_PART}\.{_PART}\.{_DBT_PART})$"
    ),
]
DagId = Annotated[str, StringConstraints(pattern=rf"^{_PART}\.{_DBT_PART}$|^{_PART}\.{_PART}$")]
TaskId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]{0,249}$")]
CommitId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]
"""A git commit: SHA-1 or SHA-256."""

RelationName = Annotated[str, StringConstraints(min_length=1, max_length=256), AfterValidator(_relation_name)]
"""A schema, table or column name as the engine spells it; each engine's own limits are its adapter's."""
ShortText = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
DocumentPath = Annotated[str, AfterValidator(_document_path)]
CredentialReference = Annotated[str, StringConstraints(max_length=500), AfterValidator(_credential_reference)]
"""Where a credential is found; messages never show what stands in its place."""
Instant = Annotated[str, AfterValidator(_instant)]

Count = Annotated[int, Field(ge=0, le=MAX_INTEGER)]
Positive = Annotated[int, Field(ge=1, le=MAX_INTEGER)]
Port = Annotated[int, Field(ge=1, le=65535)]
