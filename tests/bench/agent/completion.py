"""Checks that every request for a tool ends in a valid call once the user completes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import jsonschema_rs
from jackfield_local.agent.agent import LocalAgent

from bench.agent.criteria import exact
from bench.agent.dataset import Request
from bench.agent.scores import Row, Score
from bench.agent.sessions import Call, Session, Turn, options_of, schema_of, session, third_party_opening

MOST = 6
"""Exchanges after which the user gives up."""

_PATTERNED = {
    "^[0-2][0-9]:[0-5][0-9]$": "18:30",
    "^[A-Z]{3}$": "NOK",
    "^[A-Z]{2}[0-9]{9}$": "LK204816325",
    "^[a-z]{2}$": "pt",
}
"""A value for each pattern in the schemas of the third-party tools."""

_LANGUAGE_CODE = "^[a-z]{2}$"
_LANGUAGES = {
    "ar": "Arabic", "bg": "Bulgarian", "ca": "Catalan", "cs": "Czech", "cy": "Welsh", "da": "Danish",
    "de": "German", "el": "Greek", "en": "English", "es": "Spanish", "et": "Estonian", "fi": "Finnish",
    "fr": "French", "ga": "Irish", "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian",
    "id": "Indonesian", "is": "Icelandic", "it": "Italian", "ja": "Japanese", "ko": "Korean",
    "la": "Latin", "lt": "Lithuanian", "lv": "Latvian", "nl": "Dutch", "no": "Norwegian", "pl": "Polish",
    "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sk": "Slovak", "sl": "Slovenian",
    "sv": "Swedish", "sw": "Swahili", "th": "Thai", "tr": "Turkish", "uk": "Ukrainian",
    "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
"""Answers to questions for a language, which no user answers with a code."""


async def completed(agent: LocalAgent, requests: Sequence[Request], *, forms: bool, shown: bool) -> Row:
    """Score requests for third-party tools, each until a tool is called."""
    score = Score(shown=shown)
    opening = third_party_opening("text", forms=forms)
    for request in requests:
        if request.tool is None:
            continue
        async with session(agent, opening) as talk:
            person = _Person(request, schema_of(request.tool))
            call, exchanges, last = await _until_called(talk, person, request)
        schema = schema_of(request.tool)
        valid = call is not None and call.tool == request.tool and _is_valid(call.args, schema)
        score.count("requests")
        score.share("valid", right=valid)
        if valid:
            score.measure("exchanges", exchanges)
            score.most("most exchanges", exchanges)
        writes = call is not None and call.tool in opening.writers
        score.count("wrong writes", int(writes and not valid))
        if not request.asks:
            right = valid and call is not None and exact(call.args, request.args, schema)
            score.share("exact", right=right)
            score.count("wrong writes", int(valid and writes and not right))
        else:
            right = valid
        if not right:
            expected = f"{request.tool}({request.args or 'any valid values'})"
            score.failed(request.says, expected, f"{exchanges} exchanges, then {last}")
    return score.row()


async def _until_called(talk: Session, person: _Person, request: Request) -> tuple[Call | None, int, Turn]:
    """Return the call, the number of exchanges up to it, and the last of them."""
    turn = await talk.says(request.says)
    exchanges = 1
    while not turn.calls and exchanges < MOST:
        options = options_of(talk.connection)
        if request.tool in options:
            turn = await talk.says(str(options.index(request.tool) + 1))
        elif options or turn.tool != request.tool:
            turn = await talk.says("no")
        elif turn.form is not None:
            turn = await talk.submits(turn.form.tool_id, person.completes(turn.form.values))
        elif turn.question is not None and turn.question.parameter is not None:
            turn = await talk.says(person.answers(turn.question.parameter))
        else:
            turn = await talk.says("yes")
        exchanges += 1
    return (turn.calls[0] if turn.calls else None), exchanges, turn


class _Person:
    """A user who knows the missing values."""

    def __init__(self, request: Request, schema: Mapping[str, Any]) -> None:
        self._known = request.args
        self._schema = schema

    def completes(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return a form with the known values, and likely ones where a required value is missing."""
        filled = {**values, **self._known}
        return filled | {
            name: likely(self._schema["properties"][name])
            for name in self._schema["required"]
            if name not in filled
        }

    def answers(self, parameter: str) -> str:
        """Return the answer to a question for a parameter."""
        schema = self._schema["properties"][parameter]
        value = self._known[parameter] if parameter in self._known else likely(schema)
        if schema.get("pattern") == _LANGUAGE_CODE:
            return _LANGUAGES.get(str(value), str(value))
        return in_words(value)


def likely(schema: Mapping[str, Any]) -> Any:
    """Return a value that a schema accepts."""
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"), schema.get("format"):
        case "string", "date":
            return "2026-03-10"
        case "string", "date-time":
            return "2026-03-10T10:00:00+01:00"
        case "string", _:
            return _PATTERNED[schema["pattern"]] if "pattern" in schema else "Blue Harbour"
        case "array", _:
            return [likely(schema["items"])]
        case "boolean", _:
            return True
    return max(schema.get("minimum", 0), min(20, schema.get("maximum", 20)))


def in_words(value: Any) -> str:
    """Return a value as a person would write it in an answer."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return " and ".join(map(in_words, value))
    if isinstance(value, str) and value[:4].isdigit() and value[4:5] == "-":
        moment = datetime.fromisoformat(value)
        day = f"{moment.day} {moment:%B %Y}"
        return f"{day} at {moment:%H:%M}" if "T" in value else day
    return str(value)


def _is_valid(args: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    return jsonschema_rs.validator_for(dict(schema), validate_formats=True).is_valid(dict(args))
