"""The answer of a handler, judged as an envelope: it says one thing, and JSON carries it unchanged."""

from __future__ import annotations

import inspect
import re
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

from jackfield_testkit.json_values import json_faults, same_json
from jackfield_testkit.tool_contract.example import HANDLER_ERRORS
from jackfield_testkit.tool_contract.running import Run

_INTENT_TYPE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*")

_OF_THE_KERNEL: dict[str, Callable[..., Intent]] = {
    "END_VOICE_SESSION": end_voice_session,
    "SUPPRESS_AUDIO": suppress_audio,
    "SUPPRESS_TRANSCRIPT": suppress_transcript,
    "SET_PENDING_MESSAGE": set_pending_message,
}


def problems(run: Run, manifest: ToolManifest) -> list[str]:
    """Everything that keeps the answer of a run from being a sound envelope."""
    if not run.reached or run.crashed:
        return []  # There is no answer of the handler; whether that was expected is asked elsewhere.
    found = list(_answer_problems(run, manifest))
    if run.changed_arguments:
        found.append(
            "the handler changed its arguments: a retry and the audit record would see others than the model "
            "sent; copy what you change"
        )
    return found


def _answer_problems(run: Run, manifest: ToolManifest) -> Iterator[str]:
    if run.raised is None and not isinstance(run.returned, ToolResponse):
        yield f"the handler returned {type(run.returned).__name__} instead of ok(...) or fail(...)"
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
        yield "a failure comes with data or intents, which nobody will see; put what matters into details"
    if not isinstance(failure.type, ErrorType):
        yield f"the failure's type is {failure.type!r}; use ErrorType"
    elif failure.type not in HANDLER_ERRORS:
        yield f"{failure.type} is not a handler's to say; choose one of {', '.join(sorted(HANDLER_ERRORS))}"
    if not _is_sentence(failure.message):
        yield "the failure has no message: tell the model what went wrong"
    yield from _member_problems(failure)
    if failure.partial_side_effects is True and not manifest.writes:
        yield f"the failure reports partial side effects, and sideEffects is {manifest.side_effects!r}"


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
        yield "confirmation_request is the orchestrator's to fill in"


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
        yield "a parameter named type would hide the intent's own"
    elif faults := [*json_faults(_plain(intent.params))]:
        yield from faults
    else:
        yield from _signature_problems(intent)


def _signature_problems(intent: Intent) -> Iterator[str]:
    """The kernel's own intents, held against the functions that make them."""
    make = _OF_THE_KERNEL.get(intent.type)
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
            yield "read back from JSON it is not what the handler returned"


def _is_sentence(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value
