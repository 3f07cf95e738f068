from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpone_provider.adapters.workspace.yaml_text import MAX_BYTES, read_yaml
from dpone_provider.domain.outcomes import Refused
from tests.documents.examples import WORKSPACE


def read(tmp_path: Path, text: str | bytes) -> Any:
    file = tmp_path / "it.yaml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_yaml(file)


def reason(found: Any) -> str:
    assert isinstance(found, Refused), found
    return found.problem.reason


def test_plain_values(tmp_path: Path) -> None:
    text = """
a: [1, -2, 0, true, false, null, ~, "3", x]
b: {c: yes, d: on, e: 1.5, f: 2026-01-01, g: 0x10, h: 010, i: 1_000, j: .inf, k: True}
m: |
  two
  lines
n:
"""
    assert read(tmp_path, text) == {
        "a": [1, -2, 0, True, False, None, None, "3", "x"],
        "b": {
            "c": "yes",
            "d": "on",
            "e": "1.5",
            "f": "2026-01-01",
            "g": "0x10",
            "h": "010",
            "i": "1_000",
            "j": ".inf",
            "k": "True",
        },
        "m": "two\nlines\n",
        "n": None,
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\nb: 2\na: 3\n", "duplicate_key"),
        ("a:\n  - {x: 1, x: 2}\n", "duplicate_key"),
        ('"a": 1\na: 2\n', "duplicate_key"),
        ("a: &x 1\nb: *x\n", "not_yaml"),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", "not_yaml"),
        ("a: !!python/object/apply:os.system ['true']\n", "not_yaml"),
        ("a: !!binary aGk=\n", "not_yaml"),
        ("!custom {a: 1}\n", "not_yaml"),
        ("a: 1\n---\nb: 2\n", "not_yaml"),
        ("a: [1\n", "not_yaml"),
        ("a: b: c\n", "not_yaml"),
        ("\ta: 1\n", "not_yaml"),
        ("a: \x00\n", "not_yaml"),
        ("? [a, b]\n: 1\n", "not_yaml"),
        ("[" * 1000, "not_yaml"),
        ("a: e\u0301\n", "not_canonical_value"),
        ("a: 99999999999999999\n", "not_canonical_value"),
        ("1: a\n", "not_yaml"),
        (b"a: \xff\n", "not_utf8"),
        (b"a: 1\n#" + b" " * MAX_BYTES, "document_too_large"),
    ],
    ids=[str(number) for number in range(20)],
)
def test_what_is_refused(tmp_path: Path, text: str | bytes, expected: str) -> None:
    assert reason(read(tmp_path, text)) == expected


def test_a_refusal_names_the_line(tmp_path: Path) -> None:
    found = read(tmp_path, "a: 1\nb: 2\na: 3\n")
    assert isinstance(found, Refused)
    assert found.problem.subject.endswith("it.yaml, line 3, column 1")


def test_a_refusal_shows_nothing_of_the_text(tmp_path: Path) -> None:
    found = read(tmp_path, "password: 'hunter2\nmore: [\n")
    assert isinstance(found, Refused)
    assert "hunter2" not in str(found.problem)


def test_a_billion_laughs_cost_nothing(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    assert reason(read(tmp_path, "\n".join(lines))) == "not_yaml"


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    assert reason(read_yaml(tmp_path / "nowhere.yaml")) == "path_unreadable"


def test_damaged_texts_are_read_or_refused_never_more(tmp_path: Path) -> None:
    dice = random.Random(3)
    whole = yaml.safe_dump(WORKSPACE).encode()
    for _ in range(500):
        data = bytearray(whole)
        for _ in range(dice.choice((1, 2, 5))):
            at = dice.randrange(len(data))
            data[at : at + dice.choice((0, 1, 20))] = dice.choice(
                (b":", b"- ", b"\n", b"{", b"&a ", b"!", b"\x00", b"  ")
            )
        read(tmp_path, bytes(data))
