"""Sentences out of a stream of words, and words that can be said out of what was written."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jackfield_local.voice.engines import Speech
from jackfield_local.voice.output import BYTES_PER_MS, Spoken
from jackfield_local.voice.sentences import LONGEST, Sentences
from jackfield_local.voice.speakable import script

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


def _gathered(text: str, cuts: list[int]) -> list[str]:
    sentences = Sentences()
    made: list[str] = []
    place = 0
    for cut in [*sorted(min(each, len(text)) for each in cuts), len(text)]:
        made += sentences.add(text[place:cut])
        place = cut
    return made + sentences.flush()


@settings(deadline=None)
@given(TEXTS, st.lists(st.integers(0, 400), max_size=30))
def test_nothing_is_lost_however_a_text_is_cut(text: str, cuts: list[int]) -> None:
    whole = _gathered(text, [])
    assert "".join(whole) == text
    assert _gathered(text, cuts) == whole
    assert all(len(each) <= LONGEST or "```" in each for each in whole)
    assert all(whole)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three? Four", ["One. ", "Two! ", "Three? ", "Four"]),
        ("Dr. Miller, e.g. J. Keller. Yes.", ["Dr. Miller, e.g. J. Keller. ", "Yes."]),
        ("At 5 p.m. on Monday, i.e. soon. Yes.", ["At 5 p.m. on Monday, i.e. soon. ", "Yes."]),
        ("It costs 3.50 now. Good.", ["It costs 3.50 now. ", "Good."]),
        ("1. First\n2. Second\n", ["1. First\n", "2. Second\n"]),
        ('He said "No." Then he left.', ['He said "No." ', "Then he left."]),
        ("So:\n```\na. b\nc\n```\nDone.", ["So:\n", "```\na. b\nc\n```", "\nDone."]),
    ],
)
def test_sentences_end_where_they_end(text: str, sentences: list[str]) -> None:
    assert _gathered(text, []) == sentences


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("**Two** of *them* are _new_.", "Two of them are new."),
        ("See [the plan](https://docs.example.com/p?q=1).", "See the plan."),
        ("It is at https://www.example.com/a/b.", "It is at example dot com."),
        ("Ask anna.keller@example.com.", "Ask anna dot keller at example dot com."),
        ("Found by kb_search [kb-17] [2].", "Found by kb_search."),
        ("## Results\n", "Results."),
        ("- One point\n", "One point."),
        ("Event 123e4567-e89b-12d3-a456-42661417a0b1 is set.", "Event id ending in A 0 B 1 is set."),
        ("It is doc_8f3a2c91.", "It is id ending in 2 C 9 1."),
        ("At 2026-11-16T14:30:00Z.", "At 2026-11-16 at 14:30."),
        ("Use `this`, e.g. today 🎉.", "Use this, for example today ."),
        ("```py\nx = 1\n```", "a piece of code."),
        ("<b>Bold</b> | next", "Bold, next."),
        ("COVID-19, 3pm, B2B, mp3 and 5*3.", "COVID-19, 3pm, B2B, mp3 and 5*3."),
        ("Mail anna_k-b+x@my-site.com.", "Mail anna underscore k dash b plus x at my dash site dot com."),
        ("It is at docs.example.com/plan?x=1.", "It is at docs dot example dot com."),
        ("Open report_final.pdf at 5 p.m.", "Open report_final dot pdf at 5 p.m."),
        ("Found [kb:17, kb:18] here [source: plan.md].", "Found here."),
        ("Found 【4:0†source】 here.", "Found here."),
        ("It is so [1](https://a.example/c), says [Ann](https://b.example).", "It is so, says Ann."),
        ("It is [not sure] yet.", "It is [not sure] yet."),
        ("On 2026-11-17 10:00 or at 10:30:00.", "On 2026-11-17 at 10:00 or at 10:30."),
        ("2026-11-17T10:00+01:00\u20132026-11-17T11:30+01:00", "2026-11-17 at 10:00 to 2026-11-17 at 11:30."),
        ("From 10:00-11:30, 14:00\u201315:00.", "From 10:00 to 11:30, 14:00 to 15:00."),
        ("It costs 5 € or 1,299.50 EUR.", "It costs €5 or €1,299.50."),
        ("Between $5-$10, or USD 20.", "Between $5 to $10, or $20."),
        ("Call +49 30 1234567.", "Call +49 30 1 2 3 4 5 6 7."),
        ("Call 030-1234567, room 404.", "Call 0 3 0, 1 2 3 4 5 6 7, room 404."),
        ("Call 555-123-4567 by 2026-11-17.", "Call 5 5 5, 1 2 3, 4 5 6 7 by 2026-11-17."),
        ("It is 1,234,567.50 in 2026, or 0.75.", "It is 1,234,567.50 in 2026, or 0.75."),
        ("Version v1.2.3 is at 192.168.0.1.", "Version v1 dot 2 dot 3 is at 192 dot 168 dot 0 dot 1."),
        ("| Ann | 5 | Berlin |\n", "Ann, 5, Berlin."),
        ("- [ ] Call Ann\n", "Call Ann."),
        ("2) Second\n", "2) Second."),
        ("> **Note:** ~~old~~ new", "Note: old new."),
        ("🎉", ""),
        ("---\n", ""),
        ("|---|:--|\n", ""),
    ],
)
def test_what_is_written_can_be_said(written: str, said: str) -> None:
    assert " ".join(script(written).words) == said


@settings(deadline=None)
@given(TEXTS)
def test_each_word_completes_some_of_the_text(text: str) -> None:
    made = script(text)
    assert len(made.words) == len(made.reached)
    assert list(made.reached) == sorted(made.reached)
    assert not made.words or made.reached[-1] == len(text)
    assert all(re.fullmatch(r"\S+", word) for word in made.words)


@settings(deadline=None)
@given(
    st.lists(st.text("ab *[]1_.🎉", max_size=12), max_size=6), st.integers(-100, 5000), st.integers(0, 2000)
)
def test_what_was_heard_grows_with_what_was_played(sentences: list[str], ms: int, more: int) -> None:
    spoken = Spoken("turn-1")
    for sentence in sentences:
        made = script(sentence)
        ends = tuple(100 * BYTES_PER_MS * number for number in range(1, len(made.words) + 1))
        spoken.add(sentence, made, Speech(bytes(ends[-1] if ends else 0), ends))
    heard = spoken.heard(ms)
    assert "".join(sentences).strip().startswith(heard)
    assert spoken.heard(ms + more).startswith(heard)
    assert spoken.heard() == spoken.heard(10**6) == "".join(sentences).strip()
    assert spoken.size == 0 or spoken.heard(0) == ""
    if spoken.size:
        assert spoken.whole(spoken.size // BYTES_PER_MS)


def test_half_a_word_was_not_heard() -> None:
    spoken = Spoken("turn-1")
    made = script("The [old plan](https://example.com) is good.")
    spoken.add(
        "The [old plan](https://example.com) is good. ",
        made,
        Speech(bytes(48_000), tuple(range(9600, 48_001, 9600))),
    )
    assert [spoken.heard(ms) for ms in (199, 200, 599, 600, 800, 999, 1000)] == [
        *("", "The", "The", "The [old plan](https://example.com)"),
        "The [old plan](https://example.com) is",
        "The [old plan](https://example.com) is",
        "The [old plan](https://example.com) is good.",
    ]
    spoken.withdraw(24_000)
    assert spoken.heard() == "The"
