"""Splitting text into sentences."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jackfield_language.text import split_sentences

PIECES = (
    *(
        "Hello",
        "Dr.",
        "e.g.",
        "J.",
        "I.",
        "12.",
        "3.5",
        "Yes!",
        "Really?",
        "...",
        "…",
        '"So."',
        "(No.)",
        "\n",
        "\n\n",
    ),
    *(
        "  ",
        " ",
        "```",
        "```py\nx = 1. \n```",
        "- ",
        "# ",
        "**bold**",
        "[1]",
        "https://example.com/a.b",
        "—",
        ", ",
    ),
    *("word " * 60, "x" * 300, "灯台", "🎉"),
)
TEXTS = st.lists(st.sampled_from(PIECES), max_size=20).map("".join) | st.text(max_size=300)


@settings(deadline=None)
@given(TEXTS)
def test_splitting_into_sentences_loses_nothing(text: str) -> None:
    *complete, last = split_sentences(text)
    assert "".join((*complete, last)) == text
    assert all(each.strip() for each in complete)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three? Four", ["One. ", "Two! ", "Three? ", "Four"]),
        ("Dr. Miller, e.g. J. Keller. Yes.", ["Dr. Miller, e.g. J. Keller. ", "Yes."]),
        ("At 5 p.m. on Monday, i.e. soon. Yes.", ["At 5 p.m. on Monday, i.e. soon. ", "Yes."]),
        ("It costs 3.50 now. Good.", ["It costs 3.50 now. ", "Good."]),
        ("1. First\n2. Second\n", ["1. First\n", "2. Second\n"]),
        ('He said "No." Then he left.', ['He said "No." ', "Then he left."]),
        ("**State.** 140 of 212 are done. Good.", ["**State.** 140 of 212 are done. ", "Good."]),
        ("**State.**\nDone.", ["**State.**\n", "Done."]),
        ("So:\n```\na. b\nc\n```\nDone.", ["So:\n", "```\na. b\nc\n```", "\nDone."]),
    ],
)
def test_sentences_are_split_at_their_ends(text: str, sentences: list[str]) -> None:
    assert [each for each in split_sentences(text) if each] == sentences
