"""Questions of running calls to the user: each is a form whose values go to the caller.

They are not part of the checkpoint, because the call that asks ends with its process. The next owner of the
session closes the forms that are open in the event log.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson
from jackfield.contract.context import UNANSWERED, UserAnswer, UserQuestion
from jackfield.protocol.codec import event_fields
from jackfield.protocol.messages import FormClosed, FormRequest
from jackfield.registry.arguments import Arguments
from jackfield.session.session import Session

from jackfield_sessions.forms import Forms, encode

MAX_OPEN = 4
"""The maximum number of open questions of a session; further ones stay unanswered."""


class _OpenQuestion(NamedTuple):
    arguments: Arguments
    answer: asyncio.Future[UserAnswer]


def form_defaults(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the initial values of the form."""
    fields = parameters.get("properties") or {}
    return {
        name: field["default"]
        for name, field in fields.items()
        if isinstance(field, Mapping) and "default" in field
    }


class Questions:
    """The open questions of one session."""

    def __init__(self, session: Session, forms: Forms) -> None:
        """`forms` remembers closed questions, so that a late answer gets the right error."""
        self._session = session
        self._forms = forms
        self._open: dict[str, _OpenQuestion] = {}
        self._closed = False

    def __contains__(self, form_id: str) -> bool:
        return form_id in self._open

    async def ask(self, question: UserQuestion) -> UserAnswer:
        """Show the form, and wait for the user, the time limit or the end of the session."""
        if self._closed or len(self._open) >= MAX_OPEN:
            return UNANSWERED
        form_id, answer = secrets.token_hex(8), asyncio.get_running_loop().create_future()
        self._open[form_id] = _OpenQuestion(Arguments(question.parameters), answer)
        form = FormRequest(
            form_id=form_id,
            tool=question.tool_id,
            values=form_defaults(question.parameters),
            description=question.message,
            parameters=dict(question.parameters),
            asked_by=question.asked_by,
            call_id=question.call_id,
        )
        self._session.publish(*event_fields(form))
        given = UNANSWERED
        try:
            async with asyncio.timeout(question.seconds):
                given = await answer
        except TimeoutError:
            pass
        finally:
            del self._open[form_id]
            submitted = given.outcome == "submitted"
            self._forms.remember(form_id, submitted)
            # Without the values: they are only for the caller, and the event log stores whatever it gets.
            self._session.publish(*event_fields(FormClosed(form_id=form_id, submitted=submitted)))
        return given

    def submit(self, form_id: str, values: Mapping[str, Any]) -> None:
        """Answer a question; raise `FormError` if the values do not fit its schema."""
        question = self._open[form_id]
        text = encode(form_id, values, question.arguments)
        self._settle(question, UserAnswer("submitted", orjson.loads(text)))

    def dismiss(self, form_id: str) -> None:
        """Record that the user does not want to answer."""
        self._settle(self._open[form_id], UserAnswer("dismissed"))

    def close(self) -> None:
        """Leave all questions unanswered, because the session ends in this process."""
        self._closed = True
        for question in self._open.values():
            self._settle(question, UNANSWERED)

    def _settle(self, question: _OpenQuestion, answer: UserAnswer) -> None:
        # A second answer may arrive before the call has taken the first one.
        if not question.answer.done():
            question.answer.set_result(answer)
