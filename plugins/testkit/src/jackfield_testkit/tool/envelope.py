"""Checks of a response: a sound envelope that JSON represents unchanged, and data that can be spoken."""

from __future__ import annotations

import inspect
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, get_args, get_origin, get_type_hints

import orjson
from jackfield import (
    ErrorType,
    Failure,
    Intent,
    ToolResponse,
    end_voice_session,
    set_pending_message,
    suppress_audio,
    suppress_transcript,
)
from jackfield.contract.manifest import ToolManifest
from jackfield.handler_types import ArgumentsRefusedError
from jackfield.strict_json import pointer

from jackfield_testkit.json_values import json_faults, same_json, strings
from jackfield_testkit.tool.examples import HANDLER_ERRORS
from jackfield_testkit.tool.runner import Run

MAX_SPOKEN_CHARACTERS = 1500

_INTENT_TYPE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*")

_KERNEL_INTENTS: dict[str, Callable[..., Intent]] = {
    "END_VOICE_SESSION": end_voice_session,
    "SUPPRESS_AUDIO": suppress_audio,
    "SUPPRESS_TRANSCRIPT": suppress_transcript,
    "SET_PENDING_MESSAGE": set_pending_message,
}


_MARKUP = {
    # Attributes need `=`, so that "a <b and c> d" and "Ann <ann@example.com>" count as text.
    "a tag": re.compile(
        r"""</[a-z][\w-]*\s*>|<[a-z][\w-]*(\s+[\w:-]+\s*=\s*("[^"]*"|'[^']*'|[^\s"'>]+))*\s*/?>""",
        re.IGNORECASE,
    ),
    "a Markdown fence": re.compile(r"^[ \t]*(```|~~~)", re.MULTILINE),
    "a Markdown table": re.compile(r"^[ \t]*\|?[ \t]*:?-{2,}:?[ \t]*\|[ \t:|-]*$", re.MULTILINE),
    "a Markdown link": re.compile(r"""\[[^\]\n]*\]\([^\s()]*[./:#][^\s()]*(\s+["'(][^\n]*)?\)"""),
}


def envelope_problems(run: Run, manifest: ToolManifest) -> list[str]:
    """Return everything that is wrong with the response of a run."""
    if not run.reached or run.crashed or isinstance(run.raised, ArgumentsRefusedError):
        return []  # There is no response from the handler; test_examples checks whether that was expected.
    found = list(_response_problems(run, manifest))
    if run.changed_arguments:
        found.append(
            "the handler changed its arguments, so a retry and the audit log would not see the model's "
            "arguments; copy what you change"
        )
    return found


def _response_problems(run: Run, manifest: ToolManifest) -> Iterator[str]:
    if run.raised is None and run.returned is None:
        yield "the handler returned None; return data, ok(...) or fail(...)"
        return
    response = run.response
    found = [
        *_failure_problems(response, manifest),
        *(f"data {fault}" for fault in json_faults(response.data)),
        *_intent_problems(response),
    ]
    yield from found
    if not found:
        yield from _wire_problems(response)


def _failure_problems(response: ToolResponse, manifest: ToolManifest) -> Iterator[str]:
    failure = response.failure
    if failure is None:
        return
    if response.data is not None or response.intents:
        yield "a failure has data or intents, which are dropped; put what matters into details"
    if not isinstance(failure.type, ErrorType):
        yield f"the type of the failure is {failure.type!r}; use ErrorType"
    elif failure.type not in HANDLER_ERRORS:
        yield f"a handler must not return {failure.type}; choose one of {', '.join(sorted(HANDLER_ERRORS))}"
    if not _is_sentence(failure.message):
        yield "the failure has no message; tell the model what went wrong"
    yield from _member_problems(failure)
    if failure.partial_side_effects is True and not manifest.writes:
        yield f"the failure reports partial side effects, but sideEffects is {manifest.side_effects!r}"


def _member_problems(failure: Failure) -> Iterator[str]:
    for name, value in (
        ("retryable", failure.retryable),
        ("partial_side_effects", failure.partial_side_effects),
    ):
        if not isinstance(value, bool):
            yield f"{name} is {value!r}, not true or false"
    if failure.suggestion is not None and not _is_sentence(failure.suggestion):
        yield f"the suggestion is {failure.suggestion!r}, not a sentence"
    if failure.details is not None:
        yield from (f"details {fault}" for fault in json_faults(_plain(failure.details)))
    if failure.confirmation_request is not None:
        yield "confirmation_request is set by the orchestrator, not by a handler"


def _intent_problems(response: ToolResponse) -> Iterator[str]:
    for position, intent in enumerate(response.intents):
        for problem in _one_intent(intent):
            yield f"intent {position}: {problem}"


def _one_intent(intent: Any) -> Iterator[str]:
    if not isinstance(intent, Intent):
        yield f"it is {type(intent).__name__}, not an Intent"
    elif not _INTENT_TYPE.fullmatch(str(intent.type)):
        yield f"the type {intent.type!r} is not in UPPER_CASE"
    elif not isinstance(intent.params, Mapping):
        yield f"its parameters are {type(intent.params).__name__}, not a mapping"
    elif "type" in intent.params:
        yield "a parameter named type would hide the type of the intent"
    elif faults := [*json_faults(_plain(intent.params))]:
        yield from faults
    else:
        yield from _signature_problems(intent)


def _signature_problems(intent: Intent) -> Iterator[str]:
    """Check the kernel's intents against the functions that create them."""
    make = _KERNEL_INTENTS.get(intent.type)
    if make is None:
        return
    try:
        inspect.signature(make).bind(**intent.params)
    except TypeError as error:
        yield f"{intent.type}: {error}; make it with {make.__name__}(...)"
        return
    hints = get_type_hints(make)
    for name, value in intent.params.items():
        hint = hints[name]
        choices = get_args(hint) if get_origin(hint) is Literal else ()
        if choices and value not in choices:
            yield f"{intent.type}: {name} is {value!r}, not one of {', '.join(map(repr, choices))}"
        elif not choices and not isinstance(value, hint):
            yield f"{intent.type}: {name} is {value!r}, not {hint.__name__}"


def _wire_problems(response: ToolResponse) -> Iterator[str]:
    wire = response.to_wire()
    try:
        text = orjson.dumps(wire)
    except TypeError as error:
        yield f"it cannot be written as JSON: {error}"
    else:
        if not same_json(orjson.loads(text), wire):
            yield "read back from JSON, it differs from what the handler returned"


def _is_sentence(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value


def speech_problems(data: Any) -> list[str]:
    """Return why the data of a response cannot be spoken."""
    return [*_length_problems(data), *_markup_problems(data)]


def _length_problems(data: Any) -> Iterator[str]:
    try:
        characters = len(orjson.dumps(data).decode())
    except TypeError:
        return  # The data is not JSON; test_envelope reports it.
    if characters > MAX_SPOKEN_CHARACTERS:
        yield (
            f"the data has {characters} characters, but at most {MAX_SPOKEN_CHARACTERS} can be spoken; "
            "return less in voice: fewer items, shorter texts"
        )


def _markup_problems(data: Any) -> Iterator[str]:
    for path, text in strings(data):
        where = f"data {pointer(*path)}"
        for name, pattern in _MARKUP.items():
            if match := pattern.search(text):
                yield f"{where} contains {name}, which would be read out: {match.group()!r:.80}"
        if control := next((each for each in text if _is_control(each)), None):
            yield f"{where} contains the control character {control!r}"


def _is_control(character: str) -> bool:
    return unicodedata.category(character) == "Cc" and character not in "\n\r\t"
