"""Requests that a server sends during a call: for answers from the user, and for text from the model."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from jackfield.contract.context import ModelAnswer, ModelRequest, UserAnswer

from jackfield_mcp_tools.model_requests import (
    APPROVAL,
    APPROVAL_SCHEMA,
    UnsuitableRequestError,
    message_result,
    model_request,
    shown_request,
)
from jackfield_mcp_tools.settings import ServerSettings
from jackfield_mcp_tools.user_questions import UnsuitableQuestionError, form_of

if TYPE_CHECKING:
    import mcp_types

MAX_QUESTIONS = 5
"""The maximum number of questions that a server may ask the user during one call."""

MAX_ROUNDS = 10
"""The maximum number of times that a call is repeated with answers to the server's requests."""

REFUSED = -1
"""The error code for a sampling request that the user or the host refuses."""

_Answer = TypeVar("_Answer")


class CallContext(Protocol):
    """The part of `ToolContext` that a call needs."""

    async def progress(self, message: str, *, fraction: float | None = None) -> None:
        """Report progress."""

    async def ask_user(
        self, message: str, parameters: Mapping[str, Any], *, asked_by: str, seconds: float
    ) -> UserAnswer:
        """Ask the user."""

    async def ask_model(self, request: ModelRequest) -> ModelAnswer | None:
        """Ask the session's model."""

    def audit(self, event: str, **fields: Any) -> None:
        """Add a line to the audit record."""


class RefusedRequestError(Exception):
    """The host refuses a server's request; the message goes to the server."""


CALL: ContextVar[CallRequests | None] = ContextVar("mcp_call_requests", default=None)
"""The requests of the call whose HTTP response carried a server's request; the SDK passes it on."""


class CallRequests:
    """A server's requests during one call; when the call ends, the open ones are withdrawn."""

    def __init__(self, server: str, settings: ServerSettings, ctx: CallContext) -> None:
        self._server = server
        self._asked_by = f"the MCP server {server}"
        self._settings = settings
        self._ctx = ctx
        self._questions = self._texts = 0
        self._waiting: set[asyncio.Task[Any]] = set()
        self._ended = False

    async def elicit(self, params: mcp_types.ElicitRequestParams) -> mcp_types.ElicitResult:
        """Ask the user a server's question; decline a question that cannot be shown."""
        from mcp_types import ElicitRequestFormParams, ElicitResult

        if self._settings.elicitation != "ask":
            return ElicitResult(action="decline")
        self._questions += 1
        if self._questions > MAX_QUESTIONS or not isinstance(params, ElicitRequestFormParams):
            return ElicitResult(action="decline")
        try:
            message, schema = form_of(params.message, params.requested_schema)
        except UnsuitableQuestionError:
            return ElicitResult(action="decline")
        text = f"{self._asked_by[0].upper()}{self._asked_by[1:]} asks: {message}"
        given = await self._while_running(self._ask_user(text, schema))
        if given is None:
            return ElicitResult(action="cancel")
        if given.outcome != "submitted":
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content=dict(given.values))

    async def sample(self, params: mcp_types.CreateMessageRequestParams) -> mcp_types.CreateMessageResult:
        """Return text from the model; raise `RefusedRequestError` if settings or user do not allow it."""
        try:
            request = self._request(params)
            if self._settings.sampling == "ask":
                await self._approve(params, request)
            answer = await self._while_running(self._ctx.ask_model(request))
            if answer is None:
                raise RefusedRequestError("no model is available, or it did not answer")
        except RefusedRequestError as error:
            self._ctx.audit("mcp_sampling_refused", server=self._server, reason=str(error))
            raise
        self._ctx.audit("mcp_sampling", server=self._server, characters=len(answer.text))
        return message_result(answer)

    def _request(self, params: mcp_types.CreateMessageRequestParams) -> ModelRequest:
        if self._settings.sampling == "refuse":
            raise RefusedRequestError("this host does not allow sampling")
        self._texts += 1
        if self._texts > (most := self._settings.sampling_requests):
            noun = "request" if most == 1 else "requests"
            raise RefusedRequestError(f"a call can send at most {most} sampling {noun}")
        try:
            return model_request(params, self._settings)
        except UnsuitableRequestError as error:
            raise RefusedRequestError(str(error)) from None

    async def _approve(self, params: mcp_types.CreateMessageRequestParams, request: ModelRequest) -> None:
        text = shown_request(self._server, params, request)
        given = await self._while_running(self._ask_user(text, APPROVAL_SCHEMA))
        if given is None or given.outcome != "submitted" or given.values.get(APPROVAL) is not True:
            raise RefusedRequestError("the user did not allow the request")

    async def _ask_user(self, text: str, schema: Mapping[str, Any]) -> UserAnswer:
        seconds = self._settings.elicitation_timeout
        return await self._ctx.ask_user(text, schema, asked_by=self._asked_by, seconds=seconds)

    async def responses(
        self, requests: Mapping[str, mcp_types.InputRequest] | None
    ) -> dict[str, mcp_types.InputResponse] | None:
        """Answer the requests in a result, one after the other; return None if one cannot be answered."""
        from mcp_types import CreateMessageRequest, ElicitRequest

        if not requests or len(requests) > MAX_QUESTIONS:
            return None
        answers: dict[str, mcp_types.InputResponse] = {}
        for key, request in requests.items():
            if isinstance(request, ElicitRequest) and self._settings.elicitation == "ask":
                answers[key] = await self.elicit(request.params)
            elif isinstance(request, CreateMessageRequest):
                try:
                    answers[key] = await self.sample(request.params)
                except RefusedRequestError:
                    # The protocol has no answer for a refusal; without an answer, the call cannot continue.
                    return None
            else:
                return None
        return answers

    def end(self) -> None:
        """Withdraw the open requests, because the call has ended."""
        self._ended = True
        for task in self._waiting:
            task.cancel()

    async def _while_running(self, work: Coroutine[Any, Any, _Answer]) -> _Answer | None:
        """Return the result of `work`; None if the call ends first."""
        if self._ended:
            work.close()
            return None
        task = asyncio.create_task(work)
        self._waiting.add(task)
        try:
            await asyncio.wait({task})
        finally:
            self._waiting.discard(task)
            if not task.done():
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
        return None if task.cancelled() else task.result()
