"""The footprint on SQL Server, against the suffixes that the installed adapter's own macros put behind a name.

The macros are read as text, those of dbt itself too, which the adapter calls: a version that stands anything new beside
a model fails here, before it writes what no slot covers.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from dpone_provider.adapters.dbt.interpreter import dbt_python
from dpone_provider.domain.footprint import written_by_dbt
from dpone_provider.domain.identity import EngineKind
from tests.domain.test_footprint import node

pytestmark = pytest.mark.lab
ASK = """
import json, dbt.include.sqlserver, dbt.include.global_project
print(json.dumps([dbt.include.sqlserver.PACKAGE_PATH, dbt.include.global_project.PACKAGE_PATH]))
"""
SUFFIX = re.compile(r"""['"](?P<suffix>_\w*(?:_vw|_view|__dbt_\w+)|__dbt_\w+)['"]""")
COLUMNS = {"__dbt_alter", "__dbt_internal_microbatch_event_time_start", "__dbt_internal_microbatch_event_time_end"}
"""Names of columns and of values: no relation has them."""


@pytest.fixture(scope="module")
def suffixes() -> set[str]:
    """Every constant of the macros that is put behind a relation's name."""
    asked = subprocess.run(
        [str(dbt_python()), "-I", "-c", ASK], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    texts = [path.read_text(encoding="utf-8") for root in json.loads(asked) for path in Path(root).rglob("*.sql")]
    assert len(texts) > 100
    return {match["suffix"] for text in texts for match in SUFFIX.finditer(text)} - COLUMNS


def helpers() -> set[str]:
    """What the footprint has beside a model that is named m."""
    return {one.relation.name.removeprefix("m") for one in written_by_dbt(EngineKind.MSSQL, node("m"))} - {""}


def test_every_suffix_of_the_macros_is_in_the_footprint(suffixes: set[str]) -> None:
    assert {"__dbt_tmp", "__dbt_temp", "__dbt_backup", "__dbt_refresh", "__dbt_tmp_vw"} <= suffixes
    assert suffixes <= helpers()


def test_the_footprint_is_made_of_nothing_else(suffixes: set[str]) -> None:
    """A helper is one of them, or the view through which another one is built."""
    assert helpers() <= suffixes | {first + second for first in suffixes for second in suffixes}
