"""Requests for the tools of third parties, written before the agent was, and split by their hash.

Two thirds serve development; the last third is scored once, at the end. The moment of every request is
`NOW`, a Monday.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

NOW = datetime(2026, 11, 16, 10, 0, tzinfo=ZoneInfo("Europe/Berlin"))


@dataclass(frozen=True)
class Case:
    """What a user says, the tool that is meant, and its arguments or the parameter to ask for."""

    says: str
    tool: str
    args: Mapping[str, Any] = field(default_factory=dict)
    asks: str = ""

    @property
    def held_out(self) -> bool:
        """Whether the case is kept for the last measurement."""
        return hashlib.sha256(self.says.encode()).digest()[0] % 3 == 0


def same(found: Any, wanted: Any) -> bool:
    """Whether an argument is the one that was meant; texts are compared without case and final marks."""
    if isinstance(wanted, str) and isinstance(found, str):
        if "T" in wanted and wanted[:4].isdigit():
            return datetime.fromisoformat(found) == datetime.fromisoformat(wanted)
        return _plain(found) == _plain(wanted)
    if isinstance(wanted, list) and isinstance(found, list):
        return sorted(map(_plain, found)) == sorted(map(_plain, wanted))
    return bool(found == wanted)


def _plain(text: str) -> str:
    return " ".join(text.lower().replace("\u2019", "'").split()).strip(" .!?\"'").removeprefix("the ")


def _of(tool: str, *cases: tuple[str, Mapping[str, Any] | str]) -> list[Case]:
    return [
        Case(says, tool, asks=told) if isinstance(told, str) else Case(says, tool, told)
        for says, told in cases
    ]


def _table(day: str, time: str, size: int, name: str) -> dict[str, Any]:
    return {"date": f"2026-{day}", "time": time, "party_size": size, "name": name}


def _money(amount: float, source: str, target: str) -> dict[str, Any]:
    return {"amount": amount, "from": source, "to": target}


def _train(origin: str, destination: str, depart: str, **more: Any) -> dict[str, Any]:
    return {"origin": origin, "destination": destination, "depart": f"2026-{depart}:00+01:00", **more}


CASES: list[Case] = [
    *_of(
        "book_table",
        ("book a table for four tomorrow at 7pm under Miller", _table("11-17", "19:00", 4, "Miller")),
        (
            "can we get a table on friday, 8 in the evening, 6 people, the name is Tanaka",
            _table("11-20", "20:00", 6, "Tanaka"),
        ),
        (
            "Reserve a table for 2 at 12:30 today for Anna Schmidt",
            _table("11-16", "12:30", 2, "Anna Schmidt"),
        ),
        ("table for eight next saturday 18:45, name Petrov", _table("11-28", "18:45", 8, "Petrov")),
        (
            "I'd like to come to dinner with three friends, so four of us, "
            "on the 21st at half past six. Rossi.",
            _table("11-21", "18:30", 4, "Rossi"),
        ),
        (
            "please book us in tonight at nine, party of five, under the name Dubois",
            _table("11-16", "21:00", 5, "Dubois"),
        ),
        ("reservation for Nguyen, 3 persons, december 2nd at 1 pm", _table("12-02", "13:00", 3, "Nguyen")),
        (
            "we need a table for ten on Wednesday at quarter past seven pm, it's for Larsen",
            _table("11-18", "19:15", 10, "Larsen"),
        ),
        ("dinner for two the day after tomorrow at 20:00 please, Kim", _table("11-18", "20:00", 2, "Kim")),
        (
            "book a table for six at 7 tomorrow evening in the name of O'Brien",
            _table("11-17", "19:00", 6, "O'Brien"),
        ),
        ("I want to reserve a table tomorrow at 8 pm for Weber", "party_size"),
        ("book a table for 4 on thursday, name Costa", "time"),
    ),
    *_of(
        "convert_currency",
        ("50 euros in dollars", _money(50, "EUR", "USD")),
        ("how much is 120 US dollars in euros?", _money(120, "USD", "EUR")),
        ("convert 3,500 yen to pounds", _money(3500, "JPY", "GBP")),
        ("what's 1000 Swiss francs in Canadian dollars", _money(1000, "CHF", "CAD")),
        ("I have 75 GBP, what is that in EUR", _money(75, "GBP", "EUR")),
        ("change two hundred euros into Polish zloty", _money(200, "EUR", "PLN")),
        ("how many rupees would I get for $99.50", _money(99.5, "USD", "INR")),
        ("give me 20 Australian dollars in yen", _money(20, "AUD", "JPY")),
        ("€15 to Turkish lira please", _money(15, "EUR", "TRY")),
        ("what are five thousand Czech koruna worth in euros", _money(5000, "CZK", "EUR")),
        ("convert 80 dollars", "to"),
    ),
    *_of(
        "track_parcel",
        ("where's parcel DE987654321", {"tracking_id": "DE987654321"}),
        ("track LX445566778 for me", {"tracking_id": "LX445566778"}),
        ("my tracking number is rb100200300, when will it be here?", {"tracking_id": "RB100200300"}),
        ("Has the package with number UK555000111 been delivered", {"tracking_id": "UK555000111"}),
        ("can you check on CN 123 456 789", {"tracking_id": "CN123456789"}),
        ("I'm waiting for a delivery, JP908070605, any news?", {"tracking_id": "JP908070605"}),
        ("status of FR121212121 please", {"tracking_id": "FR121212121"}),
        ("is IT333444555 still in customs", {"tracking_id": "IT333444555"}),
        ("where is my package?", "tracking_id"),
        ("track my parcel please", "tracking_id"),
    ),
    *_of(
        "set_thermostat",
        ("set the bedroom to 18 degrees", {"room": "bedroom", "celsius": 18}),
        ("office to 22.5 please", {"room": "office", "celsius": 22.5}),
        ("turn the heating in the kitchen down to seventeen", {"room": "kitchen", "celsius": 17}),
        ("I'd like 20 degrees in the living room", {"room": "living", "celsius": 20}),
        ("make the study twenty one degrees", {"room": "office", "celsius": 21}),
        ("heat the lounge up to 23", {"room": "living", "celsius": 23}),
        ("it's freezing in the bedroom, put it on 21", {"room": "bedroom", "celsius": 21}),
        ("can the kitchen be 16 degrees overnight", {"room": "kitchen", "celsius": 16}),
        (
            "change the temperature in my office to nineteen and a half degrees",
            {"room": "office", "celsius": 19.5},
        ),
        ("set the heating to 20", "room"),
        ("make the bedroom warmer", "celsius"),
    ),
    *_of(
        "send_invoice",
        (
            "send an invoice for 1,200 euros to Brightline GmbH",
            {"customer": "Brightline GmbH", "amount": 1200},
        ),
        (
            "invoice Marta Silva 350, due next friday",
            {"customer": "Marta Silva", "amount": 350, "due_date": "2026-11-27"},
        ),
        (
            "bill Northwind 99.90 payable by 30 November",
            {"customer": "Northwind", "amount": 99.9, "due_date": "2026-11-30"},
        ),
        (
            "please charge the Jansen family two hundred and fifty euros, due in two weeks",
            {"customer": "Jansen family", "amount": 250, "due_date": "2026-11-30"},
        ),
        (
            "I need to bill Acme Corp for 4000 euros by the end of the week, so friday",
            {"customer": "Acme Corp", "amount": 4000, "due_date": "2026-11-20"},
        ),
        ("can you send Paul Meier a bill of 60 euros", {"customer": "Paul Meier", "amount": 60}),
        (
            "invoice over 780 euros for Studio Blau, to be paid by december 15",
            {"customer": "Studio Blau", "amount": 780, "due_date": "2026-12-15"},
        ),
        (
            "send Greta Holm an invoice: 145 euros, note: thank you for the quick order",
            {"customer": "Greta Holm", "amount": 145, "note": "thank you for the quick order"},
        ),
        ("bill tomas 30 euros due tomorrow", {"customer": "tomas", "amount": 30, "due_date": "2026-11-17"}),
        ("send an invoice to Brightline", "amount"),
        ("make out an invoice for 500 euros", "customer"),
    ),
    *_of(
        "translate_text",
        ("translate 'where is the station' into French", {"text": "where is the station", "language": "fr"}),
        ("how do I say thank you very much in Japanese", {"text": "thank you very much", "language": "ja"}),
        ("what's the Spanish for I have a reservation", {"text": "I have a reservation", "language": "es"}),
        (
            "put this into German: the meeting has been moved to Thursday",
            {"text": "the meeting has been moved to Thursday", "language": "de"},
        ),
        ("say happy birthday in Italian", {"text": "happy birthday", "language": "it"}),
        (
            'I need "please keep off the grass" in Dutch',
            {"text": "please keep off the grass", "language": "nl"},
        ),
        ("translate the soup is too cold to Swedish", {"text": "the soup is too cold", "language": "sv"}),
        (
            "how would you write two tickets to the museum in Portuguese?",
            {"text": "two tickets to the museum", "language": "pt"},
        ),
        ("Turkish for good night please", {"text": "good night", "language": "tr"}),
        ("translate see you next week", "language"),
    ),
    *_of(
        "create_ticket",
        ("open a ticket, the coffee machine is broken", {"title": "coffee machine is broken"}),
        (
            "create a high priority ticket: nobody can log in",
            {"title": "nobody can log in", "priority": "high"},
        ),
        (
            "please file a ticket that the printer on floor 2 is out of toner, low priority",
            {"title": "printer on floor 2 is out of toner", "priority": "low"},
        ),
        (
            "new ticket: monitor flickers, tag it hardware",
            {"title": "monitor flickers", "tags": ["hardware"]},
        ),
        (
            "report to support that the VPN drops every hour, it's urgent, tags network and vpn",
            {"title": "VPN drops every hour", "priority": "high", "tags": ["network", "vpn"]},
        ),
        ("I need a ticket for the broken window in the lobby", {"title": "broken window in the lobby"}),
        (
            "raise a ticket: request for a second keyboard, can wait",
            {"title": "request for a second keyboard", "priority": "low"},
        ),
        ("tell support my laptop won't start", {"title": "my laptop won't start"}),
        (
            "ticket please. Title: Door badge not working. Priority high.",
            {"title": "Door badge not working", "priority": "high"},
        ),
        ("open a support ticket", "title"),
    ),
    *_of(
        "weather",
        ("what's the weather in Madrid", {"city": "Madrid"}),
        ("will it be sunny in Lisbon tomorrow?", {"city": "Lisbon", "day": "2026-11-17"}),
        ("do I need an umbrella in London on Wednesday", {"city": "London", "day": "2026-11-18"}),
        ("weather for Reykjavik this Saturday", {"city": "Reykjavik", "day": "2026-11-21"}),
        ("how cold does it get in Montreal on december 24th", {"city": "Montreal", "day": "2026-12-24"}),
        ("is it snowing in Innsbruck today", {"city": "Innsbruck", "day": "2026-11-16"}),
        ("forecast Cape Town please", {"city": "Cape Town"}),
        (
            "what will the weather be like in San Diego in three days",
            {"city": "San Diego", "day": "2026-11-19"},
        ),
        ("rain in Bergen on sunday?", {"city": "Bergen", "day": "2026-11-22"}),
        ("will it rain tomorrow", "city"),
    ),
    *_of(
        "split_bill",
        ("split 84 euros between 3 people", {"total": 84, "people": 3}),
        (
            "the bill is 120, there are six of us, add 15 percent tip",
            {"total": 120, "people": 6, "tip_percent": 15},
        ),
        ("divide 45.60 by two with a tip of 5%", {"total": 45.6, "people": 2, "tip_percent": 5}),
        ("we are five and the dinner was 230 dollars, what's each share?", {"total": 230, "people": 5}),
        ("how much does each of us pay if the four of us split ninety euros", {"total": 90, "people": 4}),
        ("share a bill of 1,050 among seven people, no tip", {"total": 1050, "people": 7}),
        (
            "lunch came to 66.40 for eight of us plus ten percent",
            {"total": 66.4, "people": 8, "tip_percent": 10},
        ),
        ("split the check of 72 three ways", {"total": 72, "people": 3}),
        ("split 100 euros with a 12% tip", "people"),
        ("split the bill between 4 people", "total"),
    ),
    *_of(
        "find_train",
        ("trains from Hamburg to Munich tomorrow at 8 am", _train("Hamburg", "Munich", "11-17T08:00")),
        (
            "I want to go from Vienna to Salzburg on friday at 14:30",
            _train("Vienna", "Salzburg", "11-20T14:30"),
        ),
        ("find me a train to Cologne from Berlin today at 6 pm", _train("Berlin", "Cologne", "11-16T18:00")),
        (
            "connection Zurich to Geneva on 3 december at noon for two people",
            _train("Zurich", "Geneva", "12-03T12:00", seats=2),
        ),
        (
            "when can I leave Leipzig for Dresden on sunday after 10 in the morning",
            _train("Leipzig", "Dresden", "11-22T10:00"),
        ),
        (
            "is there a train from Milan to Rome next tuesday at half past nine?",
            _train("Milan", "Rome", "11-24T09:30"),
        ),
        ("4 seats from Prague to Brno on the 25th at 7:15", _train("Prague", "Brno", "11-25T07:15", seats=4)),
        (
            "get me to Lyon from Paris the day after tomorrow around 5 pm",
            _train("Paris", "Lyon", "11-18T17:00"),
        ),
        ("Bremen to Hanover, tonight at 9", _train("Bremen", "Hanover", "11-16T21:00")),
        ("how do I get from Kiel to Rostock tomorrow at 11", _train("Kiel", "Rostock", "11-17T11:00")),
        ("I need a train to Stuttgart tomorrow at nine", "origin"),
        ("trains from Mainz to Trier", "depart"),
    ),
    *_of(
        "log_workout",
        ("I swam for half an hour", {"kind": "swim", "minutes": 30}),
        ("log a 10 km run, 55 minutes", {"kind": "run", "minutes": 55, "distance_km": 10}),
        ("add 45 minutes of strength training to my diary", {"kind": "strength", "minutes": 45}),
        (
            "bike ride of 32.5 kilometres, took an hour and a half",
            {"kind": "ride", "minutes": 90, "distance_km": 32.5},
        ),
        ("record yoga, 20 minutes", {"kind": "yoga", "minutes": 20}),
        ("went running for forty minutes this morning", {"kind": "run", "minutes": 40}),
        ("did two hours on the bike, 50 km", {"kind": "ride", "minutes": 120, "distance_km": 50}),
        ("put down a 25 minute swim, 1.2 km", {"kind": "swim", "minutes": 25, "distance_km": 1.2}),
        ("workout: lifting weights for 50 min", {"kind": "strength", "minutes": 50}),
        ("log a run", "minutes"),
        ("add a workout of 30 minutes", "kind"),
    ),
    *_of(
        "set_reminder",
        ("remind me to call mum tomorrow at 6 pm", {"text": "call mum", "at": "2026-11-17T18:00:00+01:00"}),
        (
            "set a reminder for friday 9 am: pay the rent",
            {"text": "pay the rent", "at": "2026-11-20T09:00:00+01:00"},
        ),
        (
            "in two hours remind me to take the cake out",
            {"text": "take the cake out", "at": "2026-11-16T12:00:00+01:00"},
        ),
        (
            "remind me every day at 7:30 to take my pills",
            {"text": "take my pills", "at": "2026-11-17T07:30:00+01:00", "repeat": "daily"},
        ),
        (
            "don't let me forget to renew the passport on december 1st at 10",
            {"text": "renew the passport", "at": "2026-12-01T10:00:00+01:00"},
        ),
        (
            "I need a reminder tonight at eight to put the bins out",
            {"text": "put the bins out", "at": "2026-11-16T20:00:00+01:00"},
        ),
        (
            "remind me weekly on thursdays at noon to back up my files",
            {"text": "back up my files", "at": "2026-11-19T12:00:00+01:00", "repeat": "weekly"},
        ),
        (
            "ping me in 20 minutes to check the oven",
            {"text": "check the oven", "at": "2026-11-16T10:20:00+01:00"},
        ),
        ("reminder: dentist, wednesday 15:00", {"text": "dentist", "at": "2026-11-18T15:00:00+01:00"}),
        ("remind me to buy stamps", "at"),
        ("set a reminder for tomorrow at 9", "text"),
    ),
]
DEVELOPMENT = [case for case in CASES if not case.held_out]
HELD_OUT = [case for case in CASES if case.held_out]
