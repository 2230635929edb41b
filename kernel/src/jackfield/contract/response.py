"""The one envelope in which every call is answered.

These are named tuples because two of them are made for every call: a frozen dataclass costs four times as
much to create, and both are immutable and typed.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from jackfield.contract.tool import ErrorType, Intent, ToolError

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
