"""Requests to tune the planner on."""

from __future__ import annotations

from local_requests import Request, at, clock, day, ids, one_of, same, words

_FOUND = {
    "results": [
        {
            "id": "doc:holiday-policy",
            "type": "doc",
            "title": "Holiday policy",
            "snippet": "Everybody has 30 days of holiday a year.",
            "score": 0.9,
            "last_updated": "2026-02-01T09:00:00Z",
            "url": "https://kb.example/holiday",
        },
        {
            "id": "process:sick-leave",
            "type": "process",
            "title": "Sick leave",
            "snippet": "Call in before nine.",
            "score": 0.5,
            "last_updated": "2026-07-12T09:00:00Z",
            "url": None,
        },
    ]
}
_FREE = {
    "date_range": {"start": "2026-11-18T00:00:00+01:00", "end": "2026-11-19T00:00:00+01:00"},
    "existing_events": [],
    "available_slots": [
        {"start": "2026-11-18T08:00:00+01:00", "end": "2026-11-18T09:30:00+01:00", "duration_minutes": 90},
        {"start": "2026-11-18T11:00:00+01:00", "end": "2026-11-18T12:00:00+01:00", "duration_minutes": 60},
        {"start": "2026-11-18T16:00:00+01:00", "end": "2026-11-18T18:00:00+01:00", "duration_minutes": 120},
    ],
    "summary": "0 busy periods, 3 available slots (270 minutes in all)",
    "zone": "Europe/Berlin",
    "complete": True,
}
_DRAFTS = {
    "variants": [
        {"title": "wide view", "prompt": "A lake at dawn, wide.", "avoid": "lettering", "shape": "landscape"},
        {"title": "close view", "prompt": "Reeds in a lake, close.", "avoid": "lettering", "shape": "square"},
    ]
}

REQUESTS = [
    Request("how many holidays do I get per year?", "kb_search", {"query": words("holiday")}),
    Request("tell me about the lantern festival project", "kb_search", {"query": words("lantern festival")}),
    Request(
        "could you find out what the style guide says about fonts?",
        "kb_search",
        {"query": words("style guide", "fonts", without=("could", "you", "find"))},
    ),
    Request(
        "look in my own notes for gift ideas",
        "kb_search",
        {"query": words("gift ideas"), "namespace": "personal"},
    ),
    Request(
        "give me five links on accessibility",
        "kb_search",
        {"query": words("accessibility"), "top_k": 5, "filters.type": "link"},
    ),
    Request("who do I ask about the photo room?", "kb_search", {"query": words("photo room")}),
    Request(
        "list people who know Blender", "kb_search", {"query": words("Blender"), "filters.type": "person"}
    ),
    Request(
        "what is the alarm code of the storage?", "kb_search", {"query": words("alarm code")}, mode="voice"
    ),
    Request("Is there anything about parking?", "kb_search", {"query": words("parking")}),
    Request("show me doc:onboarding", "kb_get", {"ids": ["doc:onboarding"]}),
    Request("fetch the record person:lena-k please", "kb_get", {"ids": ["person:lena-k"]}),
    Request(
        "show me the full text of the first one",
        "kb_get",
        {"ids": ["doc:holiday-policy"]},
        before=(("how much holiday do we get?", _FOUND),),
    ),
    Request(
        "open the one about sick leave",
        "kb_get",
        {"ids": ["process:sick-leave"]},
        before=(("how much holiday do we get?", _FOUND),),
    ),
    Request(
        "tell me more about the second result",
        "kb_get",
        {"ids": ["process:sick-leave"]},
        before=(("how much holiday do we get?", _FOUND),),
    ),
    Request(
        "when am I free on Wednesday?",
        "calendar_get_availability",
        {"start_date": day("2026-11-18"), "end_date": one_of(day("2026-11-18"), day("2026-11-19T00:00"))},
    ),
    Request(
        "is there a free slot of two hours on friday afternoon",
        "calendar_get_availability",
        {
            "start_date": at("2026-11-20T12:00"),
            "end_date": one_of(at("2026-11-20T17:00"), at("2026-11-20T18:00")),
            "min_duration_minutes": 120,
        },
    ),
    Request(
        "check my availability from 9 to 11 tomorrow",
        "calendar_get_availability",
        {"start_date": at("2026-11-17T09:00"), "end_date": at("2026-11-17T11:00")},
    ),
    Request(
        "what's on my calendar today, with titles?",
        "calendar_get_availability",
        {"start_date": day("2026-11-16"), "include_details": True},
    ),
    Request(
        "does the team have a free half hour this week?",
        "calendar_get_availability",
        {"calendars": ["team"], "min_duration_minutes": 30, "start_date": day("2026-11-16")},
    ),
    Request("check my calendar", asks=r"when|which day|what day|time"),
    Request(
        "tomorrow instead",
        "calendar_get_availability",
        {"start_date": day("2026-11-17"), "end_date": one_of(day("2026-11-17"), day("2026-11-18T00:00"))},
        before=(("am I free on wednesday?", _FREE),),
    ),
    Request(
        "Book a dentist appointment on 24 November at 9:30 for 45 minutes",
        "calendar_create_event",
        {
            "title": words("dentist"),
            "start_time": at("2026-11-24T09:30"),
            "end_time": at("2026-11-24T10:15"),
        },
    ),
    Request(
        "put team breakfast in the team calendar for thursday 8 to 9 am",
        "calendar_create_event",
        {
            "title": words("team breakfast"),
            "calendar": "team",
            "start_time": at("2026-11-19T08:00"),
            "end_time": at("2026-11-19T09:00"),
        },
    ),
    Request(
        "schedule a 30 minute call with kim@example.org tomorrow at noon titled Contract",
        "calendar_create_event",
        {
            "title": "Contract",
            "start_time": at("2026-11-17T12:00"),
            "end_time": at("2026-11-17T12:30"),
            "attendees": ["kim@example.org"],
        },
    ),
    Request("schedule a meeting with kim@example.org", asks=r"when|start|time|which day"),
    Request(
        "take the second slot and name it Interview",
        "calendar_create_event",
        {"title": "Interview", "start_time": at("2026-11-18T11:00"), "end_time": at("2026-11-18T12:00")},
        before=(("am I free on wednesday?", _FREE),),
    ),
    Request(
        "draw a sleepy cat on a windowsill", "image_generate", {"prompt": words("sleepy cat", "windowsill")}
    ),
    Request(
        "create three square pictures of a mountain hut in autumn",
        "image_generate",
        {"prompt": words("mountain hut in autumn"), "count": 3, "shape": "square"},
    ),
    Request(
        "please make a draft image of a robot gardener without text",
        "image_generate",
        {"prompt": words("robot gardener"), "quality": "draft", "avoid": words("text")},
    ),
    Request(
        "make the second one",
        "image_generate",
        {"prompt": "Reeds in a lake, close.", "shape": "square"},
        before=(("give me ideas for a picture of a lake", _DRAFTS),),
    ),
    Request(
        "what could a picture for a jazz evening look like? give me some ideas",
        "image_draft_prompt",
        {"brief": words("jazz evening")},
    ),
    Request(
        "write me one prompt for a mysterious poster of a forest",
        "image_draft_prompt",
        {"brief": words("forest"), "purpose": "poster", "mood": "mysterious", "variants": 1},
    ),
    Request(
        "draft prompts for a product photo of a leather bag",
        "image_draft_prompt",
        {"brief": words("leather bag"), "purpose": "product", "style": "photo"},
    ),
    Request(
        "what phone numbers are in this text: ring +44 20 7946 0958 or +49 30 901820",
        "extract_contacts",
        {"text": words("+44 20 7946 0958", "+49 30 901820"), "kinds": ["phones"]},
    ),
    Request(
        "extract all contacts:\nEva Muster\neva@example.org\n+49 30 901820",
        "extract_contacts",
        {"text": words("Eva Muster", "eva@example.org")},
    ),
    Request("extract the contacts from this signature", asks=r"text|paste|which|what"),
    Request(
        "find links and mails in: see https://example.org/a or mail b@example.net",
        "extract_contacts",
        {"text": words("https://example.org/a", "b@example.net"), "kinds": same("urls", "emails")},
    ),
    Request("what time is it in Lisbon", "format_datetime", {"timezone": "Europe/Lisbon"}),
    Request(
        "convert 9:30 am in New York to Berlin time",
        "format_datetime",
        {
            "datetime": clock("2026-11-16T09:30"),
            "from_timezone": "America/New_York",
            "timezone": "Europe/Berlin",
        },
    ),
    Request(
        "how long is it until 1 January 2027?",
        "format_datetime",
        {"datetime": day("2027-01-01"), "style": "relative"},
    ),
    Request("what day is it today?", "format_datetime", {"datetime": one_of("now", day("2026-11-16"))}),
    Request("which day of the week was 1989-11-09?", "format_datetime", {"datetime": day("1989-11-09")}),
    Request(
        "write 2026-12-24 in French",
        "format_datetime",
        {"datetime": day("2026-12-24"), "locale": words("fr")},
    ),
    Request(
        "and in Tokyo?",
        "format_datetime",
        {"timezone": "Asia/Tokyo"},
        before=(("what time is it in Lisbon?", {"text": "09:00", "iso": "2026-11-16T09:00:00+00:00"}),),
    ),
    Request(
        "order them by date, newest first",
        "rank_results",
        {"items": ids("doc:holiday-policy", "process:sick-leave"), "weights.recency": 1},
        before=(("how much holiday do we get?", _FOUND),),
    ),
    Request(
        "which of those fits sick children best?",
        "rank_results",
        {"items": ids("doc:holiday-policy", "process:sick-leave"), "query": words("sick children")},
        before=(("how much holiday do we get?", _FOUND),),
    ),
    Request("what's Ines Korhonen's linkedin?", "linkedin_lookup", {"name": "Ines Korhonen"}),
    Request(
        "is there a LinkedIn page for Paul Reyes from Night Bus?",
        "linkedin_lookup",
        {"name": "Paul Reyes", "company": "Night Bus"},
    ),
    Request("I need a linkedin profile", asks=r"who|name|whom"),
    Request("can we talk by voice?", "start_voice_session", {"pending_request": None}),
    Request(
        "let's speak, I want to go through the quarterly figures",
        "start_voice_session",
        {"pending_request": words("quarterly figures")},
    ),
    Request("bye for now", "end_voice_session", {"reason": "user_request"}, mode="voice"),
    Request("please end the call", "end_voice_session", {"reason": "user_request"}, mode="voice"),
    # A second harvest, written when the first one went well.
    Request("what did we agree with the night bus people", "kb_search", {"query": words("night bus")}),
    Request("I need the wifi password", "kb_search", {"query": words("wifi password")}),
    Request("where can I find the time sheets", "kb_search", {"query": words("time sheets")}),
    Request(
        "find me documents on safety in the workshop", "kb_search", {"query": words("safety", "workshop")}
    ),
    Request("what's the process for ordering paint?", "kb_search", {"query": words("ordering paint")}),
    Request(
        "can you remind me what I noted about Anna's birthday?", "kb_search", {"query": words("birthday")}
    ),
    Request("any public info on how to get to the office?", "kb_search", {"namespace": "public"}),
    Request("who is Mina Sample?", "kb_search", {"query": words("Mina Sample")}),
    Request("get link:asset-library", "kb_get", {"ids": ["link:asset-library"]}),
    Request(
        "what does the third one say?",
        asks=r"which|record|mean",
        before=(("how much holiday do we get?", _FOUND),),
    ),
    Request(
        "got any time this afternoon?",
        "calendar_get_availability",
        {"start_date": at("2026-11-16T12:00"), "end_date": at("2026-11-16T17:00")},
    ),
    Request(
        "which evenings am I free next week?",
        "calendar_get_availability",
        {"start_date": day("2026-11-23")},
    ),
    Request(
        "show my appointments on the 25th",
        "calendar_get_availability",
        {"start_date": day("2026-11-25"), "end_date": one_of(day("2026-11-25"), day("2026-11-26T00"))},
    ),
    Request(
        "is my personal calendar empty on Sunday?",
        "calendar_get_availability",
        {"start_date": day("2026-11-22"), "calendars": ["personal"]},
    ),
    Request(
        "can you find an hour for me and the team between monday and wednesday?",
        "calendar_get_availability",
        {"min_duration_minutes": 60, "start_date": day("2026-11-16"), "end_date": day("2026-11-18")},
    ),
    Request(
        "put a reminder for the tax return on 30 November at 8am",
        "calendar_create_event",
        {"title": words("tax return"), "start_time": at("2026-11-30T08:00")},
    ),
    Request(
        "meet with lea@example.org and jo@example.org on Tuesday at 15:00 about the flyer",
        "calendar_create_event",
        {"attendees": same("lea@example.org", "jo@example.org"), "start_time": at("2026-11-17T15:00")},
    ),
    Request(
        "I have a doctor's appointment tomorrow at 8:15, please add it",
        "calendar_create_event",
        {"title": words("doctor"), "start_time": at("2026-11-17T08:15")},
    ),
    Request("add yoga on friday", asks=r"time"),
    Request(
        "reserve thursday from 2pm until 4pm for the workshop",
        "calendar_create_event",
        {
            "title": words("workshop"),
            "start_time": at("2026-11-19T14:00"),
            "end_time": at("2026-11-19T16:00"),
        },
    ),
    Request("sketch an old tram in the rain", "image_generate", {"prompt": words("old tram in the rain")}),
    Request("I'd like an illustration of two otters", "image_generate", {"prompt": words("otters")}),
    Request(
        "produce a portrait picture of a violin maker",
        "image_generate",
        {"prompt": words("violin maker"), "shape": "portrait"},
    ),
    Request("create an image", asks=r"prompt|picture|what"),
    Request("any ideas for an icon for our app?", "image_draft_prompt", {"purpose": "icon"}),
    Request(
        "brainstorm picture prompts about the sea, in pixel art",
        "image_draft_prompt",
        {"brief": words("sea"), "style": "pixel_art"},
    ),
    Request(
        "Here's a mail, who wrote it and how do I reach them?\nRegards, Kai Demo\n+49 30 901820",
        "extract_contacts",
        {"text": words("Kai Demo")},
    ),
    Request(
        'pull the urls from "see www.example.org and https://example.net/x"',
        "extract_contacts",
        {"text": words("www.example.org"), "kinds": ["urls"]},
    ),
    Request("current time in Nairobi please", "format_datetime", {"timezone": "Africa/Nairobi"}),
    Request(
        "if it's 10:00 in Tokyo, what time is it here?",
        "format_datetime",
        {"datetime": clock("2026-11-16T10:00"), "from_timezone": "Asia/Tokyo", "timezone": "Europe/Berlin"},
    ),
    Request(
        "how long ago was 2020-02-29?", "format_datetime", {"datetime": "2020-02-29", "style": "relative"}
    ),
    Request("tell me today's date in German", "format_datetime", {"locale": words("de")}),
    Request(
        "put the most recent ones first",
        "rank_results",
        {"items": ids("doc:holiday-policy", "process:sick-leave")},
        before=(("how much holiday do we get?", _FOUND),),
    ),
    Request("does Jo Muster have a linkedin account", "linkedin_lookup", {"name": "Jo Muster"}),
    Request("look up lena petersen on linkedin", "linkedin_lookup", {"name": words("lena petersen")}),
    Request("call me", "start_voice_session", {"pending_request": None}),
    Request("I'd rather speak to you", "start_voice_session", {}),
    Request("stop the conversation please", "end_voice_session", {"reason": "user_request"}, mode="voice"),
    Request(
        "what about friday?",
        "calendar_get_availability",
        {"start_date": day("2026-11-20")},
        before=(("am I free on wednesday?", _FREE),),
    ),
    Request(
        "and parking?",
        "kb_search",
        {"query": words("parking")},
        before=(("how much holiday do we get?", _FOUND),),
    ),
    # A third one.
    Request(
        "what do our clients say about the museum exhibition",
        "kb_search",
        {"query": words("museum exhibition")},
    ),
    Request(
        "what are the opening hours of the print shop?",
        "kb_search",
        {"query": words("opening hours", "print shop")},
    ),
    Request("I'm looking for the brand colours of Tidewater", "kb_search", {"query": words("brand colours")}),
    Request(
        "search for contracts in my private notes",
        "kb_search",
        {"query": words("contracts"), "namespace": "personal"},
    ),
    Request("give me the top 2 results on invoicing", "kb_search", {"query": words("invoicing"), "top_k": 2}),
    Request("how do we archive old files", "kb_search", {"query": words("archive old files")}),
    Request("is anyone here good at calligraphy?", "kb_search", {"query": words("calligraphy")}),
    Request("how often do we get paid?", "kb_search", {"query": words("paid")}, mode="voice"),
    Request("please load project:night-bus", "kb_get", {"ids": ["project:night-bus"]}),
    Request(
        "more on the last one",
        "kb_get",
        {"ids": ["process:sick-leave"]},
        before=(("how much holiday do we get?", _FOUND),),
    ),
    Request(
        "I want to see the whole holiday policy",
        "kb_get",
        {"ids": ["doc:holiday-policy"]},
        before=(("how much holiday do we get?", _FOUND),),
    ),
    Request(
        "read me doc:style-guide and doc:expenses",
        "kb_get",
        {"ids": same("doc:style-guide", "doc:expenses")},
        mode="voice",
    ),
    Request(
        "any openings in my diary on tuesday morning?",
        "calendar_get_availability",
        {"start_date": day("2026-11-17"), "end_date": day("2026-11-17")},
    ),
    Request(
        "am I already booked at 3 pm on thursday?",
        "calendar_get_availability",
        {"start_date": at("2026-11-19T15:00")},
    ),
    Request(
        "list the free slots of at least 90 minutes for the rest of the week",
        "calendar_get_availability",
        {"min_duration_minutes": 90, "start_date": day("2026-11-16"), "end_date": day("2026-11-22")},
    ),
    Request(
        "arrange a call with pat@example.com next monday at 11, 20 minutes, about the offer",
        "calendar_create_event",
        {
            "start_time": at("2026-11-23T11:00"),
            "end_time": at("2026-11-23T11:20"),
            "attendees": ["pat@example.com"],
        },
    ),
    Request(
        "Please schedule a design critique this Friday from 10 to 11:30 with a video link",
        "calendar_create_event",
        {
            "title": words("design critique"),
            "start_time": at("2026-11-20T10:00"),
            "end_time": at("2026-11-20T11:30"),
            "include_meeting_link": True,
        },
    ),
    Request(
        "note down swimming on saturday 9-10 am",
        "calendar_create_event",
        {
            "title": words("swimming"),
            "start_time": at("2026-11-21T09:00"),
            "end_time": at("2026-11-21T10:00"),
        },
    ),
    Request("set up a team meeting next week", asks=r"time|when"),
    Request(
        "the last one suits me, title: Handover",
        "calendar_create_event",
        {"title": "Handover", "start_time": at("2026-11-18T16:00")},
        before=(("am I free on wednesday?", _FREE),),
    ),
    Request("I want a painting of a stormy sea", "image_generate", {"prompt": words("stormy sea")}),
    Request(
        "visualise a treehouse at night in high quality",
        "image_generate",
        {"prompt": words("treehouse at night"), "quality": "high"},
    ),
    Request(
        "make 4 versions of a logo with a heron", "image_generate", {"prompt": words("heron"), "count": 4}
    ),
    Request(
        "render a chess board, no pieces, widescreen",
        "image_generate",
        {"prompt": words("chess board"), "avoid": words("pieces"), "shape": "landscape"},
    ),
    Request(
        "how might one describe a foggy harbour for an image? two suggestions",
        "image_draft_prompt",
        {"variants": 2},
    ),
    Request(
        "I'm not sure what our poster should look like, it is for a flea market",
        "image_draft_prompt",
        {"brief": words("flea market"), "purpose": "poster"},
    ),
    Request(
        "List the people in this text: Ann Muster <ann@example.org>, Bo Demo <bo@example.org>",
        "extract_contacts",
        {"text": words("Ann Muster")},
    ),
    Request(
        "parse this signature for me:\n--\nIda Test\nida@example.org",
        "extract_contacts",
        {"text": words("Ida Test")},
    ),
    Request("can you grab all phone numbers from a text I have?", asks=r"text"),
    Request("what time is it now?", "format_datetime", {"timezone": "Europe/Berlin"}),
    Request(
        "our call is 6pm in Los Angeles, what's that in Berlin?",
        "format_datetime",
        {
            "datetime": clock("2026-11-16T18:00"),
            "from_timezone": "America/Los_Angeles",
            "timezone": "Europe/Berlin",
        },
    ),
    Request(
        "how many weeks until new year's eve?",
        "format_datetime",
        {"datetime": "2026-12-31", "style": "relative"},
    ),
    Request("is 2028-02-29 a tuesday?", "format_datetime", {"datetime": "2028-02-29"}),
    Request("time in Singapore?", "format_datetime", {"timezone": "Asia/Singapore"}, mode="voice"),
    Request(
        "rank these by relevance to parental leave",
        "rank_results",
        {"items": ids("doc:holiday-policy", "process:sick-leave"), "query": words("parental leave")},
        before=(("how much holiday do we get?", _FOUND),),
    ),
    Request("sort the results by date", asks=r"result|search"),
    Request("can you get me Noor Sample's LinkedIn page?", "linkedin_lookup", {"name": "Noor Sample"}),
    Request(
        "linkedin of tom example who works at Halden Street",
        "linkedin_lookup",
        {"name": words("tom example")},
    ),
    Request("could we do this over the phone instead?", "start_voice_session", {}),
    Request("turn on the microphone", "start_voice_session", {}),
    Request("I'm done, see you", "end_voice_session", {"reason": words("")}, mode="voice"),
    Request("let's go back to the chat", "end_voice_session", {"reason": "user_request"}, mode="voice"),
    # A fourth one.
    Request("how do i get reimbursed for travel", "kb_search", {"query": words("reimbursed for travel")}),
    Request(
        "whats the deadline for the festival poster",
        "kb_search",
        {"query": words("deadline", without=("whats",))},
    ),
    Request("check whether we have a policy on overtime", "kb_search", {"query": words("overtime")}),
    Request("can you dig up something about lenses", "kb_search", {"query": words("lenses")}),
    Request("where do we keep the spare keys", "kb_search", {"query": words("spare keys")}),
    Request("do i have anything on tuesday", "calendar_get_availability", {"start_date": day("2026-11-17")}),
    Request(
        "what is booked for me on friday?", "calendar_get_availability", {"start_date": day("2026-11-20")}
    ),
    Request(
        "find 30 minutes on monday afternoon for a call",
        "calendar_get_availability",
        {"start_date": at("2026-11-16T12:00"), "min_duration_minutes": 30},
    ),
    Request(
        "block tomorrow morning for writing",
        "calendar_create_event",
        {"title": words("writing"), "start_time": day("2026-11-17")},
    ),
    Request(
        "enter the parents' evening on 2 December at 19:00",
        "calendar_create_event",
        {"title": words("parents"), "start_time": at("2026-12-02T19:00")},
    ),
    Request(
        'put "Pick up parcel" in my personal calendar tomorrow at 5pm',
        "calendar_create_event",
        {"title": "Pick up parcel", "calendar": "personal", "start_time": at("2026-11-17T17:00")},
    ),
    Request(
        "can you draw two foxes playing chess", "image_generate", {"prompt": words("foxes playing chess")}
    ),
    Request(
        "suggest prompts for a dramatic poster about whales",
        "image_draft_prompt",
        {"brief": words("whales"), "purpose": "poster", "mood": "dramatic"},
    ),
    Request(
        "what links are in this: https://example.org and www.example.com",
        "extract_contacts",
        {"text": words("https://example.org"), "kinds": ["urls"]},
    ),
    Request(
        "which names are mentioned here: Ann Muster met Bo Demo", "extract_contacts", {"kinds": ["names"]}
    ),
    Request(
        "how many days till valentine's day",
        "format_datetime",
        {"datetime": "2027-02-14", "style": "relative"},
    ),
    Request("what day of the week is 4 July 2027", "format_datetime", {"datetime": "2027-07-04"}),
    Request(
        "does anyone have the linkedin of Jo from Lakeside Print",
        "linkedin_lookup",
        {"name": "Jo", "company": "Lakeside Print"},
    ),
    Request("I'd prefer voice", "start_voice_session", {"pending_request": None}),
]

SMALL_TALK = [
    "hello",
    "hi, how are you?",
    "thank you!",
    "great job",
    "what can you do?",
    "who are you?",
    "ok",
    "good evening",
    "that's funny",
    "nice to meet you",
    "are you a robot?",
    "cheers, perfect",
    "long time no see",
    "can you help me?",
    "no thanks",
    "that's all for today",
    "I'm bored",
    "do you like music?",
    "yes",
    "tell me a joke",
    "good to see you",
    "what a day",
    "you are wrong",
    "I don't understand",
    "that was quick",
    "are you there?",
    "happy birthday",
    "welcome back",
    "who built you?",
    "is this a test?",
]
