"""Forms in which the user enters the arguments of a tool: the open ones, and how the others were closed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson
from jackfield.protocol.messages import ErrorMessage, FormFault
from jackfield.registry.arguments import Arguments
from jackfield.strict_json import StrictJsonError, parse_arguments
from jackfield.transport.protocol import Connection

CLOSED = 64
"""How many closed forms are remembered."""

LONGEST_VALUE = 200
"""The maximum length of one value in the transcript, in characters."""

MOST_FAULTS = 20


class Submission(NamedTuple):
    """A completed form: its tool, and the arguments as JSON."""

    tool_id: str
    arguments: str

    @property
    def values(self) -> dict[str, Any]:
        """Return the arguments."""
        values: dict[str, Any] = orjson.loads(self.arguments)
        return values

    @property
    def text(self) -> str:
        """Return the submission as text: `book_table: date 2026-11-20, time 19:30`."""
        parts = [f"{name} {_readable(value)}" for name, value in self.values.items()]
        return f"{self.tool_id}: {', '.join(parts)}" if parts else self.tool_id

    async def send(self, connection: Connection) -> None:
        """Send the form to the model; a connection without forms gets it as a message from the user."""
        send_form = getattr(connection, "send_form", None)
        if send_form is not None:
            await send_form(self.tool_id, self.values)
        else:
            await connection.send_text(
                f"Call {self.tool_id} with these arguments, which I entered in its form: {self.arguments}"
            )


class FormError(Exception):
    """A form could not be submitted or dismissed; `faults` says what is wrong with its values."""

    def __init__(
        self,
        form_id: str,
        code: str,
        message: str,
        suggestion: str,
        faults: Sequence[Mapping[str, str]] = (),
    ) -> None:
        super().__init__(message)
        self.form_id = form_id
        self.code = code
        self.message = message
        self.suggestion = suggestion
        self.faults = faults

    def to_message(self) -> ErrorMessage:
        """Return the error as the client gets it."""
        faults = tuple(FormFault(path=each["path"], message=each["message"]) for each in self.faults)
        return ErrorMessage(
            code=self.code,
            message=self.message,
            suggestion=self.suggestion,
            form_id=self.form_id,
            faults=faults or None,
        )


class Forms:
    """The forms of one session."""

    def __init__(
        self, open_forms: Mapping[str, str] | None = None, closed: Mapping[str, bool] | None = None
    ) -> None:
        self.open = dict(open_forms or {})
        """The tool of each form that waits for the user, by the form's id."""
        self.closed = dict(closed or {})
        """For each closed form, by its id: True if it was submitted. The oldest are forgotten."""

    def add(self, form_id: str, tool_id: str) -> list[str]:
        """Open a form; return the ids of older forms of the same tool, which it replaces."""
        replaced = [each for each, tool in self.open.items() if tool == tool_id and each != form_id]
        for each in replaced:
            self._close(each, submitted=False)
        self.closed.pop(form_id, None)
        self.open[form_id] = tool_id
        return replaced

    def tool_of(self, form_id: str) -> str:
        """Return the tool of an open form; raise `FormError` if it is closed or unknown."""
        if form_id in self.closed:
            done = "submitted" if self.closed[form_id] else "dismissed or replaced"
            raise FormError(
                form_id,
                "already_closed",
                f"This form has already been {done}.",
                "Ask for it again if you need it.",
            )
        if form_id not in self.open:
            raise FormError(
                form_id,
                "unknown_form",
                "This session has no such form, or the form is older than 24 hours.",
                "Ask for it again if you need it.",
            )
        return self.open[form_id]

    def close(self, form_id: str, *, submitted: bool) -> str:
        """Close a form and return its tool."""
        tool_id = self.tool_of(form_id)
        self._close(form_id, submitted=submitted)
        return tool_id

    def reconcile(self, published: Mapping[str, str]) -> dict[str, bool]:
        """Drop open forms that the event log does not have; return forms that were closed without an event.

        The previous process may have died after its last save but before the event.
        """
        self.open = {form_id: tool for form_id, tool in self.open.items() if form_id in published}
        unpublished = {each: self.closed.get(each, False) for each in published if each not in self.open}
        for form_id, submitted in unpublished.items():
            self.remember(form_id, submitted)
        return unpublished

    def _close(self, form_id: str, *, submitted: bool) -> None:
        del self.open[form_id]
        self.remember(form_id, submitted)

    def remember(self, form_id: str, submitted: bool) -> None:
        """Remember how a form was closed."""
        self.closed[form_id] = submitted
        while len(self.closed) > CLOSED:
            del self.closed[next(iter(self.closed))]


def encode(form_id: str, values: Mapping[str, Any], arguments: Arguments) -> str:
    """Return the values of a form as JSON; raise `FormError` with every fault if they do not fit the schema.

    The call is validated again, like any other. This check comes before the form is closed, so that the user
    can correct the values.
    """
    text = json.dumps(dict(values), ensure_ascii=False, separators=(",", ":"))
    try:
        parsed, _ = parse_arguments(text)
        faults = [{"path": each.path, "message": each.message} for each in arguments.violations(parsed)]
    except StrictJsonError as error:
        faults = [{"path": each.where, "message": each.message} for each in error.faults]
    if faults:
        raise FormError(
            form_id,
            "invalid_values",
            "The values are not valid for this form.",
            "Correct them, then send the form again.",
            faults[:MOST_FAULTS],
        )
    return text


def _readable(value: Any) -> str:
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"
