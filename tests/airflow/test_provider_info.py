"""Airflow finds the provider, and knows its options."""

from __future__ import annotations

from importlib import import_module

import pytest

from dpone_provider.airflow.provider_info import DISTRIBUTION, OPTIONS, provider_info

pytestmark = pytest.mark.usefixtures("airflow_home")


def test_airflow_finds_the_provider() -> None:
    from airflow.providers_manager import ProvidersManager

    found = ProvidersManager().providers[DISTRIBUTION]
    assert found.data["name"] == "dpone"
    assert found.version == import_module("dpone_provider").__version__


def test_airflow_knows_the_options_and_their_defaults() -> None:
    from airflow.configuration import conf
    from airflow.providers_manager import ProvidersManager

    configured = dict(ProvidersManager().provider_configs)[DISTRIBUTION]["dpone"]
    assert set(configured["options"]) == set(OPTIONS)
    assert conf.get("dpone", "control_schema") == "dpone_control"


@pytest.mark.parametrize("kind", ["operators", "bundles"])
def test_the_modules_that_it_names_are_there(kind: str) -> None:
    for entry in provider_info()[kind]:
        for module in entry["python-modules"]:
            import_module(module)


def test_airflow_knows_the_command() -> None:
    from airflow.providers_manager import ProvidersManager

    (function,) = (one for one in ProvidersManager().cli_command_functions if one.__module__.startswith("dpone"))
    assert [command.name for command in function()] == ["dpone"]
