"""Pronouns, consent and refusal."""

from __future__ import annotations

import pytest
from jackfield_language.questions import agrees, refers_back, refuses


@pytest.mark.parametrize(
    ("said", "back"),
    [
        ("are there any on the second floor?", True),
        ("do you have some?", True),
        ("do you have some paper?", False),
        ("which of them is late?", True),
    ],
)
def test_a_pronoun_refers_to_what_was_named_before(said: str, back: bool) -> None:
    assert refers_back(said) is back


def test_only_clear_words_count_as_yes_or_no() -> None:
    assert all(map(agrees, ("yes", "Yes, please.", "ok", "y", "sure, go ahead", "yes do that")))
    assert all(map(refuses, ("no", "No, thanks.", "n", "nope", "don't")))
    assert not refuses("")


@pytest.mark.parametrize(
    "said", ["incorrect", "not correct", "not yes", "no yes", "yes and no", "nah", "n", "maybe"]
)
def test_anything_but_a_plain_yes_is_not_consent(said: str) -> None:
    assert not agrees(said)
