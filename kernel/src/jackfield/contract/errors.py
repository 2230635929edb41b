"""Why a call failed, in words that every layer shares."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any


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
