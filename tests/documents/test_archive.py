from __future__ import annotations

import gzip
import io
import random
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpone_provider.documents.archive import bundle, read_archive
from dpone_provider.documents.directory import TreeBounds
from dpone_provider.domain.outcomes import Refused

FILES = {"deployment.json": b"{}", "native/sales/project.tar.gz": b"\x1f\x8b" * 100, "b/é": b""}


def member(name: str, size: int = 0, kind: bytes = tarfile.REGTYPE, **more: object) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.size, made.type = size, kind
    for attribute, value in more.items():
        setattr(made, attribute, value)
    return made


def tar(*members: tuple[tarfile.TarInfo, bytes], how: int = tarfile.PAX_FORMAT) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=how) as opened:
        for info, data in members:
            opened.addfile(info, io.BytesIO(data))
    return raw.getvalue()


def plain(files: dict[str, bytes], how: int = tarfile.PAX_FORMAT) -> bytes:
    return tar(*((member(name, len(data)), data) for name, data in files.items()), how=how)


def read(tmp_path: Path, data: bytes, bounds: TreeBounds | None = None) -> dict[str, bytes] | Refused:
    file = tmp_path / "it.tar"
    file.write_bytes(data)
    return read_archive(file) if bounds is None else read_archive(file, bounds)


def reason(found: dict[str, bytes] | Refused) -> str:
    assert isinstance(found, Refused), found
    return found.problem.reason


@pytest.mark.parametrize("how", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
@pytest.mark.parametrize("wrap", [bytes, gzip.compress])
def test_ordinary_tars_are_read(tmp_path: Path, how: int, wrap: Callable[[bytes], bytes]) -> None:
    long_name = "x/" * 100 + "long.json"
    files = FILES | {long_name: b"1"}
    assert read(tmp_path, wrap(plain(files, how))) == files


def test_a_leading_dot_and_directories_are_no_harm(tmp_path: Path) -> None:
    data = tar(
        (member("./", kind=tarfile.DIRTYPE), b""),
        (member("./a", kind=tarfile.DIRTYPE), b""),
        (member("./a/b", 1), b"1"),
    )
    assert read(tmp_path, data) == {"a/b": b"1"}


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (member("../x"), "unsafe_path"),
        (member("a/../../x"), "unsafe_path"),
        (member("/etc/passwd"), "unsafe_path"),
        (member("a//b"), "unsafe_path"),
        (member("././x"), "unsafe_path"),
        (member("C:/x"), "unsafe_path"),
        (member("a\\b"), "unsafe_path"),
        (member("nul"), "unsafe_path"),
        (member("a\nb"), "unsafe_path"),
        (member("x" * 600), "unsafe_path"),
        (member("../d", kind=tarfile.DIRTYPE), "unsafe_path"),
        (member("l", kind=tarfile.SYMTYPE, linkname="/etc/passwd"), "not_a_regular_file"),
        (member("l", kind=tarfile.LNKTYPE, linkname="deployment.json"), "not_a_regular_file"),
        (member("d", kind=tarfile.CHRTYPE), "not_a_regular_file"),
        (member("d", kind=tarfile.BLKTYPE), "not_a_regular_file"),
        (member("d", kind=tarfile.FIFOTYPE), "not_a_regular_file"),
        (member("deployment.json"), "archive_path_twice"),
        (member("./deployment.json"), "archive_path_twice"),
        (member("Deployment.JSON"), "archive_path_twice"),
    ],
    ids=lambda it: getattr(it, "name", it)[:20],
)
def test_members_that_are_refused(tmp_path: Path, bad: tarfile.TarInfo, expected: str) -> None:
    data = tar((member("deployment.json", 2), b"{}"), (bad, b""))
    assert reason(read(tmp_path, data)) == expected


def test_a_sparse_file_is_refused(tmp_path: Path) -> None:
    # A file whose content is mostly a claim: PAX's own way to say so.
    info = member("big.json", 512)
    info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(2**40)}
    data = tar((info, b"1\n0\n0\n".ljust(512, b"\0")))
    assert reason(read(tmp_path, data)) in ("not_a_regular_file", "archive_malformed")


def test_bounds(tmp_path: Path) -> None:
    bounds = TreeBounds(max_files=2, max_file_bytes=10, max_bytes=15)
    assert isinstance(read(tmp_path, plain({"a": b"x" * 10, "b": b"x" * 5}), bounds), dict)
    assert reason(read(tmp_path, plain({"a": b"x" * 11}), bounds)) == "archive_too_large"
    assert reason(read(tmp_path, plain({"a": b"x" * 10, "b": b"x" * 6}), bounds)) == "archive_too_large"
    assert reason(read(tmp_path, plain({"a": b"", "b": b"", "c": b""}), bounds)) == "too_many_files"


def test_a_bomb_of_zeros_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    one = zlib.compressobj(9, zlib.DEFLATED, 31)
    header = member("big.json", 100 * 1024**2).tobuf(tarfile.USTAR_FORMAT)
    data = one.compress(header) + b"".join(one.compress(bytes(1024**2)) for _ in range(100)) + one.flush()
    assert len(data) < 200_000
    assert reason(read(tmp_path, data)) == "archive_too_large"


def test_a_bomb_in_a_header_is_refused(tmp_path: Path) -> None:
    header = member("pax", 8 * 1024**3, kind=tarfile.XHDTYPE).tobuf(tarfile.GNU_FORMAT)
    one = zlib.compressobj(9, zlib.DEFLATED, 31)
    data = one.compress(header) + b"".join(one.compress(bytes(1024**2)) for _ in range(64)) + one.flush()
    assert reason(read(tmp_path, data)) == "archive_too_large"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not a tar at all" * 100,
        bytes(10_240),
        b"\x1f\x8b",
        gzip.compress(plain(FILES), mtime=0)[:-20],
        gzip.compress(b"nothing", mtime=0),
        plain(FILES)[:700],
        b"BZh9" + bytes(100),
        b"\xfd7zXZ\x00" + bytes(100),
    ],
)
def test_what_is_no_tar_is_refused(tmp_path: Path, data: bytes) -> None:
    assert reason(read(tmp_path, data)) == "archive_malformed"


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    assert reason(read_archive(tmp_path / "nowhere.tar")) == "path_unreadable"


def test_damaged_tars_are_read_or_refused_never_more(tmp_path: Path) -> None:
    dice = random.Random(7)
    for whole in (plain(FILES), gzip.compress(plain(FILES), mtime=0), bundle(FILES)):
        for _ in range(400):
            data = bytearray(whole)
            for _ in range(dice.choice((1, 3, 20))):
                data[dice.randrange(len(data))] = dice.randrange(256)
            assert isinstance(
                read(tmp_path, bytes(data[: dice.choice((len(data), dice.randrange(len(data))))])), dict | Refused
            )


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,8}(/[a-z]{1,8}){0,2}\.sql", fullmatch=True), st.binary(max_size=300), max_size=5
    )
)
def test_a_bundle_is_a_tar_that_anybody_can_read(files: dict[str, bytes]) -> None:
    made = bundle(files)
    assert made == bundle(dict(reversed(files.items())))
    with tarfile.open(fileobj=io.BytesIO(made), mode="r:gz") as opened:
        found = {one.name: opened.extractfile(one) for one in opened}
        assert {name: one.read() for name, one in found.items() if one is not None} == files


def test_a_bundle_of_more_than_one_block(tmp_path: Path) -> None:
    files = {"big.sql": random.Random(1).randbytes(200_000)}
    assert read(tmp_path, bundle(files)) == files
    assert gzip.decompress(bundle(files))[:7] == b"big.sql"
