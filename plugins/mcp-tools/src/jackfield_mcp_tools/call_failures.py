"""Failures of calls to servers, and the response to each: whether the call ran and may be repeated."""

from __future__ import annotations

from jackfield import ErrorType, ToolResponse, fail
from mcp_types import INVALID_PARAMS

MAX_MESSAGE = 500


class CallError(Exception):
    """A call to a server failed."""

    def response(self, server: str, *, writes: bool) -> ToolResponse:
        """Return the response for the model; `writes` is true if the tool can change something."""
        raise NotImplementedError


class NotConnectedError(CallError):
    """There is no connection, so the call was not sent."""

    def response(self, server: str, *, writes: bool) -> ToolResponse:  # noqa: ARG002 - it was not sent
        """Allow the model to repeat the call."""
        return fail(
            ErrorType.TRANSIENT,
            f"The MCP server {server} is not connected; the tool was not called.",
            retryable=True,
            suggestion="Try again later, or continue without it.",
        )


class CredentialsRefusedError(CallError):
    """The server refused the host's credentials, so the call did not run; the message is for operators."""

    def response(self, server: str, *, writes: bool) -> ToolResponse:  # noqa: ARG002 - it did not run
        """Say that an operator has to check the credentials."""
        return fail(
            ErrorType.PERMANENT,
            f"The MCP server {server} refuses the credentials of this host; the tool was not called.",
            suggestion="Continue without it. An operator has to check the server's credentials.",
        )


class LostCallError(CallError):
    """The connection was lost during the call, so whether it ran is unknown."""

    def response(self, server: str, *, writes: bool) -> ToolResponse:
        """Allow the model to repeat the call if the tool only reads."""
        lost = f"The connection to the MCP server {server} was lost during the call"
        if not writes:
            return fail(ErrorType.TRANSIENT, f"{lost}.", retryable=True)
        return fail(
            ErrorType.TRANSIENT,
            f"{lost}; it may or may not have taken effect.",
            partial_side_effects=True,
            suggestion="Do not repeat the call. Tell the user, and check whether it took effect.",
            details={"outcome": "unknown"},
        )


class UnusableResultError(CallError):
    """The call ran, but its result violates the protocol or the tool's own schema."""

    def response(self, server: str, *, writes: bool) -> ToolResponse:
        """Report the unusable result, and possible side effects if the tool writes."""
        message = f"The MCP server {server} returned a result that violates the protocol or its own schema."
        return fail(ErrorType.PERMANENT, message, partial_side_effects=writes)


class InputRefusedError(CallError):
    """The server asked for input that the host does not provide."""

    def response(self, server: str, *, writes: bool) -> ToolResponse:
        """Say why the call cannot continue."""
        message = f"The MCP server {server} asked for input from the user or a model, which is not allowed."
        return fail(ErrorType.PERMANENT, message, partial_side_effects=writes)


class CallRefusedError(CallError):
    """The server answered with a protocol error; the message is the server's."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code

    def response(self, server: str, *, writes: bool) -> ToolResponse:
        """Return the server's message; only the error for invalid arguments means that nothing ran."""
        message = f"The MCP server {server} refused the call: {str(self)[:MAX_MESSAGE]}"
        if self.code == INVALID_PARAMS:
            return fail(ErrorType.VALIDATION, message, suggestion="Correct the arguments and call again.")
        return fail(ErrorType.PERMANENT, message, partial_side_effects=writes)
