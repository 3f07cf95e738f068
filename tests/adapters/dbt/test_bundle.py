from __future__ import annotations

import io
import stat
import tarfile
from pathlib import Path

import pytest

from dpone_provider.adapters.dbt.bundle import unpack
from dpone_provider.documents.archive import bundle


def archive(path: Path, *members: tuple[str, bytes]) -> Path:
    """A tar that makes no exceptions: names as given, a link where the type says so."""
    with tarfile.open(path, "w:gz") as tar:
        for name, kind in members:
            member = tarfile.TarInfo(name)
            member.type, member.linkname, member.size = kind, "/etc/passwd", 1 if kind == tarfile.REGTYPE else 0
            tar.addfile(member, io.BytesIO(b"x"))
    return path


def test_files_are_written_for_their_owner_only(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(bundle({"dbt_project.yml": b"name: x", "models/a/b.sql": b"select 1"}))
    assert unpack(tmp_path / "b", tmp_path / "project") is None
    written = tmp_path / "project" / "models" / "a" / "b.sql"
    assert written.read_bytes() == b"select 1"
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "project").stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("member", "reason"),
    [
        (("../evil.sql", tarfile.REGTYPE), "unsafe_path"),
        (("/evil.sql", tarfile.REGTYPE), "unsafe_path"),
        (("models/../../evil.sql", tarfile.REGTYPE), "unsafe_path"),
        (("link.sql", tarfile.SYMTYPE), "not_a_regular_file"),
        (("link.sql", tarfile.LNKTYPE), "not_a_regular_file"),
        (("device", tarfile.CHRTYPE), "not_a_regular_file"),
        (("pipe", tarfile.FIFOTYPE), "not_a_regular_file"),
        (("dbt_project.yml", tarfile.REGTYPE), "archive_path_twice"),
    ],
)
def test_what_could_leave_the_directory_is_refused_with_nothing_written(
    tmp_path: Path, member: tuple[str, bytes], reason: str
) -> None:
    made = archive(tmp_path / "b", ("dbt_project.yml", tarfile.REGTYPE), member)
    refused = unpack(made, tmp_path / "project")
    assert refused is not None
    assert refused.problem.reason == reason
    assert not (tmp_path / "project").exists()


def test_an_archive_without_a_project_is_refused(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(bundle({"models/m.sql": b"select 1"}))
    refused = unpack(tmp_path / "b", tmp_path / "project")
    assert refused is not None
    assert refused.problem.reason == "dbt_bundle_unfit"


def test_a_missing_archive_is_refused(tmp_path: Path) -> None:
    assert unpack(tmp_path / "absent", tmp_path / "project") is not None
