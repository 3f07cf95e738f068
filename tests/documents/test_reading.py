from __future__ import annotations

import json
from typing import Any

import pytest

from dpone_provider.documents.canonical import canonical_bytes
from dpone_provider.documents.current_pointer import CurrentPointerV1
from dpone_provider.documents.deployment import DeploymentV3
from dpone_provider.documents.model import Document
from dpone_provider.documents.reading import read
from dpone_provider.documents.registry import SCHEMAS, read_document
from dpone_provider.documents.scalars import format_instant, parse_instant, unsafe_path
from dpone_provider.documents.transfer_pack import TransferPackV1
from dpone_provider.domain.identity import digest_of
from dpone_provider.domain.outcomes import Refused
from tests.documents.compiled import every_document
from tests.documents.examples import pointer

DOCUMENTS = {document.schema_id: document for document in every_document()}


def reason(found: Document | Refused) -> str:
    assert isinstance(found, Refused), found
    return found.problem.reason


def test_there_is_an_example_of_every_schema() -> None:
    assert set(DOCUMENTS) == set(SCHEMAS)


@pytest.mark.parametrize("schema", sorted(SCHEMAS))
def test_a_document_is_read_as_it_was_written(schema: str) -> None:
    document = DOCUMENTS[schema]
    again = read_document(document.canonical_bytes(), "x")
    assert again == document
    assert isinstance(again, Document)
    assert again.digest == document.digest


def test_what_is_made_of_a_document_once_is_made_anew_of_its_copy() -> None:
    pack = DOCUMENTS["dpone.transfer-pack.v1"]
    assert isinstance(pack, TransferPackV1)
    before, declared = pack.digest, pack.declared
    copied = pack.model_copy(update={"columns": pack.columns[:1]})
    assert (len(declared.columns), len(copied.declared.columns)) == (len(pack.columns), 1)
    assert copied.digest == digest_of(copied.canonical_bytes()) != before
    assert pack.model_copy() == pack


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"schema": "dpone.release.v2"}, "native_only_v2"),
        ({"schema": "dpone.deployment.v2", "rubbish": [1]}, "native_only_v2"),
        ({"schema": "dpone.release.v4"}, "unknown_document_version"),
        ({"schema": "dpone.release.v03"}, "unknown_document_schema"),
        ({"schema": "dpone.nothing.v1"}, "unknown_document_schema"),
        ({"schema": "x" * 1000}, "unknown_document_schema"),
        ({"schema": 3}, "not_a_document"),
        ({"Schema": "dpone.release.v3"}, "not_a_document"),
        ([], "not_a_document"),
        (None, "not_a_document"),
    ],
)
def test_the_schema_is_looked_at_before_anything_else(value: Any, expected: str) -> None:
    assert reason(read_document(json.dumps(value).encode(), "x")) == expected


def test_another_known_schema_than_expected_is_refused() -> None:
    assert reason(read(DeploymentV3, pointer().canonical_bytes(), "deployment.json")) == "unknown_document_schema"


def test_a_key_of_any_length_gives_a_message_that_a_person_reads() -> None:
    value = json.loads(pointer().canonical_bytes()) | {"k" * 1_000_000: 1}
    found = read(CurrentPointerV1, json.dumps(value).encode(), "x")
    assert reason(found) == "document_field_unknown"
    assert isinstance(found, Refused)
    assert len(str(found.problem)) < 1_000


def test_python_names_are_no_json_names() -> None:
    value = json.loads(pointer().canonical_bytes())
    value["schema_id"] = value["schema"]
    assert reason(read(CurrentPointerV1, canonical_bytes(value), "x")) == "document_field_unknown"


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("environment", "Upper"),
        ("environment", "../escape"),
        ("environment", 1),
        ("generation", 0),
        ("generation", "1"),
        ("generation", True),
        ("deployment_id", "sha256:" + "A" * 64),
        ("deployment_id", "sha256:" + "a" * 64 + "\n"),
        ("occurrence_id", "5F0C7B0E-6F2B-4D51-9C1E-0D6B5A3F2E11"),
        ("at", "2026-11-29T12:34:56Z"),
        ("at", "2026-13-29T12:34:56.000001Z"),
        ("by", ""),
        ("by", None),
    ],
)
def test_a_value_has_one_spelling(field: str, wrong: Any) -> None:
    value = json.loads(pointer().canonical_bytes()) | {field: wrong}
    found = read(CurrentPointerV1, json.dumps(value).encode(), "p.json")
    assert reason(found) == "document_value_invalid"
    assert isinstance(found, Refused)
    assert found.problem.subject == f"p.json at $.{field}"


@pytest.mark.parametrize(
    "path",
    [
        *("", "/a", "a//b", "a/", "./a", "a/../b", "..", ".", "a\\b", "C:/x", "a\x00b", "a\nb", "a./b", "a /b"),
        *("con", "native/NUL.json", "x/Com1.txt", "lpt9", "a" * 600),
    ],
)
def test_paths_that_are_not_safe_everywhere(path: str) -> None:
    assert unsafe_path(path) is not None


@pytest.mark.parametrize(
    "path", ["a", "a/b.json", "native/sales/project.tar.gz", ".hidden/x", "a..b", "é/ü", "console"]
)
def test_paths_that_are(path: str) -> None:
    assert unsafe_path(path) is None


def test_instants_have_one_spelling() -> None:
    text = "2026-11-29T12:34:56.000001Z"
    assert format_instant(parse_instant(text)) == text
    with pytest.raises(ValueError, match="zone"):
        format_instant(parse_instant(text).replace(tzinfo=None))
    with pytest.raises(ValueError, match="spelling"):
        parse_instant("2026-11-29T12:34:56.1Z")
    for other in (text.replace("T", " "), text.replace("Z", "+00:00"), text.replace("Z", ""), text.replace("-", "")):
        with pytest.raises(ValueError, match=r"instant|isoformat"):
            parse_instant(other)
