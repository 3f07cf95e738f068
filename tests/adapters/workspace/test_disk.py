from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from dpone_provider.adapters.workspace import DiskWorkspace
from dpone_provider.application.ports.workspace import SourceTree
from dpone_provider.documents.workspace import WorkspaceV1
from dpone_provider.domain.outcomes import Refused
from tests.application.workspaces import Workspace

DISK = DiskWorkspace()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return Workspace(tmp_path / "workspace").write().root


def tree(root: Path) -> SourceTree:
    found = DISK.project(root / "dbt")
    assert isinstance(found, SourceTree), found
    return found


def git(root: Path, *arguments: str) -> None:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *arguments], cwd=root, check=True, capture_output=True)


def test_a_workspace_is_read(root: Path) -> None:
    found = DISK.workspace(root)
    assert isinstance(found, WorkspaceV1)
    assert found.native[0].project == "dbt"


def test_an_unknown_field_is_named_with_its_path(root: Path) -> None:
    text = (root / "workspace.yaml").read_text()
    (root / "workspace.yaml").write_text(text.replace("strategy:", "stratgey:"))
    found = DISK.workspace(root)
    assert isinstance(found, Refused)
    assert found.problem.subject.endswith(("$.ordinary[0].stratgey", "$.ordinary[0].strategy"))


def test_a_tree_does_not_depend_on_where_and_when_it_is(root: Path, tmp_path: Path) -> None:
    first = tree(root)
    shutil.copytree(root, tmp_path / "copy", copy_function=shutil.copy)
    assert tree(tmp_path / "copy") == first


def test_a_link_in_a_project_is_refused(root: Path) -> None:
    (root / "dbt" / "models" / "out.sql").symlink_to("/etc/passwd")
    found = DISK.project(root / "dbt")
    assert isinstance(found, Refused)
    assert found.problem.reason == "not_a_regular_file"


def test_a_directory_without_a_project_file_is_refused(root: Path) -> None:
    (root / "dbt" / "dbt_project.yml").unlink()
    found = DISK.project(root / "dbt")
    assert isinstance(found, Refused)
    assert found.problem.reason == "not_a_dbt_project"


def test_a_folder_named_target_below_the_top_is_source(root: Path) -> None:
    (root / "dbt" / "models" / "target").mkdir()
    (root / "dbt" / "models" / "target" / "m.sql").write_text("select 1")
    assert "models/target/m.sql" in [one.path for one in tree(root).files]


def test_a_commit_is_known_only_while_the_files_are_its(root: Path) -> None:
    assert DISK.commit(root) is None
    git(root, "init", "-q")
    assert DISK.commit(root) is None
    (root / ".gitignore").write_text("environments/\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    commit = DISK.commit(root)
    assert commit is not None
    assert len(commit) == 40
    (root / "environments" / "synthetic.yaml").write_text("ignored: true\n")
    assert DISK.commit(root) == commit
    (root / "dbt" / "models" / "new.sql").write_text("select 1")
    assert DISK.commit(root) is None


def test_a_workspace_that_git_ignores_is_of_no_commit(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("/.dpone/\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    assert DISK.commit(Workspace(tmp_path / ".dpone" / "workspace").write().root) is None


def test_a_directory_is_written_whole_and_replaced_whole(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    assert DISK.write(out, {"marker": b"1", "a/b": b"2"}, "marker") is None
    assert DISK.read(out) == {"a/b": b"2", "marker": b"1"}
    assert DISK.write(out, {"marker": b"3"}, "marker") is None
    assert DISK.read(out) == {"marker": b"3"}
    assert [each.name for each in out.parent.iterdir()] == ["out"]


def test_an_empty_directory_may_be_filled_a_foreign_one_not(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    assert DISK.write(out, {"marker": b"1"}, "marker") is None
    (out / "marker").rename(out / "other")
    found = DISK.write(out, {"marker": b"1"}, "marker")
    assert isinstance(found, Refused)
    assert found.problem.reason == "output_not_ours"
    assert (out / "other").exists()


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    found = DISK.write(tmp_path / "file" / "out", {"marker": b"1"}, "marker")
    assert isinstance(found, Refused)
    assert found.problem.reason == "output_not_writable"
