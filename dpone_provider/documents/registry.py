"""Every schema that this version knows, and reading a document of whichever it is."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from dpone_provider.documents.activation_receipt import CompositionActivationReceiptV1
from dpone_provider.documents.activation_request import CompositionActivationRequestV1
from dpone_provider.documents.attempt import CompositionAttemptV1
from dpone_provider.documents.attempt_proof import CompositionAttemptProofV1
from dpone_provider.documents.binding_set import BindingSetV1
from dpone_provider.documents.connection_registry import ConnectionRegistryV1
from dpone_provider.documents.constituent import ConstituentV1
from dpone_provider.documents.current_pointer import CurrentPointerV1
from dpone_provider.documents.dag_spec import DagSpecV1
from dpone_provider.documents.deployment import DeploymentV3
from dpone_provider.documents.desired_state import DesiredStateV1
from dpone_provider.documents.environment import EnvironmentV1
from dpone_provider.documents.execution_pack import ExecutionPackV2
from dpone_provider.documents.model import Document
from dpone_provider.documents.reading import document_of, schema_of, unknown_schema
from dpone_provider.documents.release import ReleaseV3
from dpone_provider.documents.run_report import RunReportV1
from dpone_provider.documents.strict import parse
from dpone_provider.documents.transfer_pack import TransferPackV1
from dpone_provider.documents.workspace import WorkspaceV1
from dpone_provider.domain.outcomes import Refused

_MODELS: Final[tuple[type[Document], ...]] = (
    BindingSetV1,
    CompositionActivationReceiptV1,
    CompositionActivationRequestV1,
    CompositionAttemptProofV1,
    CompositionAttemptV1,
    ConnectionRegistryV1,
    ConstituentV1,
    CurrentPointerV1,
    DagSpecV1,
    DeploymentV3,
    DesiredStateV1,
    EnvironmentV1,
    ExecutionPackV2,
    ReleaseV3,
    RunReportV1,
    TransferPackV1,
    WorkspaceV1,
)

SCHEMAS: Final = MappingProxyType({model.model_fields["schema_id"].default: model for model in _MODELS})
"""Model by schema id. Workspace and environment are written as YAML, everything else as canonical JSON."""


def read_document(data: bytes, where: str) -> Document | Refused:
    """Return the document in ``data``, of whichever schema it claims; ``where`` names the file in messages."""
    value = parse(data, where)
    if isinstance(value, Refused):
        return value
    claimed = schema_of(value, where)
    if isinstance(claimed, Refused):
        return claimed
    model = SCHEMAS.get(claimed)
    if model is None:
        return unknown_schema(claimed, where, tuple(sorted(SCHEMAS)))
    return document_of(model, value, where)
