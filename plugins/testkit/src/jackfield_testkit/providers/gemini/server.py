"""The server: Gemini's paths, each played by a script."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp
from starlette.websockets import WebSocket

from jackfield_testkit.providers.gemini.certificate import certificate
from jackfield_testkit.providers.gemini.live_line import LiveLine
from jackfield_testkit.providers.gemini.live_model import LiveHabits, LiveModel
from jackfield_testkit.providers.gemini.text_exchange import TextExchange
from jackfield_testkit.providers.gemini.text_model import TextModel
from jackfield_testkit.providers.gemini.violations import Violations
from jackfield_testkit.providers.gemini.wording import camel, refusal_body
from jackfield_testkit.providers.hosting import HOST, hosting
from jackfield_testkit.providers.model import Refusal, Script, ScriptedModel

_LIVE = "/ws/google.ai.generativelanguage.{version}.GenerativeService.BidiGenerateContent"
_NO_KEY = Refusal(403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers.")


class GeminiServer:
    """`async with GeminiServer(script) as server:` and a client with `server.base_url` and `server.ca_file`.

    The n-th connection or conversation plays the n-th script; later ones play the last again. What a script
    raised, and what the client did against the protocol, is raised when the block ends.
    """

    def __init__(
        self,
        *scripts: Script,
        refusals: Sequence[Refusal] = (),
        habits: LiveHabits | None = None,
        split: int = 0,
        delay: float = 0.0,
        port: int = 0,
        tls: bool = True,
    ) -> None:
        self.models: list[ScriptedModel] = []
        self.base_url = ""
        self.ca_file: str | None = None
        """What a client has to trust; None without TLS, over which the SDK speaks text alone."""
        self.violations = Violations()
        self._scripts = scripts
        self._refusals = list(refusals)
        self._habits = habits or LiveHabits()
        self._split, self._delay, self._port, self._tls = split, delay, port, tls
        self._handles: dict[str, LiveModel] = {}
        self._playing: dict[int, asyncio.Task[None]] = {}
        self._failures: list[Exception] = []
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Self:
        shown = None
        if self._tls:
            made = self._open.enter_context(certificate(HOST))
            shown, self.ca_file = made.shown, str(made.trusted)
        serving = hosting(
            self._app(), certificate=shown, port=self._port, split=self._split, delay=self._delay
        )
        hosted = await self._open.enter_async_context(serving)
        self.base_url = f"{'https' if self._tls else 'http'}://{HOST}:{hosted.port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._playing.values():
            task.cancel()
        await asyncio.gather(*self._playing.values(), return_exceptions=True)
        await self._open.aclose()
        if error is None:
            if self._failures:
                raise self._failures[0]
            self.violations.check()

    def _app(self) -> Starlette:
        return Starlette(
            routes=[
                WebSocketRoute(_LIVE, self._live),
                # A base URL that ends with a slash gives the SDK this path.
                WebSocketRoute(f"/{_LIVE}", self._live),
                Route("/{version}/models/{call}", self._text, methods=["POST"]),
            ]
        )

    async def _live(self, socket: WebSocket) -> None:
        if refusal := self._refusal(socket.headers):
            await socket.send_denial_response(JSONResponse(refusal_body(refusal), refusal.status))
            return
        await socket.accept()
        line = LiveLine(socket)
        model = await self._set_up(line)
        if model is None:
            return
        playing = self._play(model)
        while (message := await line.receive()) is not None:
            await model.take(message)
        playing.cancel()

    async def _set_up(self, line: LiveLine) -> LiveModel | None:
        first = await line.receive()
        setup = first.get("setup") if first else None
        if not setup or not str(setup.get("model", "")).startswith("models/"):
            self.violations.note("the first message is a setup with a model")
            await line.close(1007, "Request contains an invalid argument.")
            return None
        handle = (setup.get("sessionResumption") or {}).get("handle")
        if handle and handle not in self._handles:
            await line.close(1008, "BidiGenerateContent session not found")
            return None
        model = LiveModel(
            setup,
            line.send,
            line.close,
            violations=self.violations,
            habits=self._habits,
            handle=self._new_handle,
        )
        model.resumed = self._handles.get(handle) if handle else None
        await line.send({"setupComplete": {}})
        await model.updates(resumable=True)
        return model

    def _new_handle(self, model: LiveModel) -> str:
        handle = f"handle-{len(self._handles) + 1}"
        self._handles[handle] = model
        return handle

    async def _text(self, request: Request) -> ASGIApp:
        model, _, method = request.path_params["call"].partition(":")
        if refusal := self._refusal(request.headers):
            return JSONResponse(refusal_body(refusal), refusal.status)
        if method not in ("generateContent", "streamGenerateContent"):
            return JSONResponse(refusal_body(Refusal(404, message="Method not found.")), 404)
        asked = camel(orjson.loads(await request.body()))
        exchange = TextExchange(model, asked, streamed=method == "streamGenerateContent")
        self._conversation(exchange).take(exchange)
        return exchange

    def _conversation(self, exchange: TextExchange) -> TextModel:
        """The conversation that a request repeats and adds to; else a new one."""
        for model in reversed(self.models):
            if isinstance(model, TextModel) and not self._playing[id(model)].done():
                before = model.exchanges[-1].contents
                if exchange.contents[: len(before)] == before:
                    return model
        model = TextModel(self.violations, call_ids=self._habits.call_ids)
        self._play(model)
        return model

    def _refusal(self, headers: Mapping[str, str]) -> Refusal | None:
        if not headers.get("x-goog-api-key"):
            return _NO_KEY
        return self._refusals.pop(0) if self._refusals else None

    def _play(self, model: ScriptedModel) -> asyncio.Task[None]:
        script = self._scripts[min(len(self.models), len(self._scripts) - 1)]
        self.models.append(model)
        task = self._playing[id(model)] = asyncio.create_task(self._played(script, model))
        return task

    async def _played(self, script: Script, model: Any) -> None:
        try:
            await script(model)
        except Exception as error:  # noqa: BLE001 - raised again when the server is left
            self._failures.append(error)
            await model.closes(1011, "the script failed")
        if isinstance(model, TextModel):
            model.ends()
