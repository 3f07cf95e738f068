"""The dpone provider: dbt and transfer deployments for Apache Airflow under one control authority.

Importing this package imports nothing else: the command line and the DAG processor both pay for it at every start.
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"


def get_provider_info() -> dict[str, Any]:
    """What Airflow's provider manager reads from the entry point group `apache_airflow_provider`.

    The shape is Airflow's `provider_info.schema.json`; `name` and `description` are required there, and
    `package-name` must equal the name of the installed distribution or Airflow refuses the provider.
    """
    return {
        "package-name": "airflow-provider-dpone",
        "name": "dpone",
        "description": "Deployments of dbt projects and data transfers, admitted, fenced and reconciled.\n",
    }
