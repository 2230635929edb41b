"""Security in a real server: handshakes, headers, size limits and the access log."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from http.client import HTTPResponse
from typing import Any

import httpx
import pytest
import uvicorn
from host_harness import token_protocol
from jackfield_host.logs import install_redaction
from jackfield_host.security.api_keys import digest, new_key
from jackfield_host.security.auth_errors import AuthError
from jackfield_host.security.authenticator import Authenticator, RequestInfo, accepted_subprotocol
from jackfield_host.security.headers import SecurityHeaders
from jackfield_host.security.limits import SizeLimits
from jackfield_host.settings import AccessSettings, KeySettings
from jackfield_host.uvicorn_protocols import BoundedHttpProtocol
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.types import Message, Receive, Scope, Send
from starlette.websockets import WebSocket
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

KEY = new_key("phone", "ada").key
GUARDED = Authenticator(AccessSettings(keys={"phone": KeySettings(digest(KEY), "ada")}))
OPEN = Authenticator(AccessSettings())

LIMIT = 1000


async def talk(websocket: WebSocket) -> None:
    authenticator = OPEN if websocket.url.path == "/open" else GUARDED
    try:
        identity = authenticator.authenticate(RequestInfo.from_scope(websocket.scope))
    except AuthError as refused:
        answer = JSONResponse({"error": refused.code}, refused.status, headers=refused.headers)
        await websocket.send_denial_response(answer)
        return
    await websocket.accept(accepted_subprotocol(websocket.headers))
    await websocket.send_text(identity.user)
    await websocket.close()


async def whoami(request: Request) -> Response:
    try:
        return JSONResponse({"user": GUARDED.authenticate(RequestInfo.from_scope(request.scope)).user})
    except AuthError as refused:
        return JSONResponse({"error": refused.code}, refused.status, headers=refused.headers)


async def size(request: Request) -> Response:
    return JSONResponse({"size": len(await request.body())})


async def careless(request: Request) -> Response:
    try:
        await request.body()
    except Exception:  # noqa: BLE001 - this is the carelessness
        return JSONResponse({"error": "swallowed"}, 400)
    return Response()


async def echo(_: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while True:
        part = (await receive())["body"]
        await send({"type": "http.response.body", "body": part, "more_body": True})


async def kept(_: Request) -> Response:
    return Response("x", headers={"Cache-Control": "max-age=60", "X-Content-Type-Options": "nosniff"})


class Quick(BoundedHttpProtocol):
    head_seconds = 0.3


class ShortHeadTimeout(BoundedHttpProtocol):
    """Long enough for a head on a busy machine, and short enough for the tests."""

    head_seconds = 1.0


APP = Starlette(
    routes=[
        Route("/whoami", whoami),
        Route("/size", size, methods=["POST"]),
        Route("/careless", careless, methods=["POST"]),
        Mount("/echo", echo),
        Route("/kept", kept),
        WebSocketRoute("/talk", talk),
        WebSocketRoute("/open", talk),
    ],
    middleware=[Middleware(SecurityHeaders), Middleware(SizeLimits, body=LIMIT, head=20_000, target=200)],
)


@contextlib.contextmanager
def serving(app: Any, **config: Any) -> Iterator[int]:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        server = uvicorn.Server(
            uvicorn.Config(app, ws="websockets-sansio", log_level="info", lifespan="off", **config)
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        try:
            while not server.started:
                thread.join(0.01)
                assert thread.is_alive()
            yield bound.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(30)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving(APP, http=BoundedHttpProtocol, log_config=None) as bound:
        yield bound


@pytest.fixture
def client(port: int) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as made:
        yield made


def hears(port: int, path: str = "/talk", **options: Any) -> tuple[str, str | None]:
    with connect(f"ws://127.0.0.1:{port}{path}", **options) as socket_:
        return str(socket_.recv(timeout=30)), socket_.subprotocol


def refused(port: int, path: str = "/talk", **options: Any) -> tuple[int, str]:
    with pytest.raises(InvalidStatus) as error:
        hears(port, path, **options)
    response = error.value.response
    return response.status_code, json.loads(response.body)["error"]


def test_a_handshake_with_a_token_in_the_header_is_accepted(port: int) -> None:
    assert hears(port, additional_headers={"Authorization": f"Bearer {KEY}"}) == ("ada", None)


def test_a_handshake_of_a_browser_is_accepted(port: int) -> None:
    offers = [Subprotocol("jackfield.1"), Subprotocol(token_protocol(KEY))]
    own = Origin(f"http://127.0.0.1:{port}")
    assert hears(port, subprotocols=offers, origin=own) == ("ada", "jackfield.1")
    assert refused(port, subprotocols=offers, origin=Origin("http://evil.example")) == (403, "foreign_origin")


def test_a_handshake_without_a_valid_token_is_refused(port: int) -> None:
    assert refused(port) == (401, "missing_token")
    assert refused(port, path=f"/talk?token={KEY}") == (401, "missing_token")
    assert refused(port, additional_headers={"Authorization": "Bearer jf_phone_guess"}) == (401, "bad_token")
    # The header and payload of an unsigned token.
    unsigned = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZGEifQ."
    assert refused(port, additional_headers={"Authorization": f"Bearer {unsigned}"}) == (401, "bad_token")


def test_a_handshake_with_a_host_without_tokens_requires_an_origin(port: int) -> None:
    assert refused(port, "/open") == (403, "missing_origin")
    assert refused(port, "/open", origin=Origin("null")) == (403, "foreign_origin")
    assert hears(port, "/open", origin=Origin(f"http://localhost:{port}")) == ("local", None)


def test_dns_rebinding_is_refused_by_the_server(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)) as raw:
        page = Origin(f"http://rebound.example:{port}")
        with pytest.raises(InvalidStatus) as error:
            connect(f"ws://rebound.example:{port}/open", sock=raw, origin=page)
    assert json.loads(error.value.response.body) == {"error": "foreign_host"}


def test_a_request_is_authenticated_and_a_refusal_says_how(client: httpx.Client) -> None:
    assert client.get("/whoami", headers={"Authorization": f"Bearer {KEY}"}).json() == {"user": "ada"}
    answer = client.get("/whoami")
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, 'Bearer realm="jackfield"')
    assert client.get("/whoami", headers={"Origin": "http://evil.example"}).status_code == 403


def test_every_response_has_the_security_headers(client: httpx.Client) -> None:
    for answer in (
        client.get("/whoami"),
        client.get("/nowhere"),
        client.post("/size", content=b"x" * (LIMIT + 1)),
    ):
        policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
        assert (policy["default-src"], policy["frame-ancestors"]) == ("'self'", "'none'")
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "microphone=(self)" in answer.headers["permissions-policy"]
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert answer.headers["cache-control"] == "no-store"
        assert "strict-transport-security" not in answer.headers


def test_headers_of_the_response_are_not_overridden(client: httpx.Client) -> None:
    answer = client.get("/kept")
    assert answer.headers.get_list("cache-control") == ["max-age=60"]
    assert answer.headers.get_list("x-content-type-options") == ["nosniff"]


def test_strict_transport_security_is_sent_only_over_https(client: httpx.Client) -> None:
    # uvicorn trusts a proxy on this machine.
    answer = client.get("/kept", headers={"X-Forwarded-Proto": "https"})
    assert answer.headers["strict-transport-security"] == "max-age=31536000"


def test_the_content_security_policy_can_be_extended() -> None:
    async def app(_: Scope, __: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        sent.append(message)

    policy = {"img-src": "'self' https://pictures.example"}
    asyncio.run(SecurityHeaders(app, policy)({"type": "http", "scheme": "http"}, receive, send))
    said = dict(sent[0]["headers"])[b"content-security-policy"].decode()
    assert "img-src 'self' https://pictures.example" in said
    assert "object-src 'none'" in said


def chunked(amount: int) -> Iterator[bytes]:
    for _ in range(amount // 100):
        yield b"x" * 100


@pytest.mark.parametrize("amount", [0, 900, LIMIT])
@pytest.mark.parametrize("form", [lambda amount: b"x" * amount, chunked], ids=["announced", "streamed"])
def test_a_body_within_its_limit_is_read(
    client: httpx.Client, form: Callable[[int], Any], amount: int
) -> None:
    assert client.post("/size", content=form(amount)).json() == {"size": amount}


@pytest.mark.parametrize("path", ["/size", "/careless", "/whoami"])
def test_a_body_with_a_large_content_length_is_refused(client: httpx.Client, path: str) -> None:
    answer = client.post(path, content=b"x" * (LIMIT + 1))
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "body_too_large")
    assert answer.headers["connection"] == "close"


@pytest.mark.parametrize("path", ["/size", "/careless"])
def test_a_streamed_body_above_the_limit_is_refused(
    client: httpx.Client, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    answer = client.post(path, content=chunked(LIMIT + 100))
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "body_too_large")
    # Another request has been served by now, so an error of the first one would be in the log.
    assert client.get("/kept").status_code == 200
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


def exchange(port: int, *sent: bytes) -> bytes:
    """Send bytes, and return the response until the server closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as raw:
        for part in sent:
            raw.sendall(part)
        heard = b""
        with contextlib.suppress(ConnectionResetError):
            while part := raw.recv(65536):
                heard += part
        return heard


def test_an_endless_body_is_not_read(port: int) -> None:
    head = b"POST /size HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
    assert exchange(port, head, b"2000\r\n" + b"x" * 0x2000 + b"\r\n").startswith(b"HTTP/1.1 413")


def test_a_response_that_has_started_is_aborted(port: int) -> None:
    head = b"POST /echo/ HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
    heard = exchange(port, head, b"2000\r\n" + b"x" * 0x2000 + b"\r\n")
    assert heard.startswith(b"HTTP/1.1 200")
    assert b"x" * LIMIT not in heard
    assert not heard.endswith(b"0\r\n\r\n")


def test_a_target_that_is_too_long_is_refused(client: httpx.Client, port: int) -> None:
    assert client.get("/whoami", params={"q": "x" * 300}).status_code == 414
    with pytest.raises(InvalidStatus) as error:
        hears(port, "/talk?q=" + "x" * 300)
    assert error.value.response.status_code == 414


def test_headers_that_are_too_large_are_refused(client: httpx.Client) -> None:
    assert client.get("/whoami", headers={"X-Filler": "x" * 20_000}).status_code == 431
    assert client.get("/whoami", headers={f"X-{n}": "x" * 100 for n in range(300)}).status_code == 431
    assert client.get("/kept", headers={"X-Filler": "x" * 15_000}).status_code == 200


@pytest.mark.parametrize("endless", [b"x-filler: ", b"", b"GET /"], ids=["header", "name", "target"])
def test_an_endless_head_is_refused_while_it_arrives(port: int, endless: bytes) -> None:
    start = endless if endless.startswith(b"GET") else b"GET / HTTP/1.1\r\nhost: localhost\r\n" + endless
    assert exchange(port, start + b"x" * 150_000).startswith(b"HTTP/1.1 431")


@pytest.mark.parametrize("begun", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nhost: localhost\r\n"])
def test_a_head_that_does_not_arrive_closes_the_connection(begun: bytes) -> None:
    with serving(APP, http=Quick, log_config=None) as port:
        assert exchange(port, begun).startswith(b"HTTP/1.1 408")


def test_a_connection_stays_open_for_the_next_request_and_for_a_long_body() -> None:
    head = b"POST /size HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\n\r\n"
    with (
        serving(APP, http=ShortHeadTimeout, log_config=None) as port,
        socket.create_connection(("127.0.0.1", port), timeout=30) as raw,
    ):
        for _ in range(2):
            raw.sendall(head)
            # Longer than the limit for a head; the body has no such limit.
            threading.Event().wait(1.2)
            raw.sendall(b"abc")
            answer = HTTPResponse(raw)
            answer.begin()
            assert (answer.status, json.loads(answer.read())) == (200, {"size": 3})


def test_a_websocket_is_not_subject_to_the_head_timeout() -> None:
    async def patient(websocket: WebSocket) -> None:
        await websocket.accept()
        await asyncio.sleep(1.2)
        await websocket.send_text("still here")

    with serving(
        Starlette(routes=[WebSocketRoute("/", patient)]), http=ShortHeadTimeout, log_config=None
    ) as port:
        assert hears(port, "/")[0] == "still here"


def test_the_access_log_contains_no_secrets() -> None:
    stream = io.StringIO()
    config: dict[str, Any] = json.loads(json.dumps(uvicorn.config.LOGGING_CONFIG))
    for handler in config["handlers"].values():
        handler["stream"] = "ext://sys.stderr"
    loggers = [logging.getLogger(name) for name in ("uvicorn", "uvicorn.error", "uvicorn.access")]
    before = [(logger.handlers[:], logger.level, logger.propagate) for logger in loggers]
    try:
        with serving(APP, http=BoundedHttpProtocol, log_config=config) as port:
            for logger in loggers:
                for stream_handler in logger.handlers:
                    stream_handler.setStream(stream)  # type: ignore[attr-defined]
            install_redaction()
            httpx.get(f"http://127.0.0.1:{port}/whoami?token={KEY}&q=1")
            httpx.get(f"http://127.0.0.1:{port}/confirmations/{KEY[9:]}")
            refused(port, f"/talk?token={KEY[9:]}")
    finally:
        for logger, (handlers, level, propagate) in zip(loggers, before, strict=True):
            logger.handlers, logger.level, logger.propagate = handlers, level, propagate
    assert KEY[9:] not in stream.getvalue()
    assert '"GET /whoami?token=***&q=1 HTTP/1.1" 401' in stream.getvalue()
    assert '"GET /confirmations/*** HTTP/1.1" 404' in stream.getvalue()
    assert '"WebSocket /talk?token=***" 401' in stream.getvalue()
