"""Tool calls and their results: the call, error types, intents, and the response envelope.

A handler returns `ok(data, *intents)` or `fail(type, message)`, or raises `ToolError`. A streaming handler
yields `partial(data)` first, and its answer last. The types on the call path are named tuples because a
frozen dataclass takes four times as long to create.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

RESPONSE_SCHEMA_VERSION = "1.0.0"

ENVELOPE_META = (
    "toolId", "toolVersion", "registryVersion", "responseSchemaVersion", "duration", "returnsViolations",
    "state", "settled",
)  # fmt: skip
"""The members of an envelope's `meta` that only the kernel sets; values from a handler are dropped."""

_NOTHING: Mapping[str, Any] = MappingProxyType({})

_new_tuple = tuple.__new__


class ToolCall(NamedTuple):
    """One call in a model's message; `arguments` is the JSON text that the model wrote."""

    tool_id: str
    arguments: str | bytes
    call_id: str | None = None


class ErrorType(StrEnum):
    """The type of a failure."""

    # Set by the registry: the call cannot be run as it is, or the handler failed.
    VALIDATION = "VALIDATION"
    NOT_FOUND = "NOT_FOUND"
    INTERNAL = "INTERNAL"

    # Set by the orchestrator: a policy rejected the call.
    MODE_RESTRICTED = "MODE_RESTRICTED"
    BUDGET_EXCEEDED = "BUDGET_EXCEEDED"
    CONFIRMATION_REQUIRED = "CONFIRMATION_REQUIRED"
    LOOP_DETECTED = "LOOP_DETECTED"

    # Set by the handler: the operation was not possible.
    SESSION_INACTIVE = "SESSION_INACTIVE"
    SESSION_ACTIVE = "SESSION_ACTIVE"
    TRANSIENT = "TRANSIENT"
    PERMANENT = "PERMANENT"
    CONFLICT = "CONFLICT"
    AUTH = "AUTH"
    RATE_LIMIT = "RATE_LIMIT"


class ToolError(Exception):
    """Raised by a handler to report an unexpected failure.

    The model reads all of it, so write for the model: what went wrong and what to do instead. Return an
    expected outcome ("that slot is taken") with `fail` instead.
    """

    def __init__(
        self,
        type: ErrorType,  # noqa: A002 - the name used in the envelope
        message: str,
        *,
        retryable: bool = False,
        partial_side_effects: bool = False,
        suggestion: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.type = type
        self.message = message
        self.retryable = retryable
        self.partial_side_effects = partial_side_effects
        self.suggestion = suggestion
        self.details = details


class Intent(NamedTuple):
    """A requested change to the session: the type of an installed intent handler, and its parameters."""

    type: str
    params: Mapping[str, Any] = _NOTHING

    def to_wire(self) -> dict[str, Any]:
        """Return the intent as it appears in the envelope: `{"type": ..., **params}`."""
        return {"type": self.type, **self.params}


def end_voice_session(after: Literal["current_turn", "farewell_spoken"] = "current_turn") -> Intent:
    """Return an intent that ends the voice session after the current turn or after the farewell."""
    return Intent("END_VOICE_SESSION", {"after": after})


def suppress_audio(value: bool = True) -> Intent:
    """Return an intent that suppresses speech for the rest of this turn."""
    return Intent("SUPPRESS_AUDIO", {"value": value})


def suppress_transcript(value: bool = True) -> Intent:
    """Return an intent that hides the transcript of this turn."""
    return Intent("SUPPRESS_TRANSCRIPT", {"value": value})


def set_pending_message(message: str) -> Intent:
    """Return an intent that stores a message for the start of the user's next session."""
    return Intent("SET_PENDING_MESSAGE", {"message": message})


class Failure(NamedTuple):
    """A failure as reported to the model."""

    type: ErrorType
    message: str
    retryable: bool = False
    partial_side_effects: bool = False
    suggestion: str | None = None
    details: Mapping[str, Any] | None = None
    confirmation_request: Mapping[str, Any] | None = None

    def to_wire(self) -> dict[str, Any]:
        """Return the envelope's `error` object; optional members appear only if they are set."""
        wire: dict[str, Any] = {
            "type": self.type.value,
            "message": self.message,
            "retryable": self.retryable,
            "partialSideEffects": self.partial_side_effects,
        }
        if self.suggestion is not None:
            wire["suggestion"] = self.suggestion
        if self.details is not None:
            wire["details"] = dict(self.details)
        if self.confirmation_request is not None:
            wire["confirmation_request"] = dict(self.confirmation_request)
        return wire


class ToolResponse(NamedTuple):
    """The result of one call: either data and intents, or a failure."""

    data: Any = None
    failure: Failure | None = None
    intents: tuple[Intent, ...] = ()
    meta: Mapping[str, Any] = _NOTHING

    @property
    def ok(self) -> bool:
        """True if the call succeeded."""
        return self.failure is None

    def with_meta(self, **meta: Any) -> ToolResponse:
        """Return a copy with additional `meta`."""
        return self._replace(meta={**self.meta, **meta})

    def to_wire(self) -> dict[str, Any]:
        """Return the envelope as plain JSON values."""
        if self.failure is not None:
            return {"ok": False, "error": self.failure.to_wire(), "meta": dict(self.meta)}
        return {
            "ok": True,
            "data": self.data,
            "intents": [intent.to_wire() for intent in self.intents],
            "meta": dict(self.meta),
        }


class Partial(NamedTuple):
    """A part of a result that a streaming handler shows before its answer."""

    data: Any
    message: str = ""
    fraction: float | None = None


def partial(data: Any, message: str = "", *, fraction: float | None = None) -> Partial:
    """Return a part of the result to yield before the answer; the user sees it at once.

    Parts add up: text continues the previous text, a list adds its items, and other data adds one item.
    """
    return Partial(data, message, fraction)


def ok(data: Any = None, *intents: Intent) -> ToolResponse:
    """Return a success with JSON-serialisable data and the intents to apply."""
    # Every call creates one, and the constructor of a named tuple takes twice as long.
    return _new_tuple(ToolResponse, (data, None, intents, _NOTHING))


def fail(
    type: ErrorType,  # noqa: A002 - the name used in the envelope
    message: str,
    *,
    retryable: bool = False,
    partial_side_effects: bool = False,
    suggestion: str | None = None,
    details: Mapping[str, Any] | None = None,
) -> ToolResponse:
    """Return an expected failure: the handler worked, but the operation was not possible."""
    return ToolResponse(
        failure=Failure(ErrorType(type), message, retryable, partial_side_effects, suggestion, details),
    )


def fail_from(error: ToolError) -> ToolResponse:
    """Return the failure for a `ToolError` that a handler raised."""
    return fail(
        error.type,
        error.message,
        retryable=error.retryable,
        partial_side_effects=error.partial_side_effects,
        suggestion=error.suggestion,
        details=error.details,
    )
