"""The scripted Gemini server: the paths of Gemini's API, each played by a script."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import orjson
import trustme
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp
from starlette.websockets import WebSocket

from jackfield_scripted.gemini.live import GeminiOptions, LiveModel
from jackfield_scripted.gemini.live_socket import ScriptedLiveSocket
from jackfield_scripted.gemini.text import ContentRequest, TextModel
from jackfield_scripted.gemini.wire_format import refusal_body, to_camel_case
from jackfield_scripted.script import Refusal, Script, ScriptedModel
from jackfield_scripted.server import HOST, ScriptedServer, Violations

_LIVE = "/ws/google.ai.generativelanguage.{version}.GenerativeService.BidiGenerateContent"
_NO_KEY = Refusal(403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers.")


class GeminiServer(ScriptedServer):
    """Use `async with GeminiServer(script) as server:`; the client needs `server.base_url` and `.ca_file`.

    The n-th connection or conversation plays the n-th script; later ones play the last. When the block ends,
    it raises the first error from a script or, if there is none, the client's protocol violations.
    """

    def __init__(
        self,
        *scripts: Script,
        refusals: Sequence[Refusal] = (),
        options: GeminiOptions | None = None,
        split: int = 0,
        delay: float = 0.0,
        port: int = 0,
        tls: bool = True,
    ) -> None:
        super().__init__(scripts, refusals, Violations(), split=split, delay=delay, port=port)
        self.ca_file: str | None = None
        """The certificate that a client has to trust; None without TLS, when the SDK supports only text."""
        self._options = options or GeminiOptions()
        self._tls = tls
        self._handles: dict[str, LiveModel] = {}

    def _create_certificate(self) -> Path | None:
        if not self._tls:
            return None
        certificate = self._open.enter_context(_temporary_certificate(HOST))
        self.ca_file = str(certificate.authority)
        return certificate.server

    def _path(self) -> str:
        return ""

    def _app(self) -> ASGIApp:
        return Starlette(
            routes=[
                WebSocketRoute(_LIVE, self._live),
                # With a base URL that ends with a slash, the SDK requests this path.
                WebSocketRoute(f"/{_LIVE}", self._live),
                Route("/{version}/models/{call}", self._text, methods=["POST"]),
            ]
        )

    async def _live(self, websocket: WebSocket) -> None:
        if refusal := self._refusal(websocket.headers):
            await websocket.send_denial_response(JSONResponse(refusal_body(refusal), refusal.status))
            return
        await websocket.accept()
        socket = ScriptedLiveSocket(websocket)
        model = await self._set_up(socket)
        if model is None:
            return
        playing = self._play(model)
        while (message := await socket.receive()) is not None:
            await model.receive(message)
        playing.cancel()

    async def _set_up(self, socket: ScriptedLiveSocket) -> LiveModel | None:
        first = await socket.receive()
        setup = first.get("setup") if first else None
        if not setup or not str(setup.get("model", "")).startswith("models/"):
            self.violations.add("the first message has to be a setup with a model")
            await socket.close(1007, "Request contains an invalid argument.")
            return None
        handle = (setup.get("sessionResumption") or {}).get("handle")
        if handle and handle not in self._handles:
            await socket.close(1008, "BidiGenerateContent session not found")
            return None
        model = LiveModel(
            setup,
            socket.send,
            socket.close,
            violations=self.violations,
            options=self._options,
            handle=self._new_handle,
        )
        model.resumed = self._handles.get(handle) if handle else None
        await socket.send({"setupComplete": {}})
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
        body = to_camel_case(orjson.loads(await request.body()))
        pending = ContentRequest(model, body, streamed=method == "streamGenerateContent")
        self._conversation(pending).receive(pending)
        return pending

    def _conversation(self, request: ContentRequest) -> TextModel:
        """Return the conversation that a request continues, or start a new one."""
        for model in reversed(self.models):
            if isinstance(model, TextModel) and not self._playing[id(model)].done():
                before = model.requests[-1].contents
                if request.contents[: len(before)] == before:
                    return model
        model = TextModel(self.violations, call_ids=self._options.call_ids)
        self._play(model)
        return model

    def _refusal(self, headers: Mapping[str, str]) -> Refusal | None:
        if not headers.get("x-goog-api-key"):
            return _NO_KEY
        return self._next_refusal()

    async def _on_error(self, model: ScriptedModel) -> None:
        await model.closes(1011, "the script failed")

    def _on_end(self, model: ScriptedModel) -> None:
        if isinstance(model, TextModel):
            model.finish()


class _Certificate(NamedTuple):
    server: Path
    authority: Path
    """The file that a client has to trust."""


@contextmanager
def _temporary_certificate(host: str) -> Iterator[_Certificate]:
    """Create a certificate for the loopback: the SDK uses Live over TLS only, and verifies the server."""
    with tempfile.TemporaryDirectory(prefix="jackfield-gemini-") as folder:
        authority = trustme.CA()
        files = _Certificate(Path(folder) / "server.pem", Path(folder) / "ca.pem")
        authority.issue_cert(host).private_key_and_cert_chain_pem.write_to_path(files.server)
        authority.cert_pem.write_to_path(files.authority)
        yield files
