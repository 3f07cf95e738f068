"""Many publications under readers: each read is wholly old or wholly new."""

from __future__ import annotations

import threading

import pytest

from dpone_provider.adapters.clickhouse.errors import AnswerLost, ServerError
from dpone_provider.adapters.clickhouse.session import Session
from dpone_provider.application.ports.tables import Published
from tests.adapters.clickhouse.enrolled import Enrolled, Refresh, rows, table

pytestmark = pytest.mark.lab
PUBLICATIONS = 5
READERS = 2


def test_no_reader_sees_a_part_or_nothing(enrolled: Enrolled) -> None:
    declared = table(enrolled.name())
    assert isinstance(Refresh.of(enrolled, declared).whole([rows(*([0] * 100))]), Published)
    done = threading.Event()
    seen: list[tuple[int, int, int]] = []
    broken: list[str] = []

    def read() -> None:
        session = Session(enrolled.reader)
        while not done.is_set():
            try:
                seen.extend(session.rows(f"SELECT min(id), max(id), count() FROM mart.{declared.name}"))  # type: ignore[arg-type]
            except (ServerError, AnswerLost) as error:
                broken.append(str(error))

    readers = [threading.Thread(target=read) for _ in range(READERS)]
    for reader in readers:
        reader.start()
    try:
        for number in range(1, PUBLICATIONS + 1):
            assert isinstance(Refresh.of(enrolled, declared).whole([rows(*([number] * 100))]), Published)
    finally:
        done.set()
        for reader in readers:
            reader.join()
    assert not broken
    assert {(low, low, 100) for low, _, _ in seen} == set(seen)
    assert len({low for low, _, _ in seen}) > 1
