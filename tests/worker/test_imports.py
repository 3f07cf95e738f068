"""What a worker imports before it moves the first row."""

from __future__ import annotations

import subprocess
import sys

ADAPTERS = "postgres.reader", "postgres.staging", "postgres.writer", "clickhouse.reader", "clickhouse.staging"


def test_a_worker_imports_nothing_that_it_does_not_need() -> None:
    """Neither pandas, which pyarrow would take where it is installed, nor what only a controller needs."""
    program = f"""
import sys
import dpone_provider.worker.__main__ as worker
worker.forbid_pandas()
for name in {ADAPTERS}:
    __import__(f"dpone_provider.adapters.{{name}}")
import pyarrow
print(pyarrow.scalar(1).as_py(), *sys.modules)
"""
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True)
    one, *modules = done.stdout.split()
    assert one == "1", "pyarrow does without"
    controllers = {"dpone_provider.application.attempt", "dpone_provider.application.front_door", "sqlalchemy"}
    assert set(modules).isdisjoint({"pandas", "airflow", "click", *controllers})
