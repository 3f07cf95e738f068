from __future__ import annotations

import os
import threading
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpone_provider.adapters.process.forwarding import LINE_BYTES, bounded_lines, readable
from dpone_provider.adapters.process.masking import Mask
from dpone_provider.domain.secret import Secret

SECRET = 's3cr3t-with-/and"quote'


def through(pieces: Sequence[bytes], mask: Mask) -> list[bytes]:
    readable_end, writable = os.pipe()

    def write() -> None:
        for piece in pieces:
            os.write(writable, piece)
        os.close(writable)

    writer = threading.Thread(target=write)
    writer.start()
    lines = list(bounded_lines(readable_end, mask))
    writer.join()
    os.close(readable_end)
    return lines


def test_nothing_to_mask_changes_nothing() -> None:
    assert Mask([]).apply(b"as it is") == b"as it is"


@given(st.lists(st.binary(max_size=30)), st.integers(1, 7))
def test_a_secret_is_masked_wherever_the_reads_cut_it(around: list[bytes], size: int) -> None:
    data = SECRET.encode().join([*around, b"x", b""])
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    assert SECRET.encode() not in b"\n".join(through(pieces, Mask([Secret(SECRET)])))


@pytest.mark.parametrize("offset", range(len(SECRET) + 2))
@pytest.mark.parametrize("after", [0, 1, 50, 100_000])
def test_no_part_of_a_secret_stands_where_a_line_is_cut(offset: int, after: int) -> None:
    before = b"." * (LINE_BYTES - offset)
    (line,) = through([before + SECRET.encode() + b"." * after], Mask([Secret(SECRET)]))
    assert SECRET[:2].encode() not in line
    assert len(line) <= LINE_BYTES + len(b" [100000000 bytes more]")


def test_many_secrets_before_the_cut_do_not_bring_the_end_of_the_buffer_to_light() -> None:
    secret = "x" * 50 + "END"
    line = (secret * 400).encode()
    (shown,) = through([line], Mask([Secret(secret)]))
    assert b"x" not in shown


def test_the_longest_spelling_wins_where_one_secret_begins_another() -> None:
    assert Mask([Secret("abc"), Secret("abcdef")]).apply(b"-abcdef-abc-") == b"-***-***-"


def test_each_line_of_a_secret_of_several_lines_is_masked() -> None:
    mask = Mask([Secret("first line\nsecond line")])
    assert through([b"first line\nsecond line\n"], mask) == [b"***", b"***"]


def test_a_forwarded_line_cannot_steer_a_terminal() -> None:
    assert readable(b"\x1b[31mred\r") == "\ufffd[31mred"
    assert readable("tab\t and ü".encode()) == "tab\t and ü"
    assert readable(b"\xff") == "\ufffd"
