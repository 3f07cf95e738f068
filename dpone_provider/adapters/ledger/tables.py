"""The ledger's tables, as far as statements need them: names, types, nullability, keys.

The installed schema is hand-written (``sql/postgres/010_control_schema.sql``; ``sql/mssql/007_control_authority.sql``
to ``010_control_log.sql``) and holds the laws; tests compare both with this module, column by column.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Integer, MetaData, Sequence, SmallInteger, Table, text
from sqlalchemy.types import TypeEngine

from dpone_provider.adapters.ledger.types import (
    DIGEST,
    DOCUMENT,
    INSTANT,
    LIFE,
    LOGGED,
    LONG_TEXT,
    NAME,
    RELATION_NAME,
    UUID_TEXT,
    WORD,
    HexId,
)

SCHEMA = "dpone_control"
"""The schema that statements name; another one is put in its place when they are compiled."""
METADATA = MetaData(schema=SCHEMA)
LEDGER_SEQUENCE = Sequence("ledger_sequence", metadata=METADATA)


def _key(name: str, kind: TypeEngine[Any]) -> Column[Any]:
    return Column(name, kind, primary_key=True, autoincrement=False)


def _must(name: str, kind: TypeEngine[Any]) -> Column[Any]:
    return Column(name, kind, nullable=False)


def _may(name: str, kind: TypeEngine[Any]) -> Column[Any]:
    return Column(name, kind, nullable=True)


def _numbered(name: str, *, primary_key: bool) -> Column[Any]:
    """Return a column for which the server takes the next ledger sequence number."""
    return Column(name, BigInteger(), LEDGER_SEQUENCE, primary_key=primary_key, nullable=False)


def _now(name: str) -> Column[Any]:
    """Return a column that the server's clock fills."""
    return Column(name, INSTANT, nullable=False, server_default=text("clock_timestamp()"))


SCHEMA_VERSION = Table("schema_version", METADATA, _key("version", Integer()), _now("installed_at"))

AUTHORITY = Table(
    "authority",
    METADATA,
    _key("one_row", SmallInteger()),
    _must("authority_id", UUID_TEXT),
    _must("incarnation", LIFE),
    _must("family", WORD),
)

READMISSION = Table(
    "readmission",
    METADATA,
    _key("readmission_id", UUID_TEXT),
    _must("kind", WORD),
    _must("authority_id", UUID_TEXT),
    _must("from_incarnation", LIFE),
    _must("incarnation", LIFE),
    _must("because", LONG_TEXT),
    _must("by", NAME),
    _numbered("ledger_sequence", primary_key=False),
    _now("began_at"),
)

READMISSION_END = Table("readmission_end", METADATA, _key("readmission_id", UUID_TEXT), _now("ended_at"))

BURIAL = Table(
    "burial",
    METADATA,
    _key("service_id", UUID_TEXT),
    _must("because", LONG_TEXT),
    _must("by", NAME),
    _numbered("ledger_sequence", primary_key=False),
    _now("buried_at"),
)

EPOCH_FLOOR = Table(
    "epoch_floor",
    METADATA,
    _key("slot_id", HexId()),
    _key("readmission_id", UUID_TEXT),
    _key("epoch", BigInteger()),
)

GENERATION_FLOOR = Table(
    "generation_floor",
    METADATA,
    _key("environment", NAME),
    _key("readmission_id", UUID_TEXT),
    _key("generation", BigInteger()),
)

SPENT_ATTEMPT = Table("spent_attempt", METADATA, _key("attempt_id", HexId()), _must("readmission_id", UUID_TEXT))

STRAY_GATE = Table(
    "stray_gate",
    METADATA,
    _key("service_id", UUID_TEXT),
    _key("principal_name", WORD),
    _must("readmission_id", UUID_TEXT),
    _numbered("closed_sequence", primary_key=False),
    _must("evidence_digest", DIGEST),
    _must("evidence", DOCUMENT),
    _now("closed_at"),
)

ENVIRONMENT = Table(
    "environment",
    METADATA,
    _key("name", NAME),
    _may("holder_id", UUID_TEXT),
    _must("generation", BigInteger()),
)

OCCURRENCE = Table(
    "occurrence",
    METADATA,
    _key("occurrence_id", UUID_TEXT),
    _must("environment", NAME),
    _must("deployment_id", DIGEST),
    _must("release_id", DIGEST),
    _must("request_digest", DIGEST),
    _must("request", DOCUMENT),
    _may("predecessor_id", UUID_TEXT),
    _must("state", WORD),
    _may("generation", BigInteger()),
    _numbered("ledger_sequence", primary_key=False),
    _now("requested_at"),
)

INCARNATION = Table(
    "incarnation",
    METADATA,
    _key("incarnation_id", HexId()),
    _must("kind", WORD),
    _must("service_id", UUID_TEXT),
    _must("database_name", NAME),
    _must("facts", LONG_TEXT),
)

SLOT = Table(
    "slot",
    METADATA,
    _key("slot_id", HexId()),
    _must("incarnation_id", HexId()),
    _must("schema_name", RELATION_NAME),
    _must("relation_name", RELATION_NAME),
    _may("owner_id", UUID_TEXT),
    _must("epoch", BigInteger()),
)

SLOT_CLAIM = Table("slot_claim", METADATA, _key("slot_id", HexId()), _must("occurrence_id", UUID_TEXT))

WORKLOAD = Table(
    "workload",
    METADATA,
    _key("occurrence_id", UUID_TEXT),
    _key("workload_id", NAME),
    _must("constituent", NAME),
    _must("cell", NAME),
    _must("pack_digest", DIGEST),
    _must("plan_digest", DIGEST),
)

WORKLOAD_SERVICE = Table(
    "workload_service",
    METADATA,
    _key("occurrence_id", UUID_TEXT),
    _key("workload_id", NAME),
    _key("service_id", UUID_TEXT),
)

WORKLOAD_SLOT = Table(
    "workload_slot",
    METADATA,
    _key("occurrence_id", UUID_TEXT),
    _key("workload_id", NAME),
    _key("slot_id", HexId()),
    _must("effect", WORD),
)

RECEIPT = Table("receipt", METADATA, _key("occurrence_id", UUID_TEXT), _must("document", DOCUMENT))

RECEIPT_SLOT = Table(
    "receipt_slot",
    METADATA,
    _key("occurrence_id", UUID_TEXT),
    _key("slot_id", HexId()),
    _must("epoch", BigInteger()),
)

AIRFLOW_RUN = Table(
    "airflow_run",
    METADATA,
    _key("environment", NAME),
    _key("run_key", HexId()),
    _must("occurrence_id", UUID_TEXT),
)

ATTEMPT = Table(
    "attempt",
    METADATA,
    _key("attempt_id", HexId()),
    _must("occurrence_id", UUID_TEXT),
    _must("environment", NAME),
    _must("constituent", NAME),
    _must("workload_id", NAME),
    _must("pack_digest", DIGEST),
    _must("plan_digest", DIGEST),
    _must("dag_id", NAME),
    _must("run_id", NAME),
    _must("task_id", NAME),
    _must("map_index", Integer()),
    _must("try_number", Integer()),
    _must("task_instance_id", UUID_TEXT),
    _must("task_key", HexId()),
    _must("run_key", HexId()),
    _must("state", WORD),
    _must("ledger_sequence", BigInteger()),
    _now("admitted_at"),
)

ATTEMPT_SERVICE = Table("attempt_service", METADATA, _key("attempt_id", HexId()), _key("service_id", UUID_TEXT))

ATTEMPT_SLOT = Table(
    "attempt_slot",
    METADATA,
    _key("attempt_id", HexId()),
    _key("slot_id", HexId()),
    _must("epoch", BigInteger()),
    _must("occurrence_id", UUID_TEXT),
    _must("live", Boolean()),
)

ATTEMPT_READ = Table(
    "attempt_read",
    METADATA,
    _key("attempt_id", HexId()),
    _key("slot_id", HexId()),
    _must("running", Boolean()),
)

NODE_EVENT = Table(
    "node_event",
    METADATA,
    _numbered("entered", primary_key=True),
    _must("attempt_id", HexId()),
    _must("node_id", NAME),
    _must("status", WORD),
    _must("rebuilt_whole", Boolean()),
    _now("at"),
)

LOGIN_GATE = Table(
    "login_gate",
    METADATA,
    _key("service_id", UUID_TEXT),
    _key("principal_name", WORD),
    _must("sid", WORD),
    _must("attempt_id", HexId()),
    _must("gate_state", WORD),
    _must("delivered", Boolean()),
    _must("barred", Boolean()),
    _may("closed_sequence", BigInteger()),
    _may("evidence_digest", DIGEST),
    _now("journaled_at"),
)

ATTEMPT_PROOF = Table(
    "attempt_proof",
    METADATA,
    _key("ledger_sequence", BigInteger()),
    _must("attempt_id", HexId()),
    _must("kind", WORD),
    _must("evidence_digest", DIGEST),
    _must("evidence", DOCUMENT),
    _now("entered_at"),
)

ATTEMPT_PROOF_GATE = Table(
    "attempt_proof_gate",
    METADATA,
    _key("ledger_sequence", BigInteger()),
    _key("position", Integer()),
    _must("service_id", UUID_TEXT),
    _must("principal_name", WORD),
)

PUBLICATION = Table(
    "publication",
    METADATA,
    _key("attempt_id", HexId()),
    _must("slot_id", HexId()),
    _must("service_id", UUID_TEXT),
    _must("epoch", BigInteger()),
    _must("verb", WORD),
    _must("staged_identity", WORD),
    _may("target_identity", WORD),
    _must("definition_digest", DIGEST),
    _must("state", WORD),
    _may("rows", BigInteger()),
    _may("content_digest", NAME),
)

EVENT = Table(
    "event",
    METADATA,
    _key("seq", BigInteger()),
    _now("at"),
    _must("table_name", WORD),
    _must("key", LOGGED),
    _may("before", LOGGED),
    _may("after", LOGGED),
    _must("session_role", NAME),
    _must("application_name", NAME),
)
