"""What is committed: pins, lock files, registries, and the time that the suites may take."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from tests.suites import SUITES, TOTAL_BUDGET_SECONDS, planned_seconds

ROOT = Path(__file__).resolve().parents[2]

LOCK_FILES = {"package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "uv.lock", "poetry.lock", "Pipfile.lock"}
# In pieces, since this file is committed too.
REGISTRY_HOSTS = tuple(
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("deb", "debian", "org"),
        ("npmmirror", "com"),
    )
)
PIN = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*==[^\s;]+( ; .+)?")


def committed() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split("\0")
    if listed == [""]:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed if name and (ROOT / name).is_file()]


def pins(name: str) -> dict[str, set[Version]]:
    found: dict[str, set[Version]] = {}
    for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            requirement = Requirement(line)
            (specifier,) = requirement.specifier
            found.setdefault(requirement.name, set()).add(Version(specifier.version))
    return found


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_no_lock_file_is_committed() -> None:
    assert not [path for path in committed() if path.name in LOCK_FILES]


def test_no_file_names_a_registry() -> None:
    found = [
        f"{path.relative_to(ROOT)} names {host}"
        for path in committed()
        for host in REGISTRY_HOSTS
        if host.encode() in path.read_bytes()
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", ["constraints.txt", "constraints-dbt.txt"])
def test_constraints_are_plain_pins(name: str) -> None:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    assert not [line for line in lines if not line.startswith("# ") and not PIN.fullmatch(line)]


def test_every_declared_dependency_is_pinned_within_its_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = [*project["dependencies"], *(r for extra in project["optional-dependencies"].values() for r in extra)]
    pinned = pins("constraints.txt")
    found = []
    for requirement in map(Requirement, declared):
        if requirement.name == project["name"]:
            continue
        versions = pinned.get(canonical(requirement.name), set())
        if not versions or not all(requirement.specifier.contains(version) for version in versions):
            found.append(f"{requirement} is pinned to {', '.join(map(str, versions)) or 'nothing'}")
    assert not found, "\n".join(found)


def test_dbt_has_its_own_pins() -> None:
    (core,) = pins("constraints-dbt.txt")["dbt-core"]
    assert core.release[:2] == (1, 11)
    assert not {"dbt-core", "dbt-postgres"} & set(pins("constraints.txt"))


def test_the_budgets_of_all_suites_keep_to_the_total() -> None:
    assert planned_seconds(SUITES) <= TOTAL_BUDGET_SECONDS
