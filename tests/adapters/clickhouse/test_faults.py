"""Answers that are lost, errors that are answered, requests that never arrive: decided by what stands there."""

from __future__ import annotations

import pytest

from dpone_provider.adapters.clickhouse.catalog import ClickHouseCatalog
from dpone_provider.application.ports.tables import NotPublished, Published
from dpone_provider.domain.outcomes import Failed, Unknown
from dpone_provider.domain.publication import Publication
from tests.adapters.clickhouse.enrolled import Enrolled, Refresh, rows, table, with_port
from tests.adapters.clickhouse.fault_proxy import (
    AnswerError,
    Fault,
    FaultProxy,
    LoseAnswer,
    LoseRequest,
    PassOn,
    Rule,
    Seen,
)

pytestmark = pytest.mark.lab
F15 = [(497, "ACCESS_DENIED"), (159, "TIMEOUT_EXCEEDED"), (60, "UNKNOWN_TABLE"), (48, "NOT_IMPLEMENTED")]


def on(part: str, fault: Fault) -> Rule:
    """Break the requests with ``part`` in their query id, pass on all others."""

    def rule(seen: Seen) -> Fault:
        return fault if part in seen.query_id else PassOn()

    return rule


def staged(enrolled: Enrolled, proxy: FaultProxy, *, standing: bool) -> tuple[Refresh, Publication]:
    """Bring a refresh to the point before its dispatch, through the proxy."""
    declared = table(enrolled.name())
    if standing:
        assert isinstance(Refresh.of(enrolled, declared).whole([rows(1)]), Published)
    refresh = Refresh.of(enrolled, declared, server=with_port(enrolled.controller, proxy.port))
    refresh.begin()
    return refresh, refresh.verified(refresh.load([rows(2, 3)]))


def shown(enrolled: Enrolled, refresh: Refresh) -> list[int]:
    return [row[0] for row in enrolled.ask(f"SELECT id FROM mart.{refresh.job.target.name} ORDER BY id")]


def stands(enrolled: Enrolled, name: str) -> bool:
    return enrolled.ask(f"SELECT count() FROM system.tables WHERE name = '{name}'") == [(1,)]


@pytest.mark.parametrize("standing", [True, False], ids=["exchange", "rename"])
def test_a_dispatch_whose_answer_is_lost_is_decided_by_the_uuid(
    enrolled: Enrolled, proxy: FaultProxy, standing: bool
) -> None:
    refresh, publication = staged(enrolled, proxy, standing=standing)
    part = "exchange" if standing else "rename"
    proxy.rule = on(part, LoseAnswer())
    lost = refresh.publisher.dispatch(refresh.job, publication, enrolled.deadline())
    assert isinstance(lost, Unknown)
    assert proxy.count(f"-{part}") == 1, "a mutation is sent once"
    assert isinstance(refresh.settle(), Published)
    assert shown(enrolled, refresh) == [2, 3]


@pytest.mark.parametrize("standing", [True, False], ids=["exchange", "rename"])
def test_a_dispatch_that_never_arrives_is_decided_by_the_uuid(
    enrolled: Enrolled, proxy: FaultProxy, standing: bool
) -> None:
    refresh, publication = staged(enrolled, proxy, standing=standing)
    part = "exchange" if standing else "rename"
    proxy.rule = on(part, LoseRequest())
    lost = refresh.publisher.dispatch(refresh.job, publication, enrolled.deadline())
    assert isinstance(lost, Unknown)
    assert proxy.count(f"-{part}") == 1
    assert isinstance(refresh.settle(), NotPublished)
    assert stands(enrolled, refresh.job.target.name) is standing
    assert not stands(enrolled, refresh.job.staged.name)


@pytest.mark.parametrize(("code", "name"), F15)
@pytest.mark.parametrize("standing", [True, False], ids=["exchange", "rename"])
def test_an_error_of_the_dispatch_is_never_swallowed(
    enrolled: Enrolled, proxy: FaultProxy, standing: bool, code: int, name: str
) -> None:
    refresh, publication = staged(enrolled, proxy, standing=standing)
    part = "exchange" if standing else "rename"
    proxy.rule = on(part, AnswerError(code, name))
    failure = refresh.publisher.dispatch(refresh.job, publication, enrolled.deadline())
    assert isinstance(failure, Unknown if code == 159 else Failed)
    assert f"code {code} {name}" in failure.problem.found
    assert proxy.count(f"-{part}") == 1
    assert proxy.count("RENAME TABLE") == (0 if standing else 1), "never a rename in an exchange's place"
    assert isinstance(refresh.settle(), NotPublished)


def test_a_timeout_after_which_the_exchange_ran_is_published(enrolled: Enrolled, proxy: FaultProxy) -> None:
    refresh, publication = staged(enrolled, proxy, standing=True)
    proxy.rule = on("exchange", AnswerError(159, "TIMEOUT_EXCEEDED", sent_on=True))
    assert isinstance(refresh.publisher.dispatch(refresh.job, publication, enrolled.deadline()), Unknown)
    assert isinstance(refresh.settle(), Published)
    assert shown(enrolled, refresh) == [2, 3]


def test_a_drop_whose_answer_is_lost_is_read_back(enrolled: Enrolled, proxy: FaultProxy) -> None:
    refresh, _ = staged(enrolled, proxy, standing=True)
    proxy.rule = on("-drop", LoseAnswer())
    assert refresh.publisher.discard_staged(refresh.job) is None
    assert proxy.count("-drop") == 1
    assert not stands(enrolled, refresh.job.staged.name)


@pytest.mark.parametrize("fault", [LoseRequest(), AnswerError(497, "ACCESS_DENIED")])
def test_a_drop_that_did_nothing_is_unknown_until_it_is_read_back(
    enrolled: Enrolled, proxy: FaultProxy, fault: Fault
) -> None:
    refresh, _ = staged(enrolled, proxy, standing=True)
    proxy.rule = on("-drop", fault)
    left = refresh.publisher.discard_staged(refresh.job)
    assert isinstance(left, Unknown)
    assert left.problem.reason == "staged_object_not_gone"
    proxy.rule = lambda _: PassOn()
    assert isinstance(refresh.settle(), NotPublished)


def test_a_target_that_cannot_be_read_is_unknown(enrolled: Enrolled, proxy: FaultProxy) -> None:
    refresh, publication = staged(enrolled, proxy, standing=True)
    assert refresh.publisher.discard_staged(refresh.job) is None
    publisher = refresh.publisher
    proxy.rule = lambda _: AnswerError(497, "ACCESS_DENIED")
    unknown = publisher.observe(refresh.job, publication)
    assert isinstance(unknown, Unknown)
    assert unknown.problem.reason == "unreadable"


def test_a_create_whose_answer_is_lost_is_unknown_and_collected(enrolled: Enrolled, proxy: FaultProxy) -> None:
    declared = table(enrolled.name())
    refresh = Refresh.of(enrolled, declared, server=with_port(enrolled.controller, proxy.port))
    bound = refresh.publisher.bind(refresh.job)
    proxy.rule = on("-create", LoseAnswer())
    assert isinstance(refresh.publisher.create_staged(refresh.job, bound), Unknown)  # type: ignore[arg-type]
    assert proxy.count("-create") == 1
    assert stands(enrolled, refresh.job.staged.name)
    assert refresh.publisher.discard_staged(refresh.job) is None
    assert not stands(enrolled, refresh.job.staged.name)


def test_an_insert_whose_answer_is_lost_is_not_sent_again(enrolled: Enrolled, proxy: FaultProxy) -> None:
    refresh = Refresh.of(enrolled, table(enrolled.name()), server=with_port(enrolled.controller, proxy.port))
    refresh.begin()
    proxy.rule = on("-insert-", LoseAnswer())
    behind = Refresh(enrolled=through(enrolled, proxy), job=refresh.job, server=refresh.server)
    with pytest.raises(AssertionError, match="staging_failed"):
        behind.load([rows(1, 2)])
    assert proxy.count("-insert-") == 1
    assert enrolled.ask(f"SELECT count() FROM dpone_stage.{refresh.job.staged.name}") == [(2,)], "once"


def through(enrolled: Enrolled, proxy: FaultProxy) -> Enrolled:
    """Return the same server with its workers behind the proxy."""
    return Enrolled(
        state=enrolled.state,
        controller=with_port(enrolled.controller, proxy.port),
        reader=with_port(enrolled.reader, proxy.port),
        marker=enrolled.marker,
        used=enrolled.used,
    )


def test_an_insert_that_is_refused_fails_and_names_the_code(enrolled: Enrolled, proxy: FaultProxy) -> None:
    refresh = Refresh.of(enrolled, table(enrolled.name()))
    refresh.begin()
    proxy.rule = on("-insert-", AnswerError(241, "MEMORY_LIMIT_EXCEEDED"))
    behind = Refresh(enrolled=through(enrolled, proxy), job=refresh.job, server=refresh.server)
    with pytest.raises(AssertionError, match="code 241"):
        behind.load([rows(1, 2)])


def test_a_raised_mark_whose_answer_is_lost_is_unknown(enrolled: Enrolled, proxy: FaultProxy) -> None:
    proxy.rule = on("dpone-mark", LoseAnswer())
    catalog = ClickHouseCatalog(with_port(enrolled.controller, proxy.port))
    assert isinstance(catalog.raise_mark(10_000), Unknown)
    proxy.rule = lambda _: PassOn()
    assert catalog.raise_mark(10_000) is None
    assert proxy.count("dpone-mark") == 1, "it was raised, so it is not raised again"
