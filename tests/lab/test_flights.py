"""The source data arrives whole, with the types that hold it exactly."""

from __future__ import annotations

import csv
import io
from decimal import Decimal

import psycopg
import pytest

from dpone_provider import lab
from dpone_provider.domain.outcomes import DponeError
from dpone_provider.lab.flights import data_directory, numbered

ROWS = {"airlines": 16, "airports": 1458, "planes": 3322, "weather": 26115, "flights": 336776}


def rows(state: lab.LabState, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(state.url("shop_reader").reveal()) as connection:
        return connection.execute(query.encode()).fetchall()


@pytest.mark.lab
def test_every_row_of_every_table_is_there(whole_lab: lab.LabState) -> None:
    found = {table: rows(whole_lab, f"SELECT count(*) FROM {table}")[0][0] for table in ROWS}
    assert found == ROWS


@pytest.mark.lab
def test_the_key_of_a_flight_is_the_number_of_its_row(whole_lab: lab.LabState) -> None:
    assert rows(whole_lab, "SELECT min(flight_id), max(flight_id), count(DISTINCT flight_id) FROM flights") == [
        (1, 336776, 336776)
    ]
    first = rows(whole_lab, "SELECT carrier, flight, tailnum, dest, dep_delay FROM flights WHERE flight_id = 1")
    assert first == [("UA", 1545, "N14228", "IAH", 2)]


@pytest.mark.lab
def test_what_the_file_calls_na_is_null(whole_lab: lab.LabState) -> None:
    query = "SELECT count(*) - count(dep_time), count(*) - count(tailnum), count(*) - count(air_time) FROM flights"
    assert rows(whole_lab, query) == [(8255, 2512, 9430)]
    assert rows(whole_lab, "SELECT count(*) FROM airports WHERE tzone IS NULL") == [(3,)]


@pytest.mark.lab
def test_decimals_are_those_of_the_file(whole_lab: lab.LabState) -> None:
    with (data_directory() / "airports.csv").open(newline="") as file:
        in_file = {line["faa"]: (Decimal(line["lat"]), Decimal(line["lon"])) for line in csv.DictReader(file)}
    in_table = {faa: (lat, lon) for faa, lat, lon in rows(whole_lab, "SELECT faa, lat, lon FROM airports")}
    assert in_table == in_file


@pytest.mark.lab
def test_loading_twice_is_refused_and_changes_nothing(whole_lab: lab.LabState) -> None:
    with pytest.raises(DponeError, match="flights_are_there"):
        lab.load_flights(whole_lab)
    assert rows(whole_lab, "SELECT count(*) FROM airlines") == [(16,)]


def test_rows_are_numbered_from_one_across_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpone_provider.lab.flights.CHUNK_BYTES", 4)
    chunks = list(numbered(io.BytesIO(b"a,b\n1,x\n2,y\n3,z\n")))
    assert len(chunks) > 2
    assert b"".join(chunks) == b"flight_id,a,b\n1,1,x\n2,2,y\n3,3,z\n"
