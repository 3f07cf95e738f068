"""Settings of an Airflow process: the environment goes before section [dpone]."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from dpone_provider.domain.outcomes import DponeError
from tests.airflow.conftest import VARIABLES

pytestmark = pytest.mark.usefixtures("airflow_home")


def test_the_environment_is_read() -> None:
    from dpone_provider.airflow.configuration import settings

    assert settings(VARIABLES).cache_root == Path(VARIABLES["DPONE_CACHE_ROOT"])


def test_the_section_fills_what_the_environment_does_not_say(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpone_provider.airflow.configuration import settings

    monkeypatch.setenv("AIRFLOW__DPONE__CACHE_ROOT", "/from/section")
    monkeypatch.setenv("AIRFLOW__DPONE__ENVIRONMENT", "section")
    monkeypatch.setenv("AIRFLOW__DPONE__AUTHORITY_CONNECTION_REF", "env:X")
    monkeypatch.setenv("AIRFLOW__DPONE__ADMISSION_TIMEOUT", "7")
    found = settings({"DPONE_ENVIRONMENT": "environment", "DPONE_CACHE_ROOT": ""})
    assert (found.cache_root, found.environment, found.authority_connection_ref) == (
        Path("/from/section"),
        "environment",
        "env:X",
    )
    assert found.times.admission == 7
    assert found.control_schema == "dpone_control"


def test_loading_needs_less_than_running() -> None:
    from dpone_provider.airflow.configuration import cache_place

    place = cache_place({"DPONE_CACHE_ROOT": "/cache", "DPONE_ENVIRONMENT": "e"})
    assert (place.cache_root, place.environment) == (Path("/cache"), "e")


def test_what_neither_says_is_refused_by_name() -> None:
    from dpone_provider.airflow.configuration import cache_place, settings

    for ask in (settings, cache_place):
        with pytest.raises(DponeError, match=r"settings_missing: .*DPONE_ENVIRONMENT"):
            ask({})


def test_waiting_is_configured_in_the_section_only(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpone_provider.airflow.configuration import task_settings

    monkeypatch.setenv("AIRFLOW__DPONE__BUSY_RESCHEDULES", "5")
    monkeypatch.setenv("AIRFLOW__DPONE__BUSY_RESCHEDULE_SECONDS", "1.5")
    monkeypatch.setenv("AIRFLOW__DPONE__RETRY_DELAY_SECONDS", "30")
    found = task_settings()
    assert (found.busy_reschedules, found.busy_delay) == (5, timedelta(seconds=1.5))
    assert found.retry_delay == timedelta(seconds=30)


@pytest.mark.parametrize("value", ["many", "-1", "nan", "inf"])
def test_a_number_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    from dpone_provider.airflow.configuration import task_settings

    monkeypatch.setenv("AIRFLOW__DPONE__BUSY_RESCHEDULES", value)
    with pytest.raises(DponeError, match=r"\[dpone\] busy_reschedules"):
        task_settings()
