"""The conversation with a server: once, fresh when asked, and silent about secrets."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from pathlib import Path

import pytest

import dpone_provider.adapters.clickhouse as package
from dpone_provider.adapters.clickhouse.errors import AnswerLost, ServerError
from dpone_provider.adapters.clickhouse.session import Session
from dpone_provider.domain.connection import Credential
from dpone_provider.domain.secret import Secret
from dpone_provider.sql_files import load
from tests.adapters.clickhouse.enrolled import Enrolled, with_port
from tests.adapters.clickhouse.fault_proxy import AnswerError, FaultProxy, LoseAnswer, LoseRequest, PassOn

pytestmark = pytest.mark.lab
CANARY = "canary-51c0de"


@pytest.mark.parametrize("fault", [LoseAnswer(), LoseRequest(), AnswerError(202, "TOO_MANY_SIMULTANEOUS_QUERIES")])
def test_a_mutation_is_sent_once_whatever_happens(enrolled: Enrolled, proxy: FaultProxy, fault: object) -> None:
    session = Session(with_port(enrolled.controller, proxy.port))
    session.rows("SELECT 1")
    proxy.rule = lambda seen: fault if seen.query_id == "single-shot" else PassOn()  # type: ignore[return-value]
    with pytest.raises((AnswerLost, ServerError)):
        session.mutate(
            f"CREATE TABLE mart.{enrolled.name()} (id Int8) ENGINE = MergeTree ORDER BY id", query_id="single-shot"
        )
    assert proxy.count("single-shot") == 1


def test_a_body_where_none_belongs_is_not_believed(enrolled: Enrolled) -> None:
    with pytest.raises(AnswerLost, match="a body where none belongs"):
        Session(enrolled.controller).mutate("SELECT 1", query_id="select")


def test_a_server_that_is_silent_is_given_up(enrolled: Enrolled) -> None:
    session = Session(enrolled.controller)
    session.rows("SELECT 1")
    with pytest.raises(AnswerLost):
        session.rows("SELECT sleep(3)", seconds=0.2)


def test_no_failure_shows_the_password_or_the_url(enrolled: Enrolled, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    wrong = replace(enrolled.controller, credential=Credential("dpone_controller", Secret(CANARY)))
    away = with_port(wrong, 1)
    told = []
    for server in (wrong, away):
        with pytest.raises((ServerError, AnswerLost)) as raised:
            Session(server).rows("SELECT 1")
        told.append(str(raised.value))
        assert raised.value.__cause__ is None
    everything = " ".join(told) + caplog.text
    assert CANARY not in everything
    assert "http://" not in everything
    assert "code 516" in told[0]


def test_a_statement_with_credentials_is_never_echoed(enrolled: Enrolled) -> None:
    with pytest.raises(ServerError) as raised:
        Session(enrolled.controller).mutate(f"CREATE USER x IDENTIFIED BY '{CANARY}' !", query_id="syntax")
    assert CANARY not in str(raised.value)
    assert raised.value.code == 62


def test_after_release_the_connection_is_another(enrolled: Enrolled) -> None:
    session = Session(enrolled.controller)
    port = "SELECT port FROM system.processes WHERE query_id = queryID()"
    first = session.rows(port)
    assert session.rows(port) == first
    session.release()
    assert session.rows(port) != first


def test_every_statement_of_the_package_parses(enrolled: Enrolled) -> None:
    """With something in each place; by the server's own parser."""
    fillings = {
        "columns": "`id` Int64",
        "storage": "ORDER BY id",
        "comment": "",
        "uuid": f"'{'1' * 8}-1111-4111-8111-{'1' * 12}'",
    }
    fillings |= {"hash": f"'{'0' * 64}'", "hosts": "ANY", "user": "`u`", "sees_everything": "SELECT 1"}
    for path in sorted(Path(package.__file__).parent.glob("*.sql")):
        for name, sql in load(path).items():
            text = re.sub(r"\$([a-z_]+)", lambda match: fillings.get(match[1], "`d`.`t`"), sql)
            if "VALUES" in text:
                text = re.sub(r"VALUES.*", "SELECT 1", text, flags=re.DOTALL)  # values are data to the parser
            quoted = text.replace("\\", "\\\\").replace("'", "\\'").replace("{", "\\x7B")
            ((formatted,),) = enrolled.ask(f"SELECT formatQuerySingleLine('{quoted}')")
            assert formatted, f"{path.name}: {name}"
