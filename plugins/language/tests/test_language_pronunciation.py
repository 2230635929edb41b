"""Sentences of a text, and how written text is pronounced."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jackfield_language.pronunciation import pronounceable

PRONOUNCED = [
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
]
TEXTS = st.lists(st.sampled_from([written for written, _ in PRONOUNCED])).map(" ".join) | st.text(
    max_size=300
)


@pytest.mark.parametrize(("written", "said"), PRONOUNCED)
def test_written_text_becomes_pronounceable(written: str, said: str) -> None:
    assert pronounceable(written) == said


@settings(deadline=None)
@given(TEXTS)
def test_pronounceable_text_has_something_to_say(text: str) -> None:
    said = pronounceable(text)
    assert said == " ".join(said.split())
    assert not said or any(each.isalnum() for each in said)
