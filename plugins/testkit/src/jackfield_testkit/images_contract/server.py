"""A provider of pictures for tests: a server on a real socket that speaks OpenAI's and Google's protocols.

It draws small pictures of one colour unless it is told what to answer next.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

from jackfield_testkit.images_contract.png import SIZES, png

_SHAPES = {
    "1024x1024": "square", "1536x1024": "landscape", "1024x1536": "portrait",
    "1:1": "square", "3:2": "landscape", "4:3": "landscape", "2:3": "portrait", "3:4": "portrait",
}  # fmt: skip


class ImageRequest(NamedTuple):
    """What was asked of the server."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


class _Reply(NamedTuple):
    status: int
    body: bytes
    headers: Mapping[str, str]


class ImageServer:
    """Use it as a context: `with ImageServer() as server: ... base_url = server.openai_url`."""

    def __init__(self) -> None:
        self.requests: list[ImageRequest] = []
        """What was asked, in order."""
        self.asked = threading.Event()
        """Set once something was asked."""
        self.content: bytes | None = None
        """What is sent instead of a picture, once it is set."""
        self.encoded: str | None = None
        """What is sent instead of base64, once it is set."""
        self._replies: list[_Reply] = []
        self._stalled = False
        self._released = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                server._serve(self)

            def log_message(self, *_: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._released.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """Where it listens; `base_url` for Google's package."""
        host, port = self._http.server_address[:2]
        return f"http://{host!s}:{port}"

    @property
    def openai_url(self) -> str:
        """`base_url` for OpenAI's package."""
        return f"{self.url}/v1"

    def answer(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        """What to answer to the next request; `body` is JSON, or bytes as they are."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self._replies.append(_Reply(status, content, headers or {}))

    def stall(self) -> None:
        """Take requests from now on and answer none of them."""
        self._stalled = True

    def _serve(self, exchange: BaseHTTPRequestHandler) -> None:
        body = json.loads(exchange.rfile.read(int(exchange.headers.get("Content-Length", 0))) or b"{}")
        headers = {name.lower(): value for name, value in exchange.headers.items()}
        request = ImageRequest(exchange.path, headers, body)
        self.requests.append(request)
        self.asked.set()
        if self._stalled:
            self._released.wait()
            return
        reply = self._replies.pop(0) if self._replies else self._drawn(request)
        exchange.send_response(reply.status)
        for name, value in {"Content-Type": "application/json", **reply.headers}.items():
            exchange.send_header(name, value)
        exchange.send_header("Content-Length", str(len(reply.body)))
        exchange.end_headers()
        exchange.wfile.write(reply.body)

    def _drawn(self, request: ImageRequest) -> _Reply:
        body = request.body
        if request.path.endswith("/images/generations"):
            drawn = [{"b64_json": self._picture(body.get("size"))} for _ in range(body.get("n", 1))]
            answer: dict[str, Any] = {"created": 1, "data": drawn}
        elif request.path.partition("?")[0].endswith(":predict"):
            asked = body.get("parameters", {})
            picture = {"mimeType": "image/png", "bytesBase64Encoded": self._picture(asked.get("aspectRatio"))}
            answer = {"predictions": [picture] * asked.get("sampleCount", 1)}
        else:
            asked = body.get("generationConfig", {}).get("imageConfig", {})
            data = {"mimeType": "image/png", "data": self._picture(asked.get("aspectRatio"))}
            parts = [{"text": "Here it is."}, {"inlineData": data}]
            answer = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}
        return _Reply(200, json.dumps(answer).encode(), {})

    def _picture(self, size: Any) -> str:
        if self.encoded is not None:
            return self.encoded
        content = self.content if self.content is not None else png(*SIZES[_SHAPES.get(str(size), "square")])
        return base64.b64encode(content).decode()
