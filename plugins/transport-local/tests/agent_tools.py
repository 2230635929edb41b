"""Twelve tools of third parties, of different shapes, which no code of the agent knows."""

from __future__ import annotations

import json
from typing import Any

Tool = tuple[str, dict[str, Any], str]
"""A description, a JSON Schema of the parameters, and a guide."""


def _text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


def _number(description: str, kind: str = "number", **more: Any) -> dict[str, Any]:
    return {"type": kind, "description": description, **more}


def _tool(
    tool_id: str,
    description: str,
    parameters: dict[str, Any],
    required: list[str],
    *examples: tuple[str, dict[str, Any]],
) -> Tool:
    schema = {
        "type": "object",
        "properties": parameters,
        "required": required,
        "additionalProperties": False,
    }
    shown = "\n\n".join(f"{says}\n\n```json\n{json.dumps(args)}\n```" for says, args in examples)
    return description, schema, f"# {tool_id}\n\n{description}\n\n## Examples\n\n{shown}\n"


TOOLS: dict[str, Tool] = {
    "book_table": _tool(
        "book_table",
        "Reserve a table at the restaurant.",
        {
            "date": _text("The day of the visit.", format="date"),
            "time": _text("When the guests arrive, as HH:MM.", pattern="^[0-2][0-9]:[0-5][0-9]$"),
            "party_size": _number("How many guests come.", "integer", minimum=1, maximum=20),
            "name": _text("The name the table is reserved under."),
        },
        ["date", "time", "party_size", "name"],
        (
            "A table for two on 4 March at half past seven, name of Keller please.",
            {"date": "2026-03-04", "time": "19:30", "party_size": 2, "name": "Keller"},
        ),
        (
            "Reserve for Okafor, five people, next Sunday at noon",
            {"date": "2026-03-08", "time": "12:00", "party_size": 5, "name": "Okafor"},
        ),
    ),
    "convert_currency": _tool(
        "convert_currency",
        "Convert an amount of money from one currency into another at today's rate.",
        {
            "amount": _number("How much money to convert.", exclusiveMinimum=0),
            "from": _text("ISO 4217 code of the currency the amount is in.", pattern="^[A-Z]{3}$"),
            "to": _text("ISO 4217 code of the currency that is wanted.", pattern="^[A-Z]{3}$"),
        },
        ["amount", "from", "to"],
        ("How many yen do I get for 200 francs?", {"amount": 200, "from": "CHF", "to": "JPY"}),
        ("convert 15 pounds to kroner, the Swedish ones", {"amount": 15, "from": "GBP", "to": "SEK"}),
    ),
    "track_parcel": _tool(
        "track_parcel",
        "Tell where a parcel is and when it arrives.",
        {
            "tracking_id": _text(
                "The tracking number, two letters and nine digits.", pattern="^[A-Z]{2}[0-9]{9}$"
            )
        },
        ["tracking_id"],
        ("Where is my parcel AB123456789?", {"tracking_id": "AB123456789"}),
        ("has QX000451122 arrived yet", {"tracking_id": "QX000451122"}),
    ),
    "set_thermostat": _tool(
        "set_thermostat",
        "Set the temperature of a room.",
        {
            "room": _text(
                "Which room: living is the lounge, office the study, bedroom where people sleep.",
                enum=["living", "office", "bedroom", "kitchen"],
            ),
            "celsius": _number("The temperature in degrees Celsius.", minimum=5, maximum=30),
        },
        ["room", "celsius"],
        ("Make the kitchen 19 degrees", {"room": "kitchen", "celsius": 19}),
        ("I want it at 21.5 in the lounge", {"room": "living", "celsius": 21.5}),
    ),
    "send_invoice": _tool(
        "send_invoice",
        "Send an invoice to a customer.",
        {
            "customer": _text("Who has to pay: a person or a company."),
            "amount": _number("The sum in euros.", exclusiveMinimum=0),
            "due_date": _text("The day by which it has to be paid.", format="date"),
            "note": _text("A line to the customer, only if the user dictates one."),
        },
        ["customer", "amount"],
        (
            "Bill Hartmann Ltd 450 euros, due on 1 April.",
            {"customer": "Hartmann Ltd", "amount": 450, "due_date": "2026-04-01"},
        ),
        ("send an invoice over 80 to Lena Brandt", {"customer": "Lena Brandt", "amount": 80}),
    ),
    "translate_text": _tool(
        "translate_text",
        "Translate a text into another language.",
        {
            "text": _text("The text to translate, as the user wrote it."),
            "language": _text(
                "The language to translate into, as a two-letter ISO 639 code.", pattern="^[a-z]{2}$"
            ),
        },
        ["text", "language"],
        ("How do you say good morning in Danish?", {"text": "good morning", "language": "da"}),
        ('Translate "the door is open" to Polish', {"text": "the door is open", "language": "pl"}),
    ),
    "create_ticket": _tool(
        "create_ticket",
        "Open a ticket for the support team.",
        {
            "title": _text("What is wrong, in a few words."),
            "priority": _text(
                "How urgent it is: high for what stops work, normal otherwise, low for what can wait.",
                enum=["low", "normal", "high"],
                default="normal",
            ),
            "tags": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Labels the user names.",
            },
        },
        ["title"],
        (
            "Open a ticket: the scanner in room 4 jams, urgent",
            {"title": "the scanner in room 4 jams", "priority": "high"},
        ),
        (
            "File a bug that the login page is blank, tags web and login",
            {"title": "the login page is blank", "tags": ["web", "login"]},
        ),
    ),
    "weather": _tool(
        "weather",
        "Tell the weather forecast for a city.",
        {
            "city": _text("The city."),
            "day": _text("The day of the forecast. Left out: today.", format="date"),
        },
        ["city"],
        ("Will it rain in Porto on 5 May?", {"city": "Porto", "day": "2026-05-05"}),
        ("how warm is it in Oslo", {"city": "Oslo"}),
    ),
    "split_bill": _tool(
        "split_bill",
        "Work out what each person pays of a bill.",
        {
            "total": _number("The whole bill.", exclusiveMinimum=0),
            "people": _number("How many share it.", "integer", minimum=2),
            "tip_percent": _number("The tip as a percentage of the bill.", minimum=0, maximum=100),
        },
        ["total", "people"],
        ("Split 96 euros between four of us with a 10% tip", {"total": 96, "people": 4, "tip_percent": 10}),
        ("what does everyone pay if 3 people share 51", {"total": 51, "people": 3}),
    ),
    "find_train": _tool(
        "find_train",
        "Find train connections between two stations.",
        {
            "origin": _text("The station where the journey starts."),
            "destination": _text("The station where the journey ends."),
            "depart": _text("The earliest departure, with offset.", format="date-time"),
            "seats": _number("How many seats to look for.", "integer", minimum=1, maximum=9, default=1),
        },
        ["origin", "destination", "depart"],
        (
            "Trains from Graz to Linz on 3 June after 9 am",
            {"origin": "Graz", "destination": "Linz", "depart": "2026-06-03T09:00:00+02:00"},
        ),
        (
            "I need to get to Basel from Ulm tomorrow at quarter to six in the evening, three seats",
            {"origin": "Ulm", "destination": "Basel", "depart": "2026-03-03T17:45:00+01:00", "seats": 3},
        ),
    ),
    "log_workout": _tool(
        "log_workout",
        "Record a workout in the training diary.",
        {
            "kind": _text("The kind of sport.", enum=["run", "ride", "swim", "strength", "yoga"]),
            "minutes": _number("How long it took, in minutes.", "integer", minimum=1, maximum=600),
            "distance_km": _number("The distance in kilometres.", minimum=0),
        },
        ["kind", "minutes"],
        ("I ran 8 km in 44 minutes", {"kind": "run", "minutes": 44, "distance_km": 8}),
        ("log an hour of yoga", {"kind": "yoga", "minutes": 60}),
    ),
    "set_reminder": _tool(
        "set_reminder",
        "Remind the user of something at a given moment.",
        {
            "text": _text("What to remind the user of."),
            "at": _text("When to remind, with offset.", format="date-time"),
            "repeat": _text("How often it comes again.", enum=["daily", "weekly", "monthly"]),
        },
        ["text", "at"],
        (
            "Remind me to water the plants tomorrow at 8 am",
            {"text": "water the plants", "at": "2026-03-03T08:00:00+01:00"},
        ),
        (
            "every week on Friday at 4 pm remind me to send the report",
            {"text": "send the report", "at": "2026-03-06T16:00:00+01:00", "repeat": "weekly"},
        ),
    ),
}

WRITERS = frozenset(
    ("book_table", "send_invoice", "create_ticket", "set_thermostat", "log_workout", "set_reminder")
)
"""Those of the twelve that change something."""
