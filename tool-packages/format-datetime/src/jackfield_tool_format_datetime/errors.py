"""Errors for arguments that match the schema but name something that does not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackfield import ErrorType, ToolResponse, fail

if TYPE_CHECKING:
    from collections.abc import Sequence


class ArgumentError(Exception):
    """An unusable argument, with the reason and a suggestion."""

    def __init__(self, parameter: str, message: str, advice: str, alternatives: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.parameter = parameter
        self.message = message
        self.advice = advice
        self.alternatives = list(alternatives)

    def response(self) -> ToolResponse:
        """Return the failure for the model."""
        advice = self.advice
        if self.alternatives:
            advice = f"Did you mean {' or '.join(self.alternatives)}? {advice}"
        details = {"parameter": self.parameter, "alternatives": self.alternatives}
        return fail(ErrorType.PERMANENT, self.message, suggestion=advice, details=details)
