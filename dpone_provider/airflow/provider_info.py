"""What the provider tells Airflow of itself: a plain document, read at every start of every Airflow process.

Its shape is Airflow's ``provider_info.schema.json``. Nothing of Airflow is imported here.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

DISTRIBUTION: Final = "airflow-provider-dpone"
SECTION: Final = "dpone"
SINCE: Final = "0.1.0"


def _option(kind: str, example: str | None, default: str | None, description: str) -> dict[str, Any]:
    return {
        "description": description,
        "version_added": SINCE,
        "type": kind,
        "example": example,
        "default": default,
    }


OPTIONS: Final = MappingProxyType(
    {
        "cache_root": _option(
            "string",
            "/var/lib/dpone/cache",
            None,
            "Directory of the deployment cache on this machine: the one that `dpone airflow cache-sync` fills.\n",
        ),
        "environment": _option("string", "synthetic", None, "The environment whose current deployment is loaded.\n"),
        "authority_connection_ref": _option(
            "string",
            "airflow:dpone_authority",
            None,
            "Where the control authority's credential is found (env:NAME, file:PATH or airflow:CONN_ID), never the"
            " credential itself.\n",
        ),
        "control_schema": _option("string", "dpone_control", "dpone_control", "The control schema's name.\n"),
        "dbt_python": _option(
            "string", "/opt/dbt/bin/python", None, "Python of the environment that dbt is installed in.\n"
        ),
        "child_user": _option(
            "integer", "4711", None, "Another uid for the processes that do the work; needs root. Empty: our own.\n"
        ),
        "admission_timeout": _option(
            "float", "60", "60", "Seconds that a task waits in its process for slots that another attempt holds.\n"
        ),
        "execution_timeout": _option("float", "3600", "3600", "Seconds that one attempt may execute.\n"),
        "closing_timeout": _option(
            "float", "60", "60", "Seconds for closing an attempt's logins and proving that nothing of them is left.\n"
        ),
        "ledger_timeout": _option(
            "float",
            "30",
            "30",
            "Seconds that one transaction of the ledger may take in a command, waiting for locks included. A controller"
            " that has said nothing inside one for a third of it is taken for stopped.\n",
        ),
        "busy_reschedules": _option(
            "integer",
            "60",
            "60",
            "How often a task whose slots stay busy frees its worker and comes again, before the try fails. No retry"
            " is used up by it.\n",
        ),
        "busy_reschedule_seconds": _option("float", "60", "60", "Seconds between two such visits.\n"),
        "retry_delay_seconds": _option(
            "float", "30", None, "Seconds before a failed task's next try. Empty: Airflow's own default.\n"
        ),
    }
)
"""The options of section ``[dpone]``. The first ten are settings of the whole product: ``DPONE_<OPTION>`` in the
environment says the same and goes before; the last three are Airflow's only."""

PRODUCT_OPTIONS: Final = tuple(OPTIONS)[:10]


def provider_info() -> dict[str, Any]:
    """Return the document of the entry point group ``apache_airflow_provider``.

    ``package-name`` must equal the installed distribution's name, or Airflow refuses the provider.
    """
    return {
        "package-name": DISTRIBUTION,
        "name": SECTION,
        "description": "Deployments of dbt projects and data transfers, admitted, fenced and reconciled.\n",
        "integrations": [{"integration-name": SECTION, "tags": ["service"]}],
        "operators": [{"integration-name": SECTION, "python-modules": ["dpone_provider.airflow.operators"]}],
        "cli": ["dpone_provider.airflow.command.commands"],
        "bundles": [{"integration-name": SECTION, "python-modules": ["dpone_provider.airflow.bundle"]}],
        "config": {
            SECTION: {
                "description": "Where this process finds the deployments that it shows and runs.\n",
                "options": {name: dict(option) for name, option in OPTIONS.items()},
            }
        },
    }
