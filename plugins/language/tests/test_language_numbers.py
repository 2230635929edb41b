"""Numbers in text: which digits and words are amounts, and their values."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jackfield_language.numbers import amounts


def test_one_is_a_number_only_if_it_counts_something() -> None:
    assert [each.value for each in amounts("one prompt for two people")] == [1, 2]
    assert amounts("the second one, or that one") == []


@given(st.integers(0, 10**12), st.sampled_from(["{}", "{:,}", "${:,}", "{:,} euros", "about {}", "{}%"]))
def test_a_whole_number_is_read_in_every_writing(value: int, writing: str) -> None:
    said = writing.format(value)
    (found,) = amounts(said)
    assert (found.value, found.percent) == (value, said.endswith("%"))


@pytest.mark.parametrize(
    ("said", "values"),
    [
        ("two hundred and fifty thousand", [250_000]),
        ("1.5 million", [1_500_000]),
        ("three and five", [3, 5]),
        ("-5 and minus 7", [-5, -7]),
        ("1.000,50 or 3,5", [1000.5, 3.5]),
        ("on 2026-11-16 at 9:30 in room A4, doc:12, the third one", []),
    ],
)
def test_numbers_are_distinguished_from_other_digits(said: str, values: list[float]) -> None:
    assert [each.value for each in amounts(said)] == values


@given(
    st.lists(
        st.sampled_from(
            ["one", "million", "point", "\u017fix", "\u0663", "9" * 400, "a", "$", "%", "-", "and"]
        )
    ).map(" ".join)
    | st.text()
)
def test_whatever_is_said_has_finite_amounts_within_it(said: str) -> None:
    for each in amounts(said):
        assert math.isfinite(each.value)
        assert 0 <= each.span.start < each.span.end <= len(said)
