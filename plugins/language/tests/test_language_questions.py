"""Pronouns, consent and refusal."""

from __future__ import annotations

import pytest
from jackfield_language.questions import agrees, command, corrected, refers_back, refuses, removes, rules_out


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


@pytest.mark.parametrize(
    ("said", "only"),
    [
        ("I don't want to rent a car on Sunday", True),
        ("please do not send it", True),
        ("we no longer need the hall", True),
        ("don't rent it, buy it", False),
        ("don't forget to rent a car", False),
        ("I don't know who rents cars", False),
        ("don't you rent cars?", False),
    ],
)
def test_a_text_can_say_only_what_is_not_to_be_done(said: str, only: bool) -> None:
    assert rules_out(said) is only


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ("no, make it half past four", "half past four"),
        ("sorry, I meant the blue one", "the blue one"),
        ("actually move it to Saturday", "Saturday"),
        ("rent a car", ""),
        ("no", ""),
    ],
)
def test_a_correction_says_what_takes_the_place_of_something(said: str, instead: str) -> None:
    assert corrected(said) == instead


def test_a_request_to_remove_something_begins_with_such_a_verb() -> None:
    assert command("Could you please reserve a bench") == "reserv"
    assert command("a bench, please") == ""
    assert removes("I want to cancel the bench")
    assert not removes("reserve a bench, or cancel it later")
