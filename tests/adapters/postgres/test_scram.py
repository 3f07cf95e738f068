"""Verifiers against the server's own library."""

from __future__ import annotations

import base64

import psycopg
import pytest

from dpone_provider import lab
from dpone_provider.adapters.postgres.scram import ITERATIONS, verifier
from dpone_provider.domain.secret import Secret


@pytest.mark.lab
def test_a_login_with_our_verifier_takes_the_password(fresh_database: lab.LabDatabase) -> None:
    made = verifier(Secret("letters0and1digits"), b"sixteen bytes 00")
    with psycopg.connect(fresh_database.admin.reveal(), autocommit=True) as admin:
        admin.execute(f"CREATE ROLE scram_probe LOGIN PASSWORD '{made}'")
        try:
            admin.execute(f'GRANT CONNECT ON DATABASE "{fresh_database.name}" TO scram_probe')
            where = f"host={fresh_database.host} port={fresh_database.port} dbname={fresh_database.name}"
            with psycopg.connect(f"{where} user=scram_probe password=letters0and1digits") as probe:
                assert probe.execute("SELECT 1").fetchone() == (1,)
            with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
                psycopg.connect(f"{where} user=scram_probe password=other")
        finally:
            admin.execute("DROP OWNED BY scram_probe; DROP ROLE scram_probe")


def test_the_salt_and_the_iterations_are_kept() -> None:
    made = verifier(Secret("abc"), b"0123456789abcdef")
    assert base64.b64encode(b"0123456789abcdef").decode() in made
    assert made.startswith(f"SCRAM-SHA-256${ITERATIONS}:")


def test_only_ascii_is_taken() -> None:
    with pytest.raises(ValueError, match="ASCII"):
        verifier(Secret("pässword"), b"salt")
