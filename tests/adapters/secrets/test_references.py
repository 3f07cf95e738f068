from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from dpone_provider.adapters.secrets.references import ReferencedCredentials
from dpone_provider.application.ports.credentials import Credentials, ResolvedReference
from dpone_provider.domain.identity import EngineKind
from dpone_provider.domain.outcomes import Refused

CANARY = "c4n4ryS3cret"
URL = f"postgresql://me:{CANARY}@127.0.0.1:5432/warehouse"


def resolve(reference: str, environment: dict[str, str] | None = None) -> ResolvedReference | Refused:
    credentials: Credentials = ReferencedCredentials(environment or {})
    return credentials.resolve(reference)


def refused(reference: str, environment: dict[str, str] | None = None) -> Refused:
    outcome = resolve(reference, environment)
    assert isinstance(outcome, Refused)
    assert CANARY not in f"{outcome!r} {outcome.problem}"
    return outcome


def private(path: Path, text: str | bytes = URL, mode: int = 0o600) -> str:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(mode)
    return f"file:{path}"


def test_a_reference_to_the_environment_gives_what_the_url_says() -> None:
    resolved = resolve("env:WAREHOUSE", {"WAREHOUSE": URL})
    assert isinstance(resolved, ResolvedReference)
    assert resolved.kind is EngineKind.POSTGRES
    assert resolved.credential.user == "me"
    assert resolved.credential.password.reveal() == CANARY
    assert CANARY not in repr(resolved)


def test_nothing_is_cached() -> None:
    environment = {"WAREHOUSE": URL}
    credentials = ReferencedCredentials(environment)
    credentials.resolve("env:WAREHOUSE")
    environment["WAREHOUSE"] = URL.replace("warehouse", "shop")
    resolved = credentials.resolve("env:WAREHOUSE")
    assert isinstance(resolved, ResolvedReference)
    assert resolved.database == "shop"


def test_the_process_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPONE_TEST_REFERENCE", URL)
    assert isinstance(ReferencedCredentials().resolve("env:DPONE_TEST_REFERENCE"), ResolvedReference)


@pytest.mark.parametrize("environment", [{}, {"WAREHOUSE": ""}])
def test_a_missing_or_empty_variable_is_refused_by_name(environment: dict[str, str]) -> None:
    outcome = refused("env:WAREHOUSE", environment)
    assert outcome.problem.reason == "credential_missing"
    assert "WAREHOUSE" in outcome.problem.next_command


def test_a_malformed_value_is_refused_without_telling_it() -> None:
    assert refused("env:W", {"W": URL + "/x"}).problem.reason == "credential_malformed"


@pytest.mark.parametrize(
    "reference", [URL, "env:", "env:a b", "file:relative", "airflow:", "vault:x", "", CANARY, "airflow:a/b"]
)
def test_what_is_no_reference_is_refused_and_not_repeated(reference: str) -> None:
    assert refused(reference).problem.reason == "credential_reference_malformed"


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_a_private_file_is_read_without_its_line_end(tmp_path: Path, ending: str) -> None:
    assert isinstance(resolve(private(tmp_path / "url", URL + ending)), ResolvedReference)


@pytest.mark.parametrize("mode", [0o400, 0o600, 0o700])
def test_a_file_for_its_owner_only_is_private(tmp_path: Path, mode: int) -> None:
    assert isinstance(resolve(private(tmp_path / "url", mode=mode)), ResolvedReference)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o620, 0o602, 0o610])
def test_a_file_that_others_have_rights_on_is_refused(tmp_path: Path, mode: int) -> None:
    outcome = refused(private(tmp_path / "url", mode=mode))
    assert f"{mode:04o}" in outcome.problem.found
    assert "chmod" in outcome.problem.next_command


def test_a_link_to_a_private_file_is_followed_as_mounted_secrets_are_links(tmp_path: Path) -> None:
    private(tmp_path / "url")
    (tmp_path / "link").symlink_to("url")
    assert isinstance(resolve(f"file:{tmp_path / 'link'}"), ResolvedReference)


def test_what_is_not_a_readable_regular_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    for path in (tmp_path / "missing", tmp_path, tmp_path / "pipe", Path("/dev/null")):
        assert refused(f"file:{path}").problem.reason == "credential_file_unusable"


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff\xfe", b"x" * 9000])
def test_an_empty_huge_or_binary_file_is_refused(tmp_path: Path, content: bytes) -> None:
    assert refused(private(tmp_path / "url", content)).problem.reason == "credential_file_unusable"


@pytest.mark.skipif(os.geteuid() != 0, reason="giving a file away needs root")
def test_a_file_of_somebody_else_is_refused(tmp_path: Path) -> None:
    reference = private(tmp_path / "url")
    os.chown(tmp_path / "url", 65534, 65534)
    assert stat.S_IMODE((tmp_path / "url").stat().st_mode) == 0o600
    assert "uid 65534" in refused(reference).problem.found
