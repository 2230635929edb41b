"""Numbers that JSON cannot carry are found wherever they are."""

from __future__ import annotations

import json
import math
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jackfield.finite import is_finite

_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
)


def _is_written(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True


@given(_values)
def test_it_agrees_with_a_strict_writer_of_json(value: Any) -> None:
    assert is_finite(value) is _is_written(value)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("depth", [0, 1, 5, 6, 7, 100])
def test_a_number_is_found_at_every_depth(number: float, depth: int) -> None:
    value: Any = number
    for _ in range(depth):
        value = {"list": [None, value]}
    assert not is_finite(value)


def test_a_number_is_found_beside_what_only_the_writer_of_answers_knows() -> None:
    day = date(2026, 3, 2)
    assert is_finite({"day": day, "price": 1.5})
    assert not is_finite({"day": day, "prices": [1.5, math.nan]})
