"""What is installed: the wheel's content, its entry points, and what Airflow's provider manager reads."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from importlib.metadata import entry_points, version
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

import dpone_provider
from dpone_provider import get_provider_info

ROOT = Path(dpone_provider.__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.Path:
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(out)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (built,) = out.iterdir()
    return zipfile.Path(built)


def test_the_provider_s_information_is_what_airflow_expects() -> None:
    schema = json.loads(files("airflow").joinpath("provider_info.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(get_provider_info(), schema)
    (point,) = [
        point
        for point in entry_points(group="apache_airflow_provider")
        if point.dist is not None and point.dist.name == get_provider_info()["package-name"]
    ]
    assert point.load() is get_provider_info


def test_there_is_one_version() -> None:
    assert version("airflow-provider-dpone") == dpone_provider.__version__


def test_the_console_script_is_named_dpone() -> None:
    (script,) = [point for point in entry_points(group="console_scripts") if point.name == "dpone"]
    assert script.value == "dpone_provider.cli:main"


def test_the_wheel_carries_every_file_of_the_package_and_the_sql_to_install(wheel: zipfile.Path) -> None:
    held = {name for name in wheel.root.namelist() if not name.endswith("/")}
    package = [path for path in (ROOT / "dpone_provider").rglob("*") if path.is_file()]
    expected = {str(path.relative_to(ROOT)) for path in package if "__pycache__" not in path.parts}
    expected |= {f"dpone_provider/_{path.relative_to(ROOT)}" for path in (ROOT / "sql").rglob("*") if path.is_file()}
    metadata = {name for name in held if ".dist-info/" in name}
    assert held - metadata == expected
    assert any(name.endswith("licenses/LICENSE") for name in metadata)


def test_importing_the_package_imports_nothing_else() -> None:
    source = "import sys; before = set(sys.modules); import dpone_provider; print(*set(sys.modules) - before)"
    loaded = subprocess.run(
        [sys.executable, "-c", source], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split()
    assert {name.split(".")[0] for name in loaded} - set(sys.stdlib_module_names) == {"dpone_provider"}
