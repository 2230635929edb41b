"""An argument that the schema accepts and the world does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jackfield import ErrorType, ToolResponse, fail

if TYPE_CHECKING:
    from collections.abc import Sequence


class ArgumentError(Exception):
    """One argument cannot be used; says which, why, and what to write instead."""

    def __init__(self, parameter: str, message: str, advice: str, alternatives: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.parameter = parameter
        self.message = message
        self.advice = advice
        self.alternatives = list(alternatives)

    def response(self) -> ToolResponse:
        """The failure as the model is told."""
        advice = self.advice
        if self.alternatives:
            advice = f"Did you mean {' or '.join(self.alternatives)}? {advice}"
        details = {"parameter": self.parameter, "alternatives": self.alternatives}
        return fail(ErrorType.PERMANENT, self.message, suggestion=advice, details=details)
