"""Requests that were written before the planner was tuned, and that nothing in it was tuned to."""

from __future__ import annotations

from local_requests import Request, at, clock, day, ids, one_of, same, words

_FOUND = {
    "results": [
        {
            "id": "doc:print-orders",
            "type": "doc",
            "title": "Print orders",
            "snippet": "Orders above 500 euros need a second signature.",
            "score": 0.83,
            "last_updated": "2026-03-01T09:00:00Z",
            "url": "https://kb.example/print-orders",
        },
        {
            "id": "process:proofs",
            "type": "process",
            "title": "Checking proofs",
            "snippet": "Proofs are checked by two people.",
            "score": 0.64,
            "last_updated": "2026-08-12T09:00:00Z",
            "url": None,
        },
        {
            "id": "doc:paper",
            "type": "doc",
            "title": "Paper stock",
            "snippet": "We keep five kinds of paper.",
            "score": 0.41,
            "last_updated": "2025-06-20T09:00:00Z",
            "url": None,
        },
    ]
}
_FREE = {
    "date_range": {"start": "2026-11-17T00:00:00+01:00", "end": "2026-11-18T00:00:00+01:00"},
    "existing_events": [],
    "available_slots": [
        {"start": "2026-11-17T09:00:00+01:00", "end": "2026-11-17T10:00:00+01:00", "duration_minutes": 60},
        {"start": "2026-11-17T13:00:00+01:00", "end": "2026-11-17T15:00:00+01:00", "duration_minutes": 120},
    ],
    "summary": "0 busy periods, 2 available slots (180 minutes in all)",
    "zone": "Europe/Berlin",
    "complete": True,
}

REQUESTS = [
    # Knowledge
    Request("how do I file an expense claim?", "kb_search", {"query": words("expense")}),
    Request("whats our policy on working from home", "kb_search", {"query": words("working from home")}),
    Request(
        "Can you look up who is responsible for the museum client?",
        "kb_search",
        {"query": words("museum", without=("look", "can", "you"))},
    ),
    Request(
        "search my personal notes for the dentist's phone number",
        "kb_search",
        {"query": words("dentist"), "namespace": "personal"},
    ),
    Request(
        "show me 3 documents about colour management",
        "kb_search",
        {"query": words("colour management"), "top_k": 3, "filters.type": "doc"},
    ),
    Request(
        "Do we have any info on the camera we bought last year?", "kb_search", {"query": words("camera")}
    ),
    Request(
        "which projects involve the city council?",
        "kb_search",
        {"query": words("city council"), "filters.type": "project"},
    ),
    Request(
        "when do the doors open on saturdays",
        "kb_search",
        {"query": words("doors", "saturday")},
        mode="voice",
    ),
    Request("pull up doc:brand-book for me", "kb_get", {"ids": ["doc:brand-book"]}),
    Request(
        "I need to see both project:atlas and project:orchid",
        "kb_get",
        {"ids": same("project:atlas", "project:orchid")},
    ),
    Request(
        "open the second one",
        "kb_get",
        {"ids": ["process:proofs"]},
        before=(("what are the rules for printing?", _FOUND),),
    ),
    Request(
        "can I read the whole thing about paper stock?",
        "kb_get",
        {"ids": ["doc:paper"]},
        before=(("what are the rules for printing?", _FOUND),),
    ),
    # Calendar
    Request(
        "do I have time on thursday morning?",
        "calendar_get_availability",
        {"start_date": day("2026-11-19"), "end_date": day("2026-11-19")},
    ),
    Request(
        "find me a 45 minute gap tomorrow between 1 and 5 pm",
        "calendar_get_availability",
        {
            "start_date": at("2026-11-17T13:00"),
            "end_date": at("2026-11-17T17:00"),
            "min_duration_minutes": 45,
        },
    ),
    Request(
        "what does the team's schedule look like next week",
        "calendar_get_availability",
        {
            "start_date": day("2026-11-23"),
            "end_date": one_of(day("2026-11-27"), day("2026-11-29"), day("2026-11-30")),
            "calendars": ["team"],
        },
    ),
    Request(
        "am i busy on the 3rd of december?",
        "calendar_get_availability",
        {"start_date": day("2026-12-03"), "end_date": one_of(day("2026-12-03"), day("2026-12-04T00:00"))},
    ),
    Request(
        "when could I squeeze in a call?", asks=r"when|which (day|days|time|date|dates|range)|what (day|time)"
    ),
    Request(
        "and the day after?",
        "calendar_get_availability",
        {"start_date": day("2026-11-18"), "end_date": one_of(day("2026-11-18"), day("2026-11-19T00:00"))},
        before=(("am I free tomorrow?", _FREE),),
    ),
    Request(
        'schedule "Budget review" for Friday at 2 pm, one hour',
        "calendar_create_event",
        {"title": "Budget review", "start_time": at("2026-11-20T14:00"), "end_time": at("2026-11-20T15:00")},
    ),
    Request(
        "add lunch with Priya to my calendar on Wednesday from 12:30 to 13:30",
        "calendar_create_event",
        {"title": words("lunch"), "start_time": at("2026-11-18T12:30"), "end_time": at("2026-11-18T13:30")},
    ),
    Request(
        "set up a meeting called Kickoff tomorrow 10am for 90 minutes and invite sam@example.com",
        "calendar_create_event",
        {
            "title": "Kickoff",
            "start_time": at("2026-11-17T10:00"),
            "end_time": at("2026-11-17T11:30"),
            "attendees": ["sam@example.com"],
        },
    ),
    Request(
        "block off friday afternoon for deep work in my personal calendar",
        "calendar_create_event",
        {"title": words("deep work"), "start_time": day("2026-11-20"), "calendar": "personal"},
    ),
    Request("create an event called Retro", asks=r"when|start|what time|which day"),
    Request(
        "book the first one and call it Portfolio talk",
        "calendar_create_event",
        {
            "title": "Portfolio talk",
            "start_time": at("2026-11-17T09:00"),
            "end_time": at("2026-11-17T10:00"),
        },
        before=(("when am I free tomorrow?", _FREE),),
    ),
    # Pictures
    Request(
        "can you paint a fox in the snow?",
        "image_generate",
        {"prompt": words("fox", "snow", without=("can", "you"))},
    ),
    Request(
        "generate 2 images of a red bicycle leaning on a brick wall, landscape",
        "image_generate",
        {"prompt": words("red bicycle", "brick wall"), "count": 2, "shape": "landscape"},
    ),
    Request(
        "I want a high quality picture of our harbour at dawn, no boats",
        "image_generate",
        {"prompt": words("harbour at dawn"), "quality": "high", "avoid": words("boats")},
    ),
    Request("make me a picture", asks=r"what|picture|show|prompt"),
    Request(
        "suggest a few prompts for a picture of a winter market",
        "image_draft_prompt",
        {"brief": words("winter market")},
    ),
    Request(
        "help me come up with ideas for a cheerful banner about cycling to work",
        "image_draft_prompt",
        {"brief": words("cycling to work"), "purpose": "banner", "mood": "cheerful"},
    ),
    Request(
        "give me 2 prompt variants for a watercolour of an owl",
        "image_draft_prompt",
        {"brief": words("owl"), "variants": 2, "style": "watercolour"},
    ),
    # Texts
    Request(
        "which email addresses are in here: write to nora@example.org or to desk@example.net",
        "extract_contacts",
        {"text": words("nora@example.org", "desk@example.net"), "kinds": ["emails"]},
    ),
    Request(
        "Please extract the contact info from this: Tom Sample, Sales, +49 30 901820, tom@example.org",
        "extract_contacts",
        {"text": words("Tom Sample", "+49 30 901820")},
    ),
    Request("get the phone numbers out of this email", asks=r"text|paste|email|which|what"),
    Request(
        "find the numbers in this British text: call 020 7946 0958 after six",
        "extract_contacts",
        {"text": words("020 7946 0958"), "region": "GB"},
    ),
    # Times
    Request("what's the time in Sydney?", "format_datetime", {"timezone": "Australia/Sydney"}),
    Request(
        "What is 4pm Paris time in Chicago?",
        "format_datetime",
        {
            "datetime": clock("2026-11-16T16:00"),
            "from_timezone": "Europe/Paris",
            "timezone": "America/Chicago",
        },
    ),
    Request(
        "how many days until christmas?",
        "format_datetime",
        {"datetime": day("2026-12-25"), "style": "relative"},
    ),
    Request("what weekday is 2027-03-14", "format_datetime", {"datetime": day("2027-03-14")}),
    Request(
        "and in Toronto?",
        "format_datetime",
        {"timezone": "America/Toronto"},
        before=(("what time is it in Madrid?", {"text": "10:00", "iso": "2026-11-16T10:00:00+01:00"}),),
    ),
    Request(
        "how late is it in new york right now",
        "format_datetime",
        {"timezone": "America/New_York"},
        mode="voice",
    ),
    # Order
    Request(
        "sort those by date please, newest at the top",
        "rank_results",
        {"items": ids("doc:print-orders", "process:proofs", "doc:paper")},
        before=(("what are the rules for printing?", _FOUND),),
    ),
    Request(
        "which of these is most relevant for checking proofs?",
        "rank_results",
        {
            "items": ids("doc:print-orders", "process:proofs", "doc:paper"),
            "query": words("checking proofs"),
        },
        before=(("what are the rules for printing?", _FOUND),),
    ),
    Request("rank the results", asks=r"result|search|which|what|items|nothing"),
    # People
    Request("do you have the linkedin of Mara Linde?", "linkedin_lookup", {"name": "Mara Linde"}),
    Request(
        "linkedin profile for Oskar Brandt at Tidewater Coffee",
        "linkedin_lookup",
        {"name": "Oskar Brandt", "company": "Tidewater Coffee"},
    ),
    Request("find somebody on linkedin for me", asks=r"who|name|whom"),
    # Voice
    Request("I'd like to talk instead of typing", "start_voice_session", {}),
    Request(
        "switch to voice and explain our holiday policy",
        "start_voice_session",
        {"pending_request": words("holiday policy", without=("voice", "switch"))},
    ),
    Request("ok goodbye, talk to you later", "end_voice_session", {"reason": "user_request"}, mode="voice"),
    Request(
        "that's everything, thank you, you can hang up",
        "end_voice_session",
        {"reason": words("")},
        mode="voice",
    ),
]

SMALL_TALK = [
    "good morning!",
    "thanks a lot, that helped",
    "how's it going?",
    "you're great",
    "what are you able to do?",
    "are you a human?",
    "haha nice",
    "ok cool",
    "what's your name?",
    "hey there",
    "never mind",
    "sorry, my mistake",
]
