"""The open questions of running calls, which the clients of these calls can answer.

A question is a record in the store, because a client without a handshake gets it as the result of one request
and answers it with another, which may reach any host. The call itself waits on the host that runs it.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson
from jackfield.contract.context import UNANSWERED, ModelAnswer, ModelRequest, UserAnswer, UserQuestion
from jackfield.session.session import Session
from jackfield.store import StoreUnavailableError
from jackfield_sessions.manager import SessionManager

from jackfield_mcp_server.client_questions import (
    Json,
    Kind,
    form_request,
    is_usable,
    kind_of,
    model_answer,
    text_request,
    user_answer,
)
from jackfield_mcp_server.host_messages import HostMessages

MAX_OPEN = 4
"""The maximum number of open questions per call; further questions stay unanswered."""

MAX_BYTES = 65536
"""Maximum size of a question; a larger one stays unanswered."""

CANCELLED = "the client cancelled it"

_CallKey = tuple[str, str]
"""The session and the id of a call."""


@dataclass
class _OpenQuestion:
    request: Json
    response: asyncio.Future[Any]


@dataclass
class _RunningCall:
    """A call that a client's request waits for, or waited for until the client got a question."""

    session: Session
    kinds: set[Kind]
    missing: set[Kind] = field(default_factory=set)
    """The kinds of questions that the tool asked and the client cannot answer."""
    questions: dict[str, _OpenQuestion] = field(default_factory=dict)
    users: int = 0


class CallQuestions:
    """The questions of the calls that run on this host, and of the calls that requests here wait for."""

    def __init__(self, sessions: SessionManager, messages: HostMessages) -> None:
        self._orchestrator = sessions.runtime.orchestrator
        self._store = sessions.runtime.store
        self._stopping = sessions.stopping
        self._messages = messages
        self._calls: dict[_CallKey, _RunningCall] = {}
        self._watchers: dict[_CallKey, set[asyncio.Event]] = {}
        messages.on("question", lambda message: self._wake((message["session"], message["call"])))
        messages.on("answer", self._receive)
        messages.on("cancel_call", self._cancel)

    # The call's side.

    def connect(self, session: Session) -> None:
        """Let the calls of a client's session ask the client."""
        session.ask_user = partial(self._ask_user, session.id)
        session.ask_model = partial(self._ask_model, session.id)

    @contextmanager
    def running(self, session: Session, call_id: str, kinds: frozenset[Kind]) -> Iterator[_RunningCall]:
        """Accept questions from a call whose client can answer these kinds."""
        key = session.id, call_id
        call = self._calls.setdefault(key, _RunningCall(session, set()))
        call.kinds |= kinds
        call.users += 1
        try:
            yield call
        finally:
            call.users -= 1
            if not call.users:
                del self._calls[key]

    async def _ask_user(self, session_id: str, question: UserQuestion) -> UserAnswer:
        request = form_request(question)
        if request is None:
            return UNANSWERED
        response = await self._ask((session_id, question.call_id or ""), request, question.seconds)
        return user_answer(request, response) or UNANSWERED

    async def _ask_model(
        self, session_id: str, request: ModelRequest, call_id: str | None
    ) -> ModelAnswer | None:
        asked = self._ask((session_id, call_id or ""), text_request(request), request.seconds)
        return model_answer(await asked)

    async def _ask(self, key: _CallKey, request: Json, seconds: float) -> Any:
        """Return the client's response; None if there is none in time."""
        call, value = self._calls.get(key), orjson.dumps(request)
        if call is None or len(call.questions) >= MAX_OPEN or len(value) > MAX_BYTES:
            return None
        if kind_of(request) not in call.kinds:
            call.missing.add(kind_of(request))
            return None
        question_id = secrets.token_hex(16)
        question = _OpenQuestion(request, asyncio.get_running_loop().create_future())
        call.questions[question_id] = question
        record = f"{_prefix(key)}{question_id}"
        try:
            await self._store.put(record, value, ttl=seconds)
            if not self._wake(key):
                session_id, call_id = key
                await self._messages.send("question", session=session_id, call=call_id)
            return await self._response(question, seconds)
        except StoreUnavailableError:
            return None
        finally:
            del call.questions[question_id]
            with suppress(StoreUnavailableError):
                await self._store.delete(record)

    async def _response(self, question: _OpenQuestion, seconds: float) -> Any:
        """Wait for the response, until the time is up or the host stops."""
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait(
                {question.response, stopping}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            stopping.cancel()
        return question.response.result() if question.response.done() else None

    # The client's side.

    @contextmanager
    def watching(self, session_id: str, call_id: str) -> Iterator[asyncio.Event]:
        """Yield an event that is set when the call asks a question."""
        key, asked = (session_id, call_id), asyncio.Event()
        watchers = self._watchers.setdefault(key, set())
        watchers.add(asked)
        try:
            yield asked
        finally:
            watchers.discard(asked)
            if not watchers:
                self._watchers.pop(key, None)

    async def open(self, session_id: str, call_id: str) -> dict[str, Json]:
        """Return the open questions of a call by id, whichever host runs it."""
        key = session_id, call_id
        call = self._calls.get(key)
        if call is not None and call.questions:
            waiting = call.questions.items()
            return {name: each.request for name, each in waiting if not each.response.done()}
        prefix, found = _prefix(key), {}
        for record in await self._store.keys(prefix):
            value = await self._store.get(record)
            if value is not None:
                found[record.removeprefix(prefix)] = orjson.loads(value)
        return found

    async def answer(self, session_id: str, call_id: str, question_id: str, response: Json | None) -> None:
        """Answer a question, whichever host it is open on; None means that the client gives no answer.

        A response that does not answer the question leaves it open.
        """
        key = session_id, call_id
        record = f"{_prefix(key)}{question_id}"
        value = await self._store.get(record)
        if value is None or (response is not None and not is_usable(orjson.loads(value), response)):
            return
        # No other request may answer the question now, even if the call has not received the answer yet.
        await self._store.delete(record)
        if not self._settle(key, question_id, response):
            await self._messages.send(
                "answer", session=session_id, call=call_id, question=question_id, response=response
            )

    def cancel(self, session: Session, call_id: str, *, may_run_elsewhere: bool) -> None:
        """Stop a call if it only reads; if it may run on another host, tell the other hosts."""
        runs_here = any(call.call_id == call_id for call in self._orchestrator.running(session))
        self._orchestrator.interrupt(session, CANCELLED, {call_id})
        if may_run_elsewhere and not runs_here:
            self._messages.send_soon("cancel_call", session=session.id, call=call_id)

    # Messages from other hosts.

    def _cancel(self, message: Json) -> None:
        call = self._calls.get((message["session"], message["call"]))
        if call is not None:
            self._orchestrator.interrupt(call.session, CANCELLED, {message["call"]})

    def _receive(self, message: Json) -> None:
        self._settle((message["session"], message["call"]), message["question"], message["response"])

    def _settle(self, key: _CallKey, question_id: str, response: Json | None) -> bool:
        call = self._calls.get(key)
        question = call.questions.get(question_id) if call is not None else None
        if question is None:
            return False
        if not question.response.done():
            question.response.set_result(response)
        return True

    def _wake(self, key: _CallKey) -> bool:
        """Wake the requests that wait for a call on this host; return whether there are any."""
        watchers = self._watchers.get(key, ())
        for asked in watchers:
            asked.set()
        return bool(watchers)


def _prefix(key: _CallKey) -> str:
    session_id, call_id = key
    return f"mcp/question/{session_id}/{call_id}/"
