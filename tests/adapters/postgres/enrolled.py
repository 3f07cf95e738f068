"""An enrolled PostgreSQL database for tests, and a hand on the ledger's rows that asks no trigger."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

import psycopg

from dpone_provider import lab
from dpone_provider.domain.connection import Credential, Endpoint, TlsMode
from dpone_provider.domain.identity import AttemptId, EngineKind, OccurrenceId, Principal, ServiceId, SlotId
from dpone_provider.domain.secret import Secret
from dpone_provider.sql_files import shipped_sql

SCHEMAS = ("stage", "marts")
CONTROL = {"control_schema": "dpone_control", "controller_role": "dpone_controller"}
DIGEST = "sha256:" + "0" * 64


def new_hex() -> str:
    """Return 64 random hex digits: any id of the ledger."""
    return secrets.token_hex(32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One RUNNING attempt that writes one slot at epoch 1."""

    attempt_id: AttemptId
    occurrence_id: OccurrenceId
    slot_id: SlotId
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolled:
    """A database with control schema, gate, receipts and two managed schemas."""

    database: lab.LabDatabase
    service_id: ServiceId

    @property
    def endpoint(self) -> Endpoint:
        """Where it is."""
        return Endpoint(
            kind=EngineKind.POSTGRES,
            host=self.database.host,
            port=self.database.port,
            database=self.database.name,
            tls=TlsMode.DISABLED,
        )

    def credential(self, role: str) -> Credential:
        """Return a lab role's credential."""
        parts = urlsplit(self.database.url(role).reveal())
        return Credential(unquote(parts.username or ""), Secret(unquote(parts.password or "")))

    @property
    def controller(self) -> Credential:
        """Return the controller's credential."""
        return self.credential("dpone_controller")

    @contextmanager
    def connected(self, role: str = "postgres_admin", *, autocommit: bool = True) -> Iterator[psycopg.Connection]:
        """Open a connection as a role of the lab."""
        with psycopg.connect(self.database.url(role).reveal(), autocommit=autocommit) as connection:
            yield connection

    def execute(self, statement: str, *parameters: object) -> list[tuple[object, ...]]:
        """Run one statement as the administrator, with the ledger's own triggers and keys out of the way."""
        with self.connected() as connection:
            connection.execute("SET session_replication_role = replica")
            cursor = connection.execute(statement, parameters or None)
            return cursor.fetchall() if cursor.description is not None else []

    def attempt(self, *, state: str = "RUNNING", slot_id: str | None = None) -> Written:
        """Enter an attempt that writes one slot, which it owns."""
        attempt_id, occurrence_id, slot = new_hex(), str(uuid.uuid4()), slot_id or new_hex()
        self.execute(
            "INSERT INTO dpone_control.attempt (attempt_id, occurrence_id, environment, constituent, workload_id,"
            " pack_digest, plan_digest, dag_id, run_id, task_id, map_index, try_number, task_instance_id, task_key,"
            " run_key, state, ledger_sequence)"
            " VALUES (%s, %s, 'e', 'c', 'w', %s, %s, 'd', 'r', 't', -1, 1, %s, %s, %s, %s,"
            " nextval('dpone_control.ledger_sequence'))",
            *(attempt_id, occurrence_id, DIGEST, DIGEST, str(uuid.uuid4()), new_hex(), new_hex(), state),
        )
        self.execute(
            "INSERT INTO dpone_control.slot (slot_id, incarnation_id, schema_name, relation_name, owner_id, epoch)"
            " VALUES (%s, %s, 'stage', %s, %s, 1) ON CONFLICT (slot_id) DO UPDATE SET owner_id = EXCLUDED.owner_id,"
            " epoch = slot.epoch + 1",
            *(slot, new_hex(), new_hex()[:12], occurrence_id),
        )
        ((epoch,),) = self.execute("SELECT epoch FROM dpone_control.slot WHERE slot_id = %s", slot)
        self.execute("UPDATE dpone_control.attempt_slot SET live = false WHERE slot_id = %s", slot)
        self.execute(
            "INSERT INTO dpone_control.attempt_slot (attempt_id, slot_id, epoch, occurrence_id, live)"
            " VALUES (%s, %s, %s, %s, true)",
            *(attempt_id, slot, epoch, occurrence_id),
        )
        self.execute(
            "INSERT INTO dpone_control.attempt_service (attempt_id, service_id) VALUES (%s, %s)",
            *(attempt_id, self.service_id),
        )
        return Written(
            attempt_id=AttemptId(attempt_id),
            occurrence_id=OccurrenceId(occurrence_id),
            slot_id=SlotId(slot),
            epoch=int(str(epoch)),
        )

    def journal(self, attempt_id: AttemptId, principal: Principal, *, state: str = "JOURNALED") -> None:
        """Enter a gate row."""
        self.execute(
            "INSERT INTO dpone_control.login_gate (service_id, principal_name, sid, attempt_id, gate_state, delivered,"
            " barred) VALUES (%s, %s, %s, %s, %s, false, false)",
            *(principal.service_id, principal.name, principal.sid, attempt_id, state),
        )

    def say(self, principal: Principal, state: str) -> None:
        """Set a gate row's state."""
        closed = state == "CLOSED"
        self.execute(
            "UPDATE dpone_control.login_gate SET gate_state = %s, closed_sequence = %s, evidence_digest = %s"
            " WHERE principal_name = %s AND service_id = %s",
            *(state, 1 if closed else None, DIGEST if closed else None, principal.name, principal.service_id),
        )


def install(database: lab.LabDatabase, *, schemas: tuple[str, ...] = SCHEMAS) -> Enrolled:
    """Run the shipped scripts, as an administrator would."""
    service_id = str(uuid.uuid4())
    run(database, "010_control_schema.sql", authority_id=str(uuid.uuid4()), family="nonproduction", **CONTROL)
    run(database, "020_gate.sql", service_id=service_id, **CONTROL)
    run(database, "030_receipts.sql", controller_role=CONTROL["controller_role"])
    for schema in schemas:
        run(database, "040_enrol_target.sql", schema=schema, reader_role="warehouse_reader", **CONTROL)
    return Enrolled(database=database, service_id=ServiceId(service_id))


def run(database: lab.LabDatabase, script: str, **variables: str) -> None:
    """Run one shipped script."""
    lab.run_admin_script(database.lab, database.name, shipped_sql("postgres") / script, variables)
