"""Passes a running call's questions to its client, and the client's answers back to the call."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import mcp_types as t
from jackfield.session.session import Session
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from pydantic import ValidationError

from jackfield_mcp_server.call_questions import CallQuestions
from jackfield_mcp_server.caller import Context
from jackfield_mcp_server.client_questions import Json, Kind, answerable, kind_of
from jackfield_mcp_server.elicitation import RequestState
from jackfield_mcp_server.results import Result

_Done = TypeVar("_Done")


class QuestionRounds:
    """The questions of one call during one of its client's requests.

    A client with a handshake is asked while its request waits. Every other client gets the questions as the
    result, while the call continues, and sends the answers with its next request.
    """

    def __init__(
        self, questions: CallQuestions, ctx: Context, session: Session, call_id: str, *, modern: bool
    ) -> None:
        self._questions = questions
        self._ctx = ctx
        self._session = session
        self._call_id = call_id
        self._modern = modern
        self._kinds = answerable(ctx)
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._missing: set[Kind] = set()

    @property
    def missing_capabilities(self) -> Json:
        """The capabilities that the tool's questions need and the client does not have."""
        return {kind: {} for kind in sorted(self._missing)}

    async def take_answers(self, state: RequestState, responses: Any) -> None:
        """Pass the answers in a request to the call; a question without an answer stays open."""
        for number, question_id in enumerate(state.questions, 1):
            given = (responses or {}).get(_name(number))
            if given is not None:
                response = given.model_dump(mode="json", by_alias=True, exclude_none=True)
                await self._questions.answer(self._session.id, self._call_id, question_id, response)

    async def attend(self, work: Coroutine[Any, Any, _Done], *, may_be_running: bool) -> _Done | Result:
        """Run a call; return its outcome, or the questions that the client has to answer."""
        if not self._kinds:
            return await self._accepting_questions(work)
        with self._questions.watching(self._session.id, self._call_id) as asked:
            if may_be_running:
                asked.set()
            running = asyncio.create_task(self._accepting_questions(work))
            is_kept = False
            try:
                while await _is_first(asked, running):
                    asked.clear()
                    found = await self._open()
                    if self._modern and found:
                        is_kept = True
                        # Nobody waits for this outcome: the next request gets it from the store.
                        running.add_done_callback(lambda done: done.cancelled() or done.exception())
                        return self._input_required(found)
                    for question_id, request in found.items():
                        if question_id not in self._asking:
                            asking = asyncio.create_task(self._ask(question_id, request))
                            self._asking[question_id] = asking
                return await running
            finally:
                if not is_kept:
                    running.cancel()
                for asking in self._asking.values():
                    asking.cancel()

    async def _accepting_questions(self, work: Coroutine[Any, Any, _Done]) -> _Done:
        with self._questions.running(self._session, self._call_id, self._kinds) as call:
            try:
                return await work
            finally:
                self._missing |= call.missing

    async def _open(self) -> dict[str, Json]:
        found = await self._questions.open(self._session.id, self._call_id)
        return {name: request for name, request in found.items() if kind_of(request) in self._kinds}

    def _input_required(self, found: dict[str, Json]) -> Result:
        requests = {_name(number): request for number, request in enumerate(found.values(), 1)}
        state = RequestState(self._call_id, questions=tuple(found))
        return {"resultType": "input_required", "inputRequests": requests, "requestState": state.encode()}

    async def _ask(self, question_id: str, request: Json) -> None:
        """Ask the client on its request's stream; without a valid answer, the question stays unanswered."""
        metadata = ServerMessageMetadata(related_request_id=self._ctx.request_id)
        asked: t.ElicitRequest | t.CreateMessageRequest
        expected: type[t.ElicitResult | t.CreateMessageResult]
        if kind_of(request) == "elicitation":
            asked, expected = t.ElicitRequest.model_validate(request), t.ElicitResult
        else:
            asked, expected = t.CreateMessageRequest.model_validate(request), t.CreateMessageResult
        response = None
        try:
            given = await self._ctx.session.send_request(asked, expected, metadata=metadata)
            response = given.model_dump(mode="json", by_alias=True, exclude_none=True)
        except (MCPError, ValidationError):
            pass
        session_id = self._session.id
        await self._questions.answer(session_id, self._call_id, question_id, response)
        # If the response is not a valid answer, this closes the question.
        await self._questions.answer(session_id, self._call_id, question_id, None)


def _name(number: int) -> str:
    return f"question-{number}"


async def _is_first(asked: asyncio.Event, running: asyncio.Task[Any]) -> bool:
    """Wait for a question or the end of a call; return whether there is a question."""
    waiting = asyncio.create_task(asked.wait())
    try:
        await asyncio.wait({waiting, running}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
    return not running.done()
