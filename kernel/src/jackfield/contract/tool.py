"""Tool calls and their results: call, response envelope, error types, intents.

The types on the path of a call are named tuples: a frozen dataclass takes four times as long to create, and
both are immutable and typed.
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
"""What the kernel alone says in an envelope's `meta`; a handler's values under these names are dropped."""

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Failure(NamedTuple):
    """What went wrong, as the model is told."""

    type: ErrorType
    message: str
    retryable: bool = False
    partial_side_effects: bool = False
    suggestion: str | None = None
    details: Mapping[str, Any] | None = None
    confirmation_request: Mapping[str, Any] | None = None

    def to_wire(self) -> dict[str, Any]:
        """The envelope's `error` object; optional members appear only when they are set."""
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
    """The answer to one call: data and intents, or a failure; never both."""

    data: Any = None
    failure: Failure | None = None
    intents: tuple[Intent, ...] = ()
    meta: Mapping[str, Any] = _NOTHING

    @property
    def ok(self) -> bool:
        """Whether the call did what it was asked to."""
        return self.failure is None

    def with_meta(self, **meta: Any) -> ToolResponse:
        """The same answer with more `meta`."""
        return self._replace(meta={**self.meta, **meta})

    def to_wire(self) -> dict[str, Any]:
        """The envelope as plain JSON values."""
        if self.failure is not None:
            return {"ok": False, "error": self.failure.to_wire(), "meta": dict(self.meta)}
        return {
            "ok": True,
            "data": self.data,
            "intents": [intent.to_wire() for intent in self.intents],
            "meta": dict(self.meta),
        }


def ok(data: Any = None, *intents: Intent) -> ToolResponse:
    """A success: JSON-serialisable data and the changes of session state that go with it."""
    # Every call makes one, and the constructor of a named tuple takes twice as long.
    return tuple.__new__(ToolResponse, (data, None, intents, _NOTHING))


def fail(
    type: ErrorType,  # noqa: A002 - the envelope calls it so
    message: str,
    *,
    retryable: bool = False,
    partial_side_effects: bool = False,
    suggestion: str | None = None,
    details: Mapping[str, Any] | None = None,
) -> ToolResponse:
    """An expected failure: the handler worked, the world said no."""
    return ToolResponse(
        failure=Failure(ErrorType(type), message, retryable, partial_side_effects, suggestion, details),
    )


def fail_from(error: ToolError) -> ToolResponse:
    """The answer to a call whose handler raised `ToolError`."""
    return fail(
        error.type,
        error.message,
        retryable=error.retryable,
        partial_side_effects=error.partial_side_effects,
        suggestion=error.suggestion,
        details=error.details,
    )


class ToolCall(NamedTuple):
    """One call in a model's message; the arguments stay the text the model wrote until they are checked."""

    tool_id: str
    arguments: str | bytes
    call_id: str | None = None


class ErrorType(StrEnum):
    """The type of a failure; the layer that makes it decides which."""

    # The registry: the call could not be run as it stands, or the handler broke.
    VALIDATION = "VALIDATION"
    NOT_FOUND = "NOT_FOUND"
    INTERNAL = "INTERNAL"

    # The orchestrator: a policy refused the call.
    MODE_RESTRICTED = "MODE_RESTRICTED"
    BUDGET_EXCEEDED = "BUDGET_EXCEEDED"
    CONFIRMATION_REQUIRED = "CONFIRMATION_REQUIRED"
    LOOP_DETECTED = "LOOP_DETECTED"

    # The handler: the world did not allow it.
    SESSION_INACTIVE = "SESSION_INACTIVE"
    SESSION_ACTIVE = "SESSION_ACTIVE"
    TRANSIENT = "TRANSIENT"
    PERMANENT = "PERMANENT"
    CONFLICT = "CONFLICT"
    AUTH = "AUTH"
    RATE_LIMIT = "RATE_LIMIT"


class ToolError(Exception):
    """An unexpected failure that a handler raises on purpose.

    Everything in it reaches the model, so write it for the model: what went wrong and what to do instead.
    An expected outcome ("that slot is taken") is returned with `fail` rather than raised.
    """

    def __init__(
        self,
        type: ErrorType,  # noqa: A002 - the envelope calls it so
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
    """One requested change: a type that some installed intent handler knows, and its parameters."""

    type: str
    params: Mapping[str, Any] = _NOTHING

    def to_wire(self) -> dict[str, Any]:
        """The flat form of the envelope: `{"type": ..., **params}`."""
        return {"type": self.type, **self.params}


def end_voice_session(after: Literal["current_turn", "farewell_spoken"] = "current_turn") -> Intent:
    """End the voice session when the current turn, or the farewell, is over."""
    return Intent("END_VOICE_SESSION", {"after": after})


def suppress_audio(value: bool = True) -> Intent:
    """Do not speak the answer to this turn."""
    return Intent("SUPPRESS_AUDIO", {"value": value})


def suppress_transcript(value: bool = True) -> Intent:
    """Do not show the transcript of this turn."""
    return Intent("SUPPRESS_TRANSCRIPT", {"value": value})


def set_pending_message(message: str) -> Intent:
    """Keep a message that the next session of this user takes up first."""
    return Intent("SET_PENDING_MESSAGE", {"message": message})
