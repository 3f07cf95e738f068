"""The dpone provider: dbt and transfer deployments for Apache Airflow under one control authority.

Importing this package imports nothing else: the command line and the DAG processor both pay for it at every start.
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"


def get_provider_info() -> dict[str, Any]:
    """What Airflow's provider manager reads from the entry point group `apache_airflow_provider`."""
    from dpone_provider.airflow.provider_info import provider_info

    return provider_info()
