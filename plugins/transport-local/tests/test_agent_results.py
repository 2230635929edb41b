"""Answers from result data: the sentence that answers, lists as lists, and nothing only machines need."""

from __future__ import annotations

from typing import Any

import pytest
from jackfield_local.agent.agent import embed_phrases
from jackfield_local.agent.results import ResponseStyle, describe_failure, describe_result
from local_requests import ZONE

READ = ResponseStyle(spoken=False, zone=ZONE, embed=embed_phrases)
HEARD = ResponseStyle(spoken=True, zone=ZONE, embed=embed_phrases)
RECORDS = [
    {
        "id": "doc:prices",
        "title": "Shop prices",
        "score": 0.8,
        "snippet": "The shop sells prints and frames. A poster in A2 costs 35 euros. "
        "Ask Mia Okoro for discounts. The shop opens at 10:00 on weekdays.",
    },
    {"id": "doc:paper", "title": "Paper", "score": 0.4, "snippet": "We print on matte paper of 200 grams."},
]


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("how much is a poster?", "A poster in A2 costs 35 euros."),
        ("who gives discounts?", "Ask Mia Okoro for discounts."),
        ("when does the shop open?", "The shop opens at 10:00 on weekdays."),
        ("what paper do we print on?", "We print on matte paper of 200 grams."),
    ],
)
def test_the_answering_sentence_comes_first_with_its_source(question: str, sentence: str) -> None:
    said = describe_result({"results": RECORDS}, question, READ)
    assert sentence in said.partition("\n\nSource: ")[0]
    source = "Paper [doc:paper]" if "paper" in question else "Shop prices [doc:prices]"
    assert f"Source: {source}" in said
    heard = describe_result({"results": RECORDS}, question, HEARD)
    assert heard == f"{sentence} That is from {source.partition(' [')[0]}."


@pytest.mark.parametrize("style", [READ, HEARD])
def test_an_answer_without_the_words_of_the_question_says_that_it_is_uncertain(style: ResponseStyle) -> None:
    unsure = "I found nothing that clearly answers this. The closest is: "
    assert describe_result({"results": RECORDS}, "who repairs bicycles?", style).startswith(unsure)
    assert not describe_result({"results": RECORDS}, "how much is a poster?", style).startswith(unsure)


def test_texts_that_were_not_searched_for_are_all_shown() -> None:
    texts = [
        {"title": "short", "text": "A slow morning on the quiet river."},
        {"title": "long", "text": "A slow and golden morning on the wide and quiet river."},
    ]
    said = describe_result({"variants": texts}, "write two captions for the river", READ)
    assert said == f"1. short: {texts[0]['text']}\n2. long: {texts[1]['text']}"


def test_a_list_result_becomes_a_numbered_list() -> None:
    slots = [
        {"start": "2026-11-17T09:00:00+01:00", "end": f"2026-11-17T{n}:00:00+01:00"} for n in range(10, 23)
    ]
    said = describe_result({"available_slots": slots}, "when am I free?", READ)
    assert said.startswith("Available slots:\n1. Tue 17 Nov, 09:00 to 10:00\n2. Tue 17 Nov, 09:00 to 11:00\n")
    assert said.endswith("(3 more)")


def test_plain_values_are_described_without_machine_fields() -> None:
    data: dict[str, Any] = {
        "status": "created",
        "uid": "0f8b4c6d",
        "title": "Dentist",
        "invited": [],
        "meeting_url": None,
    }
    assert describe_result(data, "", READ) == "Created: Dentist."
    assert describe_result(data, "", HEARD) == "The status is created and the title is Dentist."
    data |= {"start": "2026-11-17T09:00:00+01:00", "end": "2026-11-17T10:00:00+01:00", "room": "B2"}
    assert describe_result(data, "", READ) == "Created: Dentist, Tue 17 Nov, 09:00 to 10:00 - room: B2."
    assert (
        describe_result({"each": 21.5, "currency": "EUR"}, "", READ)
        == "The each is 21.5 and the currency is EUR."
    )


def test_what_the_call_already_said_is_not_repeated() -> None:
    data = {"city": "Oslo", "sky": "clear", "saved": True}
    assert describe_result(data, "", READ, {"city": "Oslo"}) == "The sky is clear and saved."
    assert describe_result({"city": "Oslo"}, "", READ, {"city": "Oslo"}) == "The city is Oslo."


def test_a_text_that_the_tool_words_is_the_answer() -> None:
    data = {"text": "3:15 AM", "weekday": "Tuesday", "timezone_name": "Japan Standard Time"}
    assert describe_result(data, "what time is it in Tokyo?", READ) == "3:15 AM"


def test_a_member_of_a_record_answers() -> None:
    record = {
        "id": "doc:camera",
        "title": "Camera",
        "snippet": "Two bodies with three batteries each. Reserve them in the list.",
        "metadata": {"looked after by": "Juno Berg", "place": "shelf A1"},
    }
    for question, answer in (("who looks after the camera?", "Juno Berg"), ("where is it kept?", "shelf A1")):
        assert answer in describe_result({"results": [record]}, question, READ).partition("\n\nSource")[0]


def test_an_empty_result_is_reported_as_nothing_found() -> None:
    assert describe_result({"results": []}, "who?", READ) == "Nothing was found: no results."
    assert describe_result([], "who?", READ) == "Nothing was found."
    assert describe_result(None, "", READ) == "Done."


def test_an_error_says_what_happened_and_what_to_do() -> None:
    error = {"message": "The calendar refused", "suggestion": "Sign in again.", "partialSideEffects": True}
    assert describe_failure(error, READ) == (
        "The calendar refused. It is not known whether it took effect. Sign in again."
    )


def test_an_error_has_its_times_in_words() -> None:
    error = {"message": "The calendar is busy until 2026-11-20T11:00:00+00:00."}
    assert describe_failure(error, READ) == "The calendar is busy until Fri 20 Nov 2026, 12:00."
