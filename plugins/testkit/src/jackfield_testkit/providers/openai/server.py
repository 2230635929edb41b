"""The server: the paths of OpenAI's API, each played by a script."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp
from starlette.websockets import WebSocket, WebSocketDisconnect

from jackfield_testkit.providers.hosting import HOST, Hosted, hosting
from jackfield_testkit.providers.model import Refusal, Script, ScriptedModel
from jackfield_testkit.providers.openai.browser_calls import BrowserCalls
from jackfield_testkit.providers.openai.chat import Conversations
from jackfield_testkit.providers.openai.chat_model import ChatModel, DeltaStyle
from jackfield_testkit.providers.openai.realtime_model import RealtimeModel
from jackfield_testkit.providers.openai.realtime_session import RealtimeSession
from jackfield_testkit.providers.openai.realtime_wire import RealtimeWire
from jackfield_testkit.providers.openai.violations import Violations, error_body

_NO_KEY = Refusal(401, "invalid_api_key", "You didn't provide an API key.")


class OpenAIServer:
    """`async with OpenAIServer(script) as server:` and a client with `base_url=server.base_url`.

    The n-th conversation or connection plays the n-th script; later ones play the last again.
    What a script raised, and what the client did against the protocol, is raised when the block ends.
    """

    def __init__(
        self,
        *scripts: Script,
        refusals: Sequence[Refusal] = (),
        allow: Collection[str] = (),
        split: int = 0,
        delay: float = 0.0,
        port: int = 0,
        deltas: DeltaStyle = "pieces",
        answer: Callable[[str], Awaitable[str]] | None = None,
    ) -> None:
        self.models: list[ScriptedModel] = []
        self.base_url = ""
        self.requests: list[Mapping[str, Any]] = []
        """Every chat request that was made, refused ones included."""
        self.calls = BrowserCalls(answer)
        self.violations = Violations(allow)
        self._scripts = scripts
        self._refusals = list(refusals)
        self._deltas = deltas
        self._conversations = Conversations(self._begin_chat, self.violations)
        self._tasks: set[asyncio.Task[None]] = set()
        self._failures: list[BaseException] = []
        self._open = AsyncExitStack()
        self._hosting = hosting(self._app(), port=port, split=split, delay=delay)
        self._host: Hosted | None = None

    async def __aenter__(self) -> Self:
        self._host = await self._open.enter_async_context(self._hosting)
        self.base_url = f"http://{HOST}:{self._host.port}/v1"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._open.aclose()
        if error is None:
            if self._failures:
                raise self._failures[0]
            self.violations.check()

    def drop(self) -> None:
        """Break every connection, as a network that fails does."""
        if self._host:
            self._host.drop()

    def _app(self) -> Starlette:
        calls = self.calls
        return Starlette(
            routes=[
                Route("/v1/models", self._models),
                Route("/v1/chat/completions", self._chat, methods=["POST"]),
                Route("/v1/realtime/client_secrets", self._guarded(calls.mint), methods=["POST"]),
                Route("/v1/realtime/calls", self._guarded(calls.open), methods=["POST"]),
                Route("/v1/realtime/calls/{call_id}/hangup", self._guarded(calls.hang_up), methods=["POST"]),
                WebSocketRoute("/v1/realtime", self._realtime),
            ]
        )

    async def _models(self, request: Request) -> Response:  # noqa: ARG002
        model = {"id": "gpt-scripted", "object": "model", "created": 0, "owned_by": "test"}
        return JSONResponse({"object": "list", "data": [model]})

    async def _chat(self, request: Request) -> ASGIApp:
        body = orjson.loads(await request.body())
        self.requests.append(body)
        if refusal := self._refusal(request.headers):
            return _turned_away(refusal)
        return self._conversations.take(body)

    def _guarded(
        self, answer: Callable[[Request], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def guarded(request: Request) -> Response:
            refusal = self._refusal(request.headers)
            return _turned_away(refusal) if refusal else await answer(request)

        return guarded

    async def _realtime(self, socket: WebSocket) -> None:
        call_id, model = socket.query_params.get("call_id"), socket.query_params.get("model")
        refusal = self._refusal(socket.headers)
        if refusal is None and bool(call_id) == bool(model):
            refusal = Refusal(400, "missing_model", "You must provide a model, or the call to join.")
        if refusal is None and call_id and call_id not in self.calls.opened:
            refusal = Refusal(404, "call_id_not_found", "No session found for that call_id.")
        if refusal:
            await socket.send_denial_response(_turned_away(refusal))
            return
        await socket.accept()
        wire = RealtimeWire(socket, self.violations)
        config = self.calls.opened[call_id].session if call_id else {"model": model}
        session = RealtimeSession(wire, config, webrtc=bool(call_id))
        if call_id:
            self.calls.opened[call_id].beside.append(wire)
        await wire.send("session.created", session=session.config)
        playing = self._play(RealtimeModel(session), wire)
        try:
            await _read(socket, session)
        finally:
            wire.closed = True
            playing.cancel()

    def _refusal(self, headers: Mapping[str, str]) -> Refusal | None:
        if not headers.get("authorization", "").startswith("Bearer "):
            return _NO_KEY
        return self._refusals.pop(0) if self._refusals else None

    def _begin_chat(self) -> ChatModel:
        model = ChatModel(self._deltas)
        self._play(model)
        return model

    def _play(self, model: ScriptedModel, wire: RealtimeWire | None = None) -> asyncio.Task[None]:
        script = self._scripts[min(len(self.models), len(self._scripts) - 1)]
        self.models.append(model)
        task = asyncio.create_task(self._played(script, model, wire))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _played(self, script: Script, model: ScriptedModel, wire: RealtimeWire | None) -> None:
        try:
            await script(model)
        except Exception as error:  # noqa: BLE001 - raised again when the server is left
            self._failures.append(error)
            if wire:
                await wire.close(1011, "the script failed")
        if isinstance(model, ChatModel):
            self._conversations.end(model)


async def _read(socket: WebSocket, session: RealtimeSession) -> None:
    while True:
        try:
            message = await socket.receive_json()
        except (WebSocketDisconnect, RuntimeError):
            return
        except (KeyError, ValueError):
            await session.wire.refuse("invalid_event", "a client event is a JSON object in a text frame")
            continue
        await session.take(message)


def _turned_away(refusal: Refusal) -> Response:
    headers = {} if refusal.retry_after is None else {"retry-after": f"{refusal.retry_after:g}"}
    code = refusal.code or f"status_{refusal.status}"
    kind = "server_error" if refusal.status >= 500 else ""
    return JSONResponse({"error": error_body(code, refusal.message, kind=kind)}, refusal.status, headers)
