"""The scripted OpenAI server: the paths of OpenAI's API, each played by a script."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp
from starlette.websockets import WebSocket, WebSocketDisconnect

from jackfield_scripted.openai.chat import ChatConversations, ChatModel, DeltaStyle
from jackfield_scripted.openai.errors import error_body
from jackfield_scripted.openai.realtime import RealtimeModel
from jackfield_scripted.openai.realtime_response import RealtimeSocket
from jackfield_scripted.openai.realtime_session import RealtimeSession
from jackfield_scripted.openai.webrtc import SdpAnswer, WebRtcCalls
from jackfield_scripted.script import Refusal, Script, ScriptedModel
from jackfield_scripted.server import ScriptedServer, Violations

_NO_KEY = Refusal(401, "invalid_api_key", "You didn't provide an API key.")
_CROSSING = frozenset({"response_cancel_not_active"})
"""Errors that a correct client can cause if its message crosses one from the server."""


class OpenAIServer(ScriptedServer):
    """Use `async with OpenAIServer(script) as server:`, and a client with `base_url=server.base_url`.

    The n-th conversation or connection plays the n-th script; later ones play the last. When the block ends,
    it raises the first error from a script or, if there is none, the client's protocol violations.
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
        answer: SdpAnswer | None = None,
    ) -> None:
        violations = Violations(_CROSSING | set(allow))
        super().__init__(scripts, refusals, violations, split=split, delay=delay, port=port)
        self.requests: list[Mapping[str, Any]] = []
        """Every chat request, rejected ones included."""
        self.calls = WebRtcCalls(answer)
        self._deltas = deltas
        self._conversations = ChatConversations(self._start_chat, self.violations)

    def _path(self) -> str:
        return "/v1"

    def _app(self) -> ASGIApp:
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
            return _error_response(refusal)
        return self._conversations.receive(body)

    def _guarded(
        self, respond: Callable[[Request], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def guarded(request: Request) -> Response:
            refusal = self._refusal(request.headers)
            return _error_response(refusal) if refusal else await respond(request)

        return guarded

    async def _realtime(self, websocket: WebSocket) -> None:
        call_id, model = websocket.query_params.get("call_id"), websocket.query_params.get("model")
        refusal = self._refusal(websocket.headers)
        if refusal is None and bool(call_id) == bool(model):
            refusal = Refusal(400, "missing_model", "You must provide a model, or the call to join.")
        if refusal is None and call_id and call_id not in self.calls.opened:
            refusal = Refusal(404, "call_id_not_found", "No session found for that call_id.")
        if refusal:
            await websocket.send_denial_response(_error_response(refusal))
            return
        await websocket.accept()
        socket = RealtimeSocket(websocket, self.violations)
        config = self.calls.opened[call_id].session if call_id else {"model": model}
        session = RealtimeSession(socket, config, webrtc=bool(call_id))
        if call_id:
            self.calls.opened[call_id].sidebands.append(socket)
        await socket.send("session.created", session=session.config)
        playing = self._play(RealtimeModel(session))
        try:
            await _read(websocket, session)
        finally:
            socket.closed = True
            playing.cancel()

    def _refusal(self, headers: Mapping[str, str]) -> Refusal | None:
        if not headers.get("authorization", "").startswith("Bearer "):
            return _NO_KEY
        return self._next_refusal()

    def _start_chat(self) -> ChatModel:
        model = ChatModel(self._deltas)
        self._play(model)
        return model

    async def _on_error(self, model: ScriptedModel) -> None:
        if isinstance(model, RealtimeModel):
            await model.closes(1011, "the script failed")

    def _on_end(self, model: ScriptedModel) -> None:
        if isinstance(model, ChatModel):
            self._conversations.end(model)


async def _read(websocket: WebSocket, session: RealtimeSession) -> None:
    while True:
        try:
            message = await websocket.receive_json()
        except (WebSocketDisconnect, RuntimeError):
            return
        except (KeyError, ValueError):
            await session.socket.reject("invalid_event", "a client event is a JSON object in a text frame")
            continue
        await session.receive(message)


def _error_response(refusal: Refusal) -> Response:
    headers = {} if refusal.retry_after is None else {"retry-after": f"{refusal.retry_after:g}"}
    code = refusal.code or f"status_{refusal.status}"
    kind = "server_error" if refusal.status >= 500 else ""
    return JSONResponse({"error": error_body(code, refusal.message, kind=kind)}, refusal.status, headers)
