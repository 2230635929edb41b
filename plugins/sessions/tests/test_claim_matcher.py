"""Which sentences are claims: the grammar, its limits, and what holds for any text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jackfield.contract.claim_phrases import ClaimPhrase, parse_phrase
from jackfield_sessions.claim_matcher import (
    MAX_CLAIMS,
    MAX_SENTENCE,
    ClaimMatcher,
    summary_phrase,
)

MATCHER = ClaimMatcher(
    {
        "calendar": list(map(parse_phrase, ["booked", "added to your calendar", "put on your calendar"])),
        "mail": list(map(parse_phrase, ["sent mail", "cancelled"])),
    }
)


def tools(text: str) -> list[tuple[str, ...]]:
    return [claim.tools for claim in MATCHER.find(text)]


@pytest.mark.parametrize(
    "text",
    [
        "I booked it.",
        "I've just booked the room for 3 pm.",
        "We have already booked it.",
        "I have, as you asked, found a room and booked it.",
        "I found a free slot, and booked it for you.",
        "Your meeting has been booked.",
        "It's been successfully booked!",
        "It's booked.",
        "You're now booked for Tuesday.",
        "Booked!",
        "Successfully booked for 3 pm.",
        "I've got you booked.",
        "I can confirm that your table has been booked.",
        "Please note that your table has been booked.",
        "I booked it, anything else?",
        "As I said, I booked it.",
        "I've **booked** it — have fun.",
        "I\N{RIGHT SINGLE QUOTATION MARK}ve booked it.",
        "I have added the team sync to your calendars.",
        "The team sync has been created and added to Ana's calendar.",
        "I put it on your calendar.",
        "I checked the calendar. I booked the room.",
        "The table has been booked for you by me.",
    ],
)
def test_a_statement_that_it_was_done_is_a_claim(text: str) -> None:
    assert tools(text)[:1] == [("calendar",)]


@pytest.mark.parametrize(
    "text",
    [
        "I have not booked it.",
        "I haven't booked it yet.",
        "I've never booked it.",
        "Nothing has been booked.",
        "I booked nothing.",
        "No room was booked.",
        "Have I booked it?",
        "Has it been booked?",
        "Do you want the room I booked?",
        "Shall I book it?",
        "I'll book it.",
        "I will have booked it by noon.",
        "It will be booked.",
        "It can be booked.",
        "It is being booked.",
        "I would have booked it.",
        "I'm booking it.",
        "Once I've booked it, you get a mail.",
        "If it's booked, you get a mail.",
        "Let me know when it is booked.",
        "I can tell you whether it has been booked.",
        "You booked it yesterday.",
        "Ana has booked it.",
        "The room was booked by Ana.",
        "The room is already booked.",
        "You said I booked it.",
        "It looks like it was booked.",
        "Please check that it has been booked.",
        "You wrote “I booked it”.",
        'The log says "I booked it".',
        "Your note 'I booked it' is here.",
        "> I booked it.",
        "Run `I booked it`.",
        "```\nI booked it.\n```",
        "The booked room is nice.",
        "Booked rooms are red.",
        "Booked: 3 rooms",
        "I need to have it booked.",
        "I added it to your list.",
        "I sent a letter.",
        "Ich habe es gebucht.",
        "J'ai réservé la table.",
        "",
    ],
)
def test_what_was_not_done_or_is_somebody_elses_is_no_claim(text: str) -> None:
    assert tools(text) == []


def test_spellings_and_word_forms_of_a_regular_verb_are_the_same() -> None:
    assert tools("I canceled the mail.") == tools("I cancelled the mail.") == [("mail",)]
    assert tools("I sent the mails.") == [("mail",)]


def test_a_claim_says_what_it_is_about() -> None:
    (claim,) = MATCHER.find("Hello. Your room has now been booked for\n2 days.")
    assert (claim.phrase, claim.passive, claim.perfect, claim.recent) == ("booked", True, True, True)
    assert claim.sentence == "Your room has now been booked for"
    (claim,) = MATCHER.find("The room is booked.")
    assert (claim.passive, claim.perfect) == (True, False)


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        ("Creates a calendar event in the user's calendar. Then more.", "I created the event."),
        ("Cancel the whole reservation.", "Your reservation has been cancelled."),
        ("Bans a user who insults.", "I banned the user."),
    ],
)
def test_a_summary_gives_the_verb_and_its_object(summary: str, expected: str) -> None:
    phrase = summary_phrase(summary)
    assert phrase is not None
    assert len(ClaimMatcher({"tool": [phrase]}).find(expected)) == 1
    assert ClaimMatcher({"tool": [phrase]}).find("I created, cancelled and banned it.") == []


@pytest.mark.parametrize("summary", ["", "The calendar of the user.", "Searches.", "Waits for the user."])
def test_a_summary_without_a_verb_and_an_object_gives_no_phrase(summary: str) -> None:
    assert summary_phrase(summary) is None


CLAIMS = st.builds(
    "{} {} {}".format,
    st.sampled_from(["I", "We", "I have", "We've just", "Your table has been", "It's now been"]),
    st.sampled_from(["booked", "cancelled"]),
    st.sampled_from(["it", "a table", "for two on Monday", "at 3 pm with Ana"]),
)
"""Claims of one clause, without their end."""


@given(CLAIMS)
def test_case_emphasis_and_position_make_no_difference(claim: str) -> None:
    expected = tools(f"{claim}.")
    assert expected
    assert tools(f"{claim.upper()}!") == expected
    assert tools(f"**{claim}**.") == expected
    assert tools(f"- {claim}\n") == expected
    assert tools(f"Good morning. {claim}. Good bye!") == expected


@given(CLAIMS, st.sampled_from(["if", "once", "when", "unless", "whether", "after", "before", "until"]))
def test_no_claim_remains_one_in_a_question_a_condition_or_a_quotation(claim: str, word: str) -> None:
    assert tools(f"{claim}?") == []
    assert tools(f"You get a mail {word} {claim}.") == []
    assert tools(f"You asked me: “{claim}.”") == []
    assert tools(f"You wrote `{claim}.`") == []
    assert tools(f"> {claim}.") == []
    assert tools(f"You said {claim}.") == []


@given(st.lists(CLAIMS, max_size=20))
def test_each_phrase_is_found_once_and_claims_are_bounded(claims: list[str]) -> None:
    found = MATCHER.find(". ".join(claims))
    assert len(found) == len({claim.phrase for claim in found}) <= MAX_CLAIMS
    verbs = {"booked": "calendar", "cancelled": "mail"}
    expected = {tool for verb, tool in verbs.items() if any(verb in claim for claim in claims)}
    assert {claim.tools[0] for claim in found} == expected


@given(st.text() | st.text(alphabet="I'have ben booked.?,\n>`\"*-:"))
def test_any_text_is_read_without_a_fault(text: str) -> None:
    for claim in MATCHER.find(text):
        assert claim.tools
        assert len(claim.sentence) <= MAX_SENTENCE
        assert "booked" in text.lower() or "cancel" in text.lower() or "sent" in text.lower()


@pytest.mark.parametrize(
    "phrase", ["I booked", "has been booked", "booking", "the meeting", "booked a b c d e f", "is booked"]
)
def test_a_phrase_that_does_not_begin_with_a_past_form_is_rejected(phrase: str) -> None:
    with pytest.raises(ValueError, match=r"begins with|words"):
        parse_phrase(phrase)


def test_a_phrase_is_read_without_its_articles_and_pronouns() -> None:
    assert parse_phrase("Added to your calendar") == ClaimPhrase(
        "Added to your calendar", "added", ("to", "calendar"), regular=True
    )
