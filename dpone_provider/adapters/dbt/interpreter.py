"""Which interpreter runs dbt: never our own, whose packages are Airflow's."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import dpone_provider
from dpone_provider.domain.outcomes import Refused, refuse

VARIABLE = "DPONE_DBT_PYTHON"
CHILD = Path(__file__).with_name("child.py")


def dbt_python(environment: Mapping[str, str] | None = None) -> Path | Refused:
    """Return ``DPONE_DBT_PYTHON``, or the ``.venv-dbt`` that ``make env`` makes beside the package."""
    given = (os.environ if environment is None else environment).get(VARIABLE)
    return usable(Path(given) if given else Path(dpone_provider.__file__).parents[1] / ".venv-dbt" / "bin" / "python")


def usable(python: Path) -> Path | Refused:
    """Return ``python`` if it can be executed."""
    if python.is_absolute() and python.is_file() and os.access(python, os.X_OK):
        return python
    return refuse(
        "dbt_interpreter_missing",
        f"dbt's interpreter {python}",
        found="no program that can be executed",
        allowed=f"the absolute path of a Python with dbt-core and its adapter, in {VARIABLE}, or .venv-dbt",
        next_command="make env",
    )
