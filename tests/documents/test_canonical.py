from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpone_provider.documents.canonical import MAX_INTEGER, NotCanonical, canonical_bytes, canonical_digest, json_path
from dpone_provider.documents.strict import parse

TEXT = st.text().map(lambda text: unicodedata.normalize("NFC", text))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-MAX_INTEGER, MAX_INTEGER) | TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5),
    max_leaves=30,
)


def shuffled(value: Any, random: Any) -> Any:
    """The same value with the keys of every object in another order."""
    if isinstance(value, dict):
        keys = list(value)
        random.shuffle(keys)
        return {key: shuffled(value[key], random) for key in keys}
    return [shuffled(each, random) for each in value] if isinstance(value, list) else value


@given(VALUES)
def test_reading_and_writing_again_changes_nothing(value: Any) -> None:
    written = canonical_bytes(value)
    again = parse(written, "x")
    assert again == value
    assert canonical_bytes(again) == written


@given(VALUES, st.randoms(use_true_random=False), st.sampled_from([None, 0, 3]))
def test_neither_order_of_keys_nor_blanks_nor_escapes_matter(value: Any, random: Any, indent: int | None) -> None:
    text = json.dumps(shuffled(value, random), indent=indent, ensure_ascii=random.random() < 0.5)
    assert canonical_bytes(parse(text.encode(), "x")) == canonical_bytes(value)


@given(VALUES, VALUES)
def test_digests_are_equal_exactly_for_equal_values(one: Any, other: Any) -> None:
    # Python calls 1 and True equal; JSON does not, and neither do their texts.
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (canonical_digest(one) == canonical_digest(other)) == same


def test_the_form_itself() -> None:
    value = {"b": [True, None, -1, "é\n\u2028\x7f"], "a": {}, "B": "", "é": 0}
    assert canonical_bytes(value) == '{"B":"","a":{},"b":[true,null,-1,"é\\n\u2028\x7f"],"é":0}'.encode()


@pytest.mark.parametrize(
    ("value", "where"),
    [
        (1.5, "$"),
        ({"a": [1, float("nan")]}, "$.a[1]"),
        ({"a b": MAX_INTEGER + 1}, '$["a b"]'),
        ({"a": -MAX_INTEGER - 1}, "$.a"),
        (["e\u0301"], "$[0]"),
        ({"e\u0301": 1}, '$["e\\u0301"]'),
        ("\ud800", "$"),
        ({1: 2}, "$"),
        ({"a": b"bytes"}, "$.a"),
        ({"a": {1, 2}}, "$.a"),
    ],
)
def test_what_has_no_canonical_form_is_refused_with_its_place(value: Any, where: str) -> None:
    with pytest.raises(NotCanonical) as caught:
        canonical_bytes(value)
    assert json_path(caught.value.defect.path) == where
