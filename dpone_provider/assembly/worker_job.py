"""The job document that a controller hands to its worker, as one line on the worker's standard input.

It holds the only two credentials that the worker ever sees: the binding's read-only one for the source, and the issued
one for the target. It is never written anywhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpone_provider.application.ports.tables import PublishJob, TargetBinding
from dpone_provider.assembly.settings import CONTROL_SCHEMA
from dpone_provider.documents.transfer_pack import TransferPackV1
from dpone_provider.domain.connection import Credential, Endpoint, TlsMode
from dpone_provider.domain.identity import AttemptId, EngineKind, OccurrenceId, Relation, SlotId
from dpone_provider.domain.publication import Verb
from dpone_provider.domain.secret import Secret


@dataclass(frozen=True, slots=True)
class Login:
    """Where to connect, and as whom."""

    endpoint: Endpoint
    credential: Credential


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerJob:
    """Everything that one transfer's worker needs.

    ``source_facts`` pin the life of the source's database; ``seconds`` is the time that is left to it;
    ``control_database`` is where SQL Server's fence is.
    """

    pack: TransferPackV1
    job: PublishJob
    binding: TargetBinding
    source: Login
    source_facts: Mapping[str, str]
    target: Login
    seconds: float
    control_database: str = CONTROL_SCHEMA

    def to_line(self) -> Secret:
        """Return the one line that is sent, without its end; it holds secrets."""
        return Secret(json.dumps(self._plain(), separators=(",", ":")))

    @classmethod
    def from_line(cls, line: str) -> WorkerJob:
        """Return the job that ``to_line`` wrote.

        Raises:
            ValueError, KeyError: it is something else; the message holds no value of it.
        """
        try:
            said = json.loads(line)
        except json.JSONDecodeError:
            raise ValueError("the job on standard input is not one line of JSON") from None
        pack = TransferPackV1.model_validate_json(json.dumps(said["pack"]), strict=False)
        return cls(
            pack=pack,
            job=_job(said["job"], pack),
            binding=TargetBinding(
                verb=Verb(said["binding"]["verb"]),
                target_identity=said["binding"]["target_identity"],
                staged_identity=said["binding"]["staged_identity"],
            ),
            source=_login(said["source"]),
            source_facts=dict(said["source_facts"]),
            target=_login(said["target"]),
            seconds=float(said["seconds"]),
            control_database=said["control_database"],
        )

    def _plain(self) -> dict[str, Any]:
        return {
            "pack": self.pack.model_dump(mode="json"),
            "job": {
                "attempt_id": self.job.attempt_id,
                "occurrence_id": self.job.occurrence_id,
                "slot_id": self.job.slot_id,
                "epoch": self.job.epoch,
                "staged": [self.job.staged.schema, self.job.staged.name],
            },
            "binding": {
                "verb": str(self.binding.verb),
                "target_identity": self.binding.target_identity,
                "staged_identity": self.binding.staged_identity,
            },
            "source": _plain_login(self.source),
            "source_facts": dict(self.source_facts),
            "target": _plain_login(self.target),
            "seconds": self.seconds,
            "control_database": self.control_database,
        }


def _plain_login(login: Login) -> dict[str, Any]:
    at = login.endpoint
    return {
        "kind": str(at.kind),
        "host": at.host,
        "port": at.port,
        "database": at.database,
        "tls": str(at.tls),
        "user": login.credential.user,
        "password": login.credential.password.reveal(),
    }


def _login(said: Mapping[str, Any]) -> Login:
    endpoint = Endpoint(
        kind=EngineKind(said["kind"]),
        host=said["host"],
        port=said["port"],
        database=said["database"],
        tls=TlsMode(said["tls"]),
    )
    return Login(endpoint, Credential(said["user"], Secret(said["password"])))


def _job(said: Mapping[str, Any], pack: TransferPackV1) -> PublishJob:
    return PublishJob(
        attempt_id=AttemptId(said["attempt_id"]),
        occurrence_id=OccurrenceId(said["occurrence_id"]),
        slot_id=SlotId(said["slot_id"]),
        epoch=said["epoch"],
        target=pack.target.relation,
        staged=Relation(*said["staged"]),
        declared=pack.declared,
    )
