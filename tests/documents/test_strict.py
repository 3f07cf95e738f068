from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpone_provider.documents.strict import Bounds, parse, parse_foreign
from dpone_provider.domain.outcomes import Refused

CASES = [
    (b'{"a":1,"b":{"c":1,"d":[{"c":2,"c":3}]}}', "duplicate_key", "$.b.d[0]"),
    (b'{"a":1,"a":1}', "duplicate_key", "$"),
    (b'{"a":1.0}', "not_canonical_value", "$.a"),
    (b'{"a":1e3}', "not_canonical_value", "$.a"),
    (b"[NaN]", "not_canonical_value", "$[0]"),
    (b"-Infinity", "not_canonical_value", "$"),
    (b"[9007199254740992]", "not_canonical_value", "$[0]"),
    (b"[" + b"9" * 100_000 + b"]", "not_canonical_value", "$[0]"),
    (b'"\\ud800"', "not_canonical_value", "$"),
    ('{"a":"e\u0301"}'.encode(), "not_canonical_value", "$.a"),
    (b"{} {}", "not_json", "$"),
    (b"{}\x00", "not_json", "$"),
    (b'{"a":1,}', "not_json", "$"),
    (b"{'a':1}", "not_json", "$"),
    (b'{"a":01}', "not_json", "$"),
    (b"// x\n{}", "not_json", "$"),
    (b"", "not_json", "$"),
    (b'"a\nb"', "not_json", "$"),
    (b"\xef\xbb\xbf{}", "byte_order_mark", "$"),
    (b'{"a":"\xff"}', "not_utf8", "$"),
    (b'"\xed\xa0\x80"', "not_utf8", "$"),
    ('{"a":1}'.encode("utf-16"), "not_utf8", "$"),
    (b"[" * 25 + b"]" * 25, "document_too_deep", "$"),
    (b"[" * 1_000_000, "document_too_deep", "$"),
    (b'{"a":' * 200_000, "document_too_deep", "$"),
]


@pytest.mark.parametrize(("data", "reason", "place"), CASES, ids=[str(number) for number in range(len(CASES))])
def test_what_is_not_strict_is_refused_with_its_place(data: bytes, reason: str, place: str) -> None:
    found = parse(data, "some.json")
    assert isinstance(found, Refused)
    assert (found.problem.reason, found.problem.subject) == (reason, f"some.json at {place}")
    assert len(str(found.problem)) < 1000


def test_bounds_are_exact() -> None:
    bounds = Bounds(max_bytes=20, max_depth=2, max_values=4)
    assert parse(b"[[1,2]]", "x", bounds) == [[1, 2]]
    assert isinstance(parse(b"[[1,2,3]]", "x", bounds), Refused)
    assert isinstance(parse(b"[[[1]]]", "x", bounds), Refused)
    assert parse(b"[" + b" " * 18 + b"]", "x", bounds) == []
    assert isinstance(parse(b"[" + b" " * 19 + b"]", "x", bounds), Refused)


def test_brackets_within_texts_are_no_depth() -> None:
    assert parse(b'["' + b"[" * 100 + b'\\"' + b"{" * 100 + b'"]', "x") == ["[" * 100 + '"' + "{" * 100]


def test_foreign_text_may_hold_floats_but_no_duplicates() -> None:
    assert parse_foreign(b'{"a":1.5,"b":99999999999999999999}', "m") == {"a": 1.5, "b": 99999999999999999999}
    assert isinstance(parse_foreign(b'{"a":1,"a":2}', "m"), Refused)
    assert isinstance(parse_foreign(b"[" + b"9" * 10_000 + b"]", "m"), Refused)


@pytest.mark.parametrize(
    "data", [b'"' + b'\\"' * 2_000_000, b'{"a":"' * 500_000, b"\\" * 4_000_000, b'"\\' * 2_000_000]
)
def test_hostile_text_costs_linear_time(data: bytes) -> None:
    began = time.process_time()
    assert isinstance(parse(data, "x"), Refused)
    assert time.process_time() - began < 5


@given(st.binary(max_size=200))
def test_any_bytes_give_a_value_or_a_refusal(data: bytes) -> None:
    parse(data, "x")


@given(st.text(alphabet='{}[]",:\\0123456789.eE-+truefalsn u\ud7ffabc', max_size=60))
def test_anything_like_json_gives_a_value_or_a_refusal(text: str) -> None:
    parse(text.encode(), "x")
