"""Ten thousand malformed documents of every schema: read or refused, in bounded time and memory, and never more."""

from __future__ import annotations

import json
import os
import random
import resource
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import pytest

from dpone_provider.documents.model import Document
from dpone_provider.documents.registry import SCHEMAS, read_document
from dpone_provider.domain.outcomes import Refused
from tests.documents.compiled import every_document
from tests.documents.damage import Damage, added, doubled, huge, leaves, of_bytes, of_text, of_values, removed, replaced

pytestmark = pytest.mark.exhaustive
DOCUMENTS = {document.schema_id: document for document in every_document()}
MALFORMED = int(os.environ.get("DPONE_TEST_MALFORMED", "10000"))
"""Malformed documents of each schema; each is counted, and none that is the document itself. A soak asks for more."""
FEWER: Mapping[str, int] = MappingProxyType({})
"""Schemas that get fewer because they are slow. None is."""
WAYS: Mapping[str, tuple[Damage, int]] = MappingProxyType(
    {
        "replaced": (of_values(replaced), 10),
        "removed": (of_values(removed), 5),
        "added": (of_values(added), 10),
        "doubled": (of_values(doubled), 5),
        "bytes": (of_bytes, 60),
        "text": (of_text, 10),
    }
)
"""How many of a hundred are made in each way. With two places one can undo the other: some must be made again."""
SECONDS, HUGE_SECONDS = 1.0, 5.0
"""Of this process's own time, for one document of some kilobytes, and of some ten megabytes."""
MEMORY = 768 * 1024**2
"""Bytes beyond what the process had before: the largest document, and all that is made of it."""


@contextmanager
def bounded_memory(extra: int) -> Iterator[None]:
    """Let the process have so many bytes more than it has; what asks for more gets a MemoryError."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + extra, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def read_within(data: bytes, seconds: float) -> Document | Refused:
    """Read, and see that it did not take longer, and that a refusal's message is no longer than a person reads."""
    began = time.process_time()
    found = read_document(data, "x.json")
    assert time.process_time() - began < seconds, data[:200]
    assert isinstance(found, Document | Refused)
    if isinstance(found, Refused):
        assert len(str(found.problem)) < 2_000
    return found


def malformed(schema: str) -> Iterator[bytes]:
    """Yield the malformed documents of a schema, the same ones every time."""
    plain = DOCUMENTS[schema].canonical_bytes()
    paths = leaves(json.loads(plain))
    for way, (damage, percent) in WAYS.items():
        wanted = -(-MALFORMED * percent // 100)
        dice, made = random.Random(f"{schema} {way}"), 0
        while made < wanted:
            data = damage(plain, paths, dice)
            if data != plain:
                made += 1
                yield data


@pytest.mark.parametrize("schema", sorted(SCHEMAS))
def test_malformed_documents_are_read_or_refused_never_more(schema: str) -> None:
    counted = refused = 0
    with bounded_memory(MEMORY):
        for data in malformed(schema):
            counted += 1
            found = read_within(data, SECONDS)
            if isinstance(found, Refused):
                refused += 1
            else:
                # What was damaged and still reads means the same as its canonical form.
                assert read_document(found.canonical_bytes(), "x.json") == found
    assert counted >= FEWER.get(schema, MALFORMED)
    assert refused > counted // 2


@pytest.mark.parametrize("schema", sorted(SCHEMAS))
def test_huge_documents_are_refused_in_bounded_time_and_memory(schema: str) -> None:
    plain = DOCUMENTS[schema].canonical_bytes()
    texts = huge(plain, leaves(json.loads(plain)), random.Random(schema))
    with bounded_memory(MEMORY):
        assert all(isinstance(read_within(data, HUGE_SECONDS), Refused) for data in texts)


def test_more_memory_than_allowed_is_noticed() -> None:
    with bounded_memory(MEMORY), pytest.raises(MemoryError):
        bytes(2 * MEMORY)
    assert len(bytes(2 * MEMORY)) == 2 * MEMORY


def test_there_are_enough_ways() -> None:
    assert sum(percent for _, percent in WAYS.values()) == 100
    assert set(FEWER) < set(SCHEMAS)
