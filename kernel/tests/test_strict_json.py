"""Strict JSON: unambiguous, or rejected with the reason."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jackfield.strict_json import JsonFaultKind, StrictJsonError, loads, parse_arguments, pointer

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
)


@given(VALUES)
def test_unambiguous_json_is_parsed(value: Any) -> None:
    assert loads(json.dumps(value)) == value


@given(st.text())
def test_no_text_raises_another_exception(text: str) -> None:
    with contextlib.suppress(StrictJsonError):
        loads(text)


@pytest.mark.parametrize(
    ("text", "kind", "where"),
    [
        ('{"a": 1, "a": 1}', JsonFaultKind.DUPLICATE_KEY, "/a"),
        ('[{"x": {"a/b": 1, "a/b": 2}}]', JsonFaultKind.DUPLICATE_KEY, "/0/x/a~1b"),
        ("[NaN]", JsonFaultKind.NUMBER, "/0"),
        ("-Infinity", JsonFaultKind.NUMBER, "/"),
        ("[18446744073709551616]", JsonFaultKind.NUMBER, "/0"),
        ("9" * 5000, JsonFaultKind.NUMBER, "/"),
        ("1e400", JsonFaultKind.NUMBER, "/"),
        (r'["\udc00"]', JsonFaultKind.SURROGATE, "/0"),
        (r'{"\ud800": 1}', JsonFaultKind.SURROGATE, "/"),
        ("[" * 70 + "]" * 70, JsonFaultKind.DEPTH, "/0/0/0"),
        ('{"a": ' * 50_000, JsonFaultKind.DEPTH, "/"),
        ('{"a": 1,}', JsonFaultKind.SYNTAX, "line 1, column 9"),
        ("", JsonFaultKind.SYNTAX, "line 1, column 1"),
    ],
)
def test_every_fault_is_reported_with_its_place(text: str, kind: JsonFaultKind, where: str) -> None:
    with pytest.raises(StrictJsonError) as caught:
        loads(text)
    assert [(fault.kind, fault.where) for fault in caught.value.faults] == [(kind, where)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": "b', "Unterminated string"),
        ('["a\nb"]', "Invalid control character"),
        ('{"a": 1,}', "Expecting property name enclosed in double quotes"),
    ],
)
def test_invalid_json_is_reported_in_a_complete_sentence(text: str, said: str) -> None:
    with pytest.raises(StrictJsonError) as caught:
        loads(text)
    assert caught.value.faults[0].message.startswith(said)
    assert not caught.value.faults[0].message.endswith((" at", ": "))


def test_all_faults_of_a_document_are_reported() -> None:
    with pytest.raises(StrictJsonError) as caught:
        loads('{"a": NaN, "b": {"c": 1, "c": 2}, "d": [1e999]}')
    assert [fault.where for fault in caught.value.faults] == ["/a", "/b/c", "/d/0"]


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1])
def test_a_number_beyond_64_bits_in_arguments_is_found_wherever_it_stands(number: int) -> None:
    for key in ("x" * length for length in range(40)):
        nearest = number - 1 if number > 0 else number + 1
        assert parse_arguments(f'{{"{key}":{nearest}}}')[0] == {key: nearest}
        with pytest.raises(StrictJsonError, match="at most 64 bits"):
            parse_arguments(f'{{"{key}":{number}}}')


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        # Its canonical JSON, {"a":1000000.0}, has the same length.
        ('{"a":1,"a":1e6}', JsonFaultKind.DUPLICATE_KEY),
        ('{"a":' + "[" * 70 + "]" * 70 + "}", JsonFaultKind.DEPTH),
        (r'{"a":"\ud800"}', JsonFaultKind.SURROGATE),
    ],
)
def test_a_fault_in_arguments_without_spaces_is_found(text: str, kind: JsonFaultKind) -> None:
    with pytest.raises(StrictJsonError) as caught:
        parse_arguments(text)
    assert [fault.kind for fault in caught.value.faults] == [kind]


def test_arguments_without_spaces_are_sorted_in_the_canonical_form() -> None:
    assert parse_arguments('{"b":[1.5,"x:y"],"a":{"c":null}}') == (
        {"a": {"c": None}, "b": [1.5, "x:y"]},
        b'{"a":{"c":null},"b":[1.5,"x:y"]}',
    )


def test_json_pointers_escape_their_separators() -> None:
    assert pointer("a/b", "m~n", 0) == "/a~1b/m~0n/0"
