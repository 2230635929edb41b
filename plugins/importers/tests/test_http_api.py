"""The client module of generated packages: requests, credentials, limits and errors, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jackfield import ToolError, ToolResponse
from jackfield_importers.runtime import http_api
from jackfield_importers.runtime.http_api import (
    Api,
    Credential,
    Operation,
    Parameter,
    filled_path,
    path_value,
)
from openapi_server import serving

Reply = Callable[[dict[str, Any]], tuple[int, dict[str, str], bytes]]
CREDENTIALS = {
    "bearer": Credential("bearer", "T_BEARER"),
    "basic": Credential("basic", "T_BASIC"),
    "header": Credential("header", "T_HEADER", "X-Key"),
    "query": Credential("query", "T_QUERY", "key"),
    "cookie": Credential("cookie", "T_COOKIE", "sid"),
}


class RawServer:
    """An ASGI application that records requests as they arrive, before any decoding."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.requests: list[dict[str, Any]] = []
        self.url = ""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        headers = {key.decode(): value.decode("latin-1") for key, value in scope["headers"]}
        target = scope["raw_path"].decode()
        request = {"method": scope["method"], "path": target, "query": scope["query_string"].decode()}
        request |= {"headers": headers, "body": body}
        self.requests.append(request)
        status, answered, data = self.reply(request)
        given = [(key.encode(), value.encode()) for key, value in answered.items()]
        await send({"type": "http.response.start", "status": status, "headers": given})
        await send({"type": "http.response.body", "body": data})

    def call(self, operation: Operation, **args: Any) -> ToolResponse:
        api = Api("T_BASE_URL", self.url, CREDENTIALS)
        try:
            return asyncio.run(http_api.call(api, operation, args))
        except ToolError as error:
            from jackfield.contract.tool import fail_from

            return fail_from(error)


@contextlib.contextmanager
def raw_server(reply: Reply) -> Iterator[RawServer]:
    server = RawServer(reply)
    with serving(server) as server.url:
        yield server


def as_json(value: Any, status: int = 200) -> Reply:
    return lambda _: (status, {"content-type": "application/json"}, json.dumps(value).encode())


@pytest.fixture
def server() -> Iterator[RawServer]:
    with raw_server(as_json({"fine": True})) as made:
        yield made


def test_a_request_has_path_query_header_and_body_as_the_document_says(server: RawServer) -> None:
    operation = Operation(
        "t", "POST", "/a/{id}/b",
        parameters=(
            Parameter("path", "id"),
            Parameter("query", "tags", exploded=False),
            Parameter("query", "each"),
            Parameter("query", "filter", style="deepObject"),
            Parameter("header", "X-Flag", argument="X_Flag"),
            Parameter("cookie", "seen"),
            Parameter("query", "shape", as_json=True),
        ),
        body={"name": "name", "body_id": "id"},
        content_type="application/json",
    )  # fmt: skip
    answer = server.call(
        operation, id="x/y z", tags=["a,b", "c"], each=[1, 2], filter={"from": "1", "to": "é"}, X_Flag=True,
        seen="a;b", shape={"a": 1}, name="Ada", body_id=7,
    )  # fmt: skip
    assert answer.ok
    (request,) = server.requests
    assert request["path"] == "/a/x%2Fy%20z/b"
    assert request["query"] == (
        "tags=a%2Cb,c&each=1&each=2&filter%5Bfrom%5D=1&filter%5Bto%5D=%C3%A9&shape=%7B%22a%22%3A%201%7D"
    )
    assert request["headers"]["x-flag"] == "true"
    assert request["headers"]["cookie"] == "seen=a%3Bb"
    assert json.loads(request["body"]) == {"name": "Ada", "id": 7}


@pytest.mark.parametrize(
    ("style", "explode", "value", "text"),
    [
        ("simple", False, 5, "5"), ("simple", False, [3, 4], "3,4"), ("simple", True, [3, 4], "3,4"),
        ("simple", False, {"a": 1, "b": 2}, "a,1,b,2"), ("simple", True, {"a": 1, "b": 2}, "a=1,b=2"),
        ("label", False, 5, ".5"), ("label", True, [3, 4], ".3.4"), ("label", False, [3, 4], ".3,4"),
        ("matrix", False, 5, ";id=5"), ("matrix", False, [3, 4], ";id=3,4"),
        ("matrix", True, [3, 4], ";id=3;id=4"), ("matrix", True, {"a": 1, "b": 2}, ";a=1;b=2"),
    ],
)  # fmt: skip
def test_path_parameters_are_written_in_the_styles_of_the_specification(
    style: str, explode: bool, value: Any, text: str
) -> None:
    assert path_value(Parameter("path", "id", style=style, exploded=explode), value) == text


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_no_value_leaves_its_place_in_the_path(value: str) -> None:
    parameter = Parameter("path", "id")
    if value in {"", ".", ".."}:
        with pytest.raises(ToolError, match="missing or not allowed"):
            filled_path("/users/{id}/items", {"id": path_value(parameter, value)})
        return
    path = filled_path("/users/{id}/items", {"id": path_value(parameter, value)})
    users, segment, items = path.removeprefix("/").split("/")
    assert (users, unquote(segment), items) == ("users", value, "items")
    assert not set("?#\\ \r\n") & set(segment)


@pytest.mark.parametrize("value", ["..", ".", "", "a/../../admin", "..%2F", "?x=1", "#f", "%2e%2e"])
def test_a_path_cannot_be_escaped_on_the_wire(server: RawServer, value: str) -> None:
    answer = server.call(Operation("t", "GET", "/users/{id}/x", (Parameter("path", "id"),)), id=value)
    for request in server.requests:
        assert request["path"].startswith("/users/")
        assert request["path"].endswith("/x")
        assert request["path"].count("/") == 3
        assert request["query"] == ""
    assert answer.ok is (value not in {"..", ".", ""})


def test_a_header_cannot_be_injected(server: RawServer) -> None:
    operation = Operation("t", "GET", "/", (Parameter("header", "X-A"),))
    answer = server.call(operation, **{"X-A": "1\r\nX-Admin: yes"})
    assert not answer.ok
    assert server.requests == []


@pytest.mark.parametrize(
    ("used", "secret", "place", "expected"),
    [
        ("bearer", "s3cret", "authorization", "Bearer s3cret"),
        ("basic", "ada:pw", "authorization", "Basic YWRhOnB3"),
        ("header", "s3cret", "x-key", "s3cret"),
        ("cookie", "s3 cret", "cookie", "sid=s3%20cret"),
    ],
)
def test_secrets_come_from_the_environment(
    server: RawServer, monkeypatch: pytest.MonkeyPatch, used: str, secret: str, place: str, expected: str
) -> None:
    operation = Operation("t", "GET", "/x", security=(("query", used), (used,)))
    missing = server.call(operation)
    assert missing.to_wire()["error"]["type"] == "AUTH"
    assert CREDENTIALS[used].variable in missing.to_wire()["error"]["message"]
    monkeypatch.setenv(CREDENTIALS[used].variable, secret)
    assert server.call(operation).ok
    assert server.requests[-1]["headers"][place] == expected
    monkeypatch.setenv("T_QUERY", "k&y")
    assert server.call(operation).ok
    assert server.requests[-1]["query"] == "key=k%26y"


@pytest.mark.parametrize(
    ("status", "method", "type_", "retryable", "partial"),
    [
        (400, "GET", "PERMANENT", False, False), (401, "GET", "AUTH", False, False),
        (403, "POST", "AUTH", False, False), (404, "GET", "PERMANENT", False, False),
        (409, "POST", "CONFLICT", False, False), (412, "PUT", "CONFLICT", False, False),
        (429, "GET", "RATE_LIMIT", False, False), (500, "GET", "TRANSIENT", True, False),
        (503, "POST", "TRANSIENT", False, True), (502, "PUT", "TRANSIENT", True, True),
        (302, "GET", "PERMANENT", False, False), (303, "POST", "PERMANENT", False, True),
    ],
)  # fmt: skip
def test_errors_of_the_service_become_failures_that_a_model_understands(
    status: int, method: str, type_: str, retryable: bool, partial: bool
) -> None:
    reply: Reply = lambda _: (status, {"location": "/elsewhere", "retry-after": "7"}, b"no such thing")  # noqa: E731
    with raw_server(reply) as server:
        failure = server.call(Operation("t", method, "/x")).to_wire()["error"]
    assert failure["type"] == type_
    assert failure["retryable"] is retryable
    assert failure["partialSideEffects"] is partial
    assert failure["details"] == {"status": status, "answer": "no such thing"}
    assert len(server.requests) == 1
    assert (failure.get("suggestion") == "Try again after 7 seconds.") is (status == 429)


@pytest.mark.parametrize(("method", "partial"), [("GET", False), ("POST", True)])
def test_a_large_answer_is_rejected_without_denying_its_effect(
    monkeypatch: pytest.MonkeyPatch, method: str, partial: bool
) -> None:
    monkeypatch.setattr(http_api, "MAX_RESPONSE", 1000)
    with raw_server(as_json("x" * 2000)) as server:
        failure = server.call(Operation("t", method, "/x")).to_wire()["error"]
    assert (failure["type"], failure["partialSideEffects"]) == ("PERMANENT", partial)
    assert "larger than" in failure["message"]


@pytest.mark.parametrize(
    ("reply", "data"),
    [
        ((204, {}, b""), {"status": 204}),
        ((200, {"content-type": "text/plain"}, b"hello"), {"status": 200, "text": "hello"}),
        (
            (200, {"content-type": "image/png"}, b"\x89PNG"),
            {"status": 200, "contentType": "image/png", "bytes": 4},
        ),
        ((200, {"content-type": "application/vnd.x+json; charset=utf-8"}, b"[1]"), [1]),
    ],
)
def test_answers_that_are_not_json_are_described(reply: tuple[int, dict[str, str], bytes], data: Any) -> None:
    with raw_server(lambda _: reply) as server:
        assert server.call(Operation("t", "GET", "/x")).to_wire()["data"] == data


def test_a_service_that_cannot_be_reached_is_transient() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        server = RawServer(as_json({}))
        server.url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        reading = server.call(Operation("t", "GET", "/x")).to_wire()["error"]
        writing = server.call(Operation("t", "POST", "/x")).to_wire()["error"]
    assert (reading["type"], reading["retryable"]) == ("TRANSIENT", True)
    assert (writing["retryable"], writing["partialSideEffects"]) == (False, False)


def test_a_form_is_sent_as_a_form(server: RawServer) -> None:
    kind = "application/x-www-form-urlencoded"
    operation = Operation("t", "POST", "/x", body={"a": "a", "b": "b"}, content_type=kind)
    assert server.call(operation, a="1&2", b=["x", "y"]).ok
    assert server.requests[0]["body"] == b"a=1%262&b=x&b=y"
    assert server.requests[0]["headers"]["content-type"] == kind


def test_an_address_that_is_not_configured_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    server = RawServer(as_json({}))
    failure = server.call(Operation("t", "GET", "/x")).to_wire()["error"]
    assert "T_BASE_URL" in failure["message"]
    monkeypatch.setenv("T_BASE_URL", "file:///etc/passwd")
    assert not server.call(Operation("t", "GET", "/x")).ok
