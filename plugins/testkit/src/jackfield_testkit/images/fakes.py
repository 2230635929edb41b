"""Fakes for tests: PNG images, the capability `images` in memory, and a scripted image provider."""

from __future__ import annotations

import base64
import json
import secrets
import struct
import threading
import zlib
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

from jackfield import SessionView, ToolError
from jackfield_capability_types.images import ImageOrder, StoredImage

SIZES = {"square": (64, 64), "landscape": (96, 64), "portrait": (64, 96)}
_SHAPES = {
    "1024x1024": "square", "1536x1024": "landscape", "1024x1536": "portrait",
    "1:1": "square", "3:2": "landscape", "4:3": "landscape", "2:3": "portrait", "3:4": "portrait",
}  # fmt: skip


def png(width: int, height: int, colour: tuple[int, int, int] = (20, 90, 160)) -> bytes:
    """Make a PNG file of one colour."""
    row = b"\x00" + bytes(colour) * width
    parts = (
        _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        _chunk(b"IDAT", zlib.compress(row * height)),
        _chunk(b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


class MemoryImages:
    """The capability `images` in memory: makes small PNG images and records the orders.

    With `refusal` it raises this error instead. `price` is the cost of one image.
    """

    def __init__(self, *, refusal: ToolError | None = None, price: float | None = 0.01) -> None:
        self.orders: list[ImageOrder] = []
        """The orders so far."""
        self._refusal = refusal
        self._price = price
        self._stored: dict[str, tuple[StoredImage, bytes]] = {}

    def for_session(self, session: SessionView) -> MemoryImages:  # noqa: ARG002 - the protocol's signature
        """Return itself: all sessions share the images."""
        return self

    def cost(self, order: ImageOrder) -> float | None:
        """Return the price times the count."""
        return None if self._price is None else self._price * order.count

    async def generate(self, order: ImageOrder) -> Sequence[StoredImage]:
        """Make images in the shape of the order."""
        self.orders.append(order)
        if self._refusal is not None:
            raise self._refusal
        return [self._make(order) for _ in range(order.count)]

    async def read(self, image_id: str) -> tuple[StoredImage, bytes] | None:
        """Return an image and its content."""
        return self._stored.get(image_id)

    async def close(self) -> None:
        """Do nothing."""

    def _make(self, order: ImageOrder) -> StoredImage:
        width, height = SIZES[order.shape]
        content = png(width, height)
        image_id = secrets.token_hex(16)
        image = StoredImage(
            image_id, "image/png", width, height, len(content), order.prompt, "memory", "one-colour"
        )
        self._stored[image_id] = image, content
        return image


class ImageRequest(NamedTuple):
    """A request to the server."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


class _Response(NamedTuple):
    status: int
    body: bytes
    headers: Mapping[str, str]


class ImageServer:
    """A server on a real socket that speaks OpenAI's and Google's image protocols, for tests.

    `with ImageServer() as server: ... base_url = server.openai_url`. It draws small images of one colour
    unless `respond_with` sets the next response.
    """

    def __init__(self) -> None:
        self.requests: list[ImageRequest] = []
        """The requests so far."""
        self.received = threading.Event()
        """Set at the first request."""
        self.content: bytes | None = None
        """The content of every image, if set."""
        self.encoded: str | None = None
        """The text that replaces the base64 data, if set."""
        self._responses: list[_Response] = []
        self._stalled = False
        self._released = threading.Event()
        server = self

        class ImageRequestHandler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                server._serve(self)

            def log_message(self, *_: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), ImageRequestHandler)
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
        """The `base_url` for Google's SDK."""
        host, port = self._http.server_address[:2]
        return f"http://{host!s}:{port}"

    @property
    def openai_url(self) -> str:
        """The `base_url` for OpenAI's SDK."""
        return f"{self.url}/v1"

    def respond_with(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        """Set the response to the next request; `body` is a JSON value or bytes."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self._responses.append(_Response(status, content, headers or {}))

    def stall(self) -> None:
        """Accept requests from now on without answering them."""
        self._stalled = True

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers.get("Content-Length", 0))) or b"{}")
        headers = {name.lower(): value for name, value in handler.headers.items()}
        request = ImageRequest(handler.path, headers, body)
        self.requests.append(request)
        self.received.set()
        if self._stalled:
            self._released.wait()
            return
        response = self._responses.pop(0) if self._responses else self._draw(request)
        handler.send_response(response.status)
        for name, value in {"Content-Type": "application/json", **response.headers}.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(response.body)))
        handler.end_headers()
        handler.wfile.write(response.body)

    def _draw(self, request: ImageRequest) -> _Response:
        body = request.body
        if request.path.endswith("/images/generations"):
            images = [{"b64_json": self._image(body.get("size"))} for _ in range(body.get("n", 1))]
            answer: dict[str, Any] = {"created": 1, "data": images}
        elif request.path.partition("?")[0].endswith(":predict"):
            options = body.get("parameters", {})
            image = {"mimeType": "image/png", "bytesBase64Encoded": self._image(options.get("aspectRatio"))}
            answer = {"predictions": [image] * options.get("sampleCount", 1)}
        else:
            options = body.get("generationConfig", {}).get("imageConfig", {})
            data = {"mimeType": "image/png", "data": self._image(options.get("aspectRatio"))}
            parts = [{"text": "Here it is."}, {"inlineData": data}]
            answer = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}
        return _Response(200, json.dumps(answer).encode(), {})

    def _image(self, size: Any) -> str:
        if self.encoded is not None:
            return self.encoded
        content = self.content if self.content is not None else png(*SIZES[_SHAPES.get(str(size), "square")])
        return base64.b64encode(content).decode()
