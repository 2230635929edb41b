"""Bad input of every kind gets the right error, and the server goes on."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import pytest
from mcp_harness import ACCEPT, INITIALIZE, McpFolder, running_host
from mcp_types import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    UNSUPPORTED_PROTOCOL_VERSION,
)

VERSION = "2026-07-28"

PREFIX = "io.modelcontextprotocol"

META = {
    f"{PREFIX}/protocolVersion": VERSION,
    f"{PREFIX}/clientCapabilities": {},
    f"{PREFIX}/clientInfo": {"name": "test", "version": "1"},
}

JSON = {**ACCEPT, "Content-Type": "application/json"}

BODIES: dict[str, tuple[bytes, int]] = {
    "nothing": (b"", PARSE_ERROR),
    "no JSON": (b"{nope", PARSE_ERROR),
    "no UTF-8": (b'{"jsonrpc": "\xff"}', PARSE_ERROR),
    "NaN": (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": NaN}}', PARSE_ERROR),
    "a key twice": (b'{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "ping"}', PARSE_ERROR),
    "deep nesting": (b'{"jsonrpc": "2.0", "id": 1, "method": "x", "params": ' + b'{"a":' * 5000, PARSE_ERROR),
    "a batch": (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', INVALID_REQUEST),
    "a number": (b"5", INVALID_REQUEST),
    "a string": (b'"ping"', INVALID_REQUEST),
    "an empty object": (b"{}", INVALID_REQUEST),
    "another version": (b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}', INVALID_REQUEST),
    "id null": (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', INVALID_REQUEST),
    "id true": (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', INVALID_REQUEST),
    "id 1.5": (b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', INVALID_REQUEST),
    "id as an object": (b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}', INVALID_REQUEST),
    "a method that is no string": (b'{"jsonrpc": "2.0", "id": 1, "method": 5}', INVALID_REQUEST),
    "no method": (b'{"jsonrpc": "2.0", "id": 1}', INVALID_REQUEST),
    "params as a list": (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}', INVALID_REQUEST),
}


def request(method: str, params: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return a request without a handshake."""
    return {
        "jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": META, **(params or {})}, **more,
    }  # fmt: skip


def headers(method: str, name: str | None = None, version: str = VERSION) -> dict[str, str]:
    """Return the headers of such a request."""
    named = {"Mcp-Name": name} if name else {}
    return {**JSON, "MCP-Protocol-Version": version, "Mcp-Method": method, **named}


async def connect(http: httpx2.AsyncClient) -> dict[str, str]:
    """Connect with a handshake; return the headers of further requests."""
    started = await http.post("/mcp", json=INITIALIZE, headers=ACCEPT)
    return {**JSON, "Mcp-Session-Id": started.headers["mcp-session-id"]}


def error(response: httpx2.Response, status: int, code: int) -> dict[str, Any]:
    """Check an error; return it."""
    assert response.status_code == status, response.text
    message = response.json()
    assert message["jsonrpc"] == "2.0"
    assert message["error"]["code"] == code, message
    assert "Traceback" not in response.text
    return dict(message)


def test_a_body_that_is_no_message_gets_the_error_of_json_rpc(folder: McpFolder) -> None:
    async def run() -> None:
        async with running_host(folder) as host, host.http() as http:
            handshake = await connect(http)
            for name, (content, code) in BODIES.items():
                for given in (handshake, headers("ping")):
                    answer = error(await http.post("/mcp", content=content, headers=given), 400, code)
                    assert "id" in answer, name
            alive = await http.post(
                "/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=handshake
            )
            assert alive.json()["result"] == {}

    asyncio.run(run())


def test_the_wrong_media_types_methods_and_sizes_are_refused(folder: McpFolder) -> None:
    async def run() -> None:
        async with running_host(folder, request_bytes=10_000) as host, host.http() as http:
            body = json.dumps(INITIALIZE)
            plain = {**ACCEPT, "Content-Type": "text/plain"}
            error(await http.post("/mcp", content=body, headers=plain), 415, INVALID_REQUEST)
            error(await http.post("/mcp", content=body, headers={**JSON, "Accept": "text/html"}), 406, -32600)
            only = {**JSON, "Accept": "application/json"}
            error(await http.post("/mcp", content=body, headers=only), 406, INVALID_REQUEST)
            assert (await http.put("/mcp", content=body, headers=JSON)).status_code == 405
            large = await http.post("/mcp", content=b" " * 20_000 + body.encode(), headers=JSON)
            assert large.status_code == 413
            error(await http.get("/mcp", headers=headers("ping")), 405, INVALID_REQUEST)
            connection = await connect(http)
            assert (await http.head("/mcp", headers=connection)).status_code == 405
            ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
            assert (await http.post("/mcp", json=ping, headers=connection)).status_code == 200

    asyncio.run(run())


def test_requests_without_a_connection_are_refused(folder: McpFolder) -> None:
    async def run() -> None:
        async with running_host(folder) as host, host.http() as http:
            ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
            error(await http.post("/mcp", json=ping, headers=JSON), 400, INVALID_REQUEST)
            for unknown in ("0" * 32, "../../etc", "x" * 500):
                given = {**JSON, "Mcp-Session-Id": unknown}
                error(await http.post("/mcp", json=ping, headers=given), 404, INVALID_REQUEST)
                error(await http.get("/mcp", headers=given), 404, INVALID_REQUEST)
                error(await http.delete("/mcp", headers=given), 404, INVALID_REQUEST)
            given = await connect(http)
            assert (await http.delete("/mcp", headers=given)).status_code == 200
            error(await http.post("/mcp", json=ping, headers=given), 404, INVALID_REQUEST)

    asyncio.run(run())


def test_requests_with_wrong_parameters_get_the_error_of_the_protocol(folder: McpFolder) -> None:
    async def run() -> None:
        async with running_host(folder) as host, host.http() as http:
            handshake = await connect(http)
            cases: list[tuple[str, dict[str, Any], int]] = [
                ("tools/none", {}, METHOD_NOT_FOUND),
                ("prompts/list", {}, METHOD_NOT_FOUND),
                ("tools/call", {}, INVALID_PARAMS),
                ("tools/call", {"name": 5}, INVALID_PARAMS),
                ("tools/call", {"name": "mct_look", "arguments": [1]}, INVALID_PARAMS),
                ("tools/call", {"name": "mct_look", "arguments": "text"}, INVALID_PARAMS),
                ("tools/call", {"name": "unknown", "arguments": {}}, INVALID_PARAMS),
                ("tools/call", {"name": "mct_look\ud800", "arguments": {}}, PARSE_ERROR),
                ("tools/list", {"cursor": 5}, INVALID_PARAMS),
                ("tools/list", {"cursor": "*"}, INVALID_PARAMS),
            ]
            for method, params, code in cases:
                old = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
                answer = await http.post("/mcp", content=json.dumps(old), headers=handshake)
                assert answer.json()["error"]["code"] == code, (method, params, answer.text)
                name = params.get("name") if isinstance(params.get("name"), str) else None
                if code == PARSE_ERROR or (name is None and "name" in params):
                    continue
                new = await http.post("/mcp", json=request(method, params), headers=headers(method, name))
                status = 404 if code == METHOD_NOT_FOUND else 400
                error(new, status, code)

    asyncio.run(run())


def test_requests_whose_headers_or_envelope_are_wrong_are_refused(folder: McpFolder) -> None:
    async def run() -> None:
        async with running_host(folder) as host, host.http() as http:
            listing, given = request("tools/list"), headers("tools/list")
            assert "result" in (await http.post("/mcp", json=listing, headers=given)).json()
            bare = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
            error(await http.post("/mcp", json=bare, headers=given), 400, INVALID_PARAMS)
            wrong = {**given, "Mcp-Method": "tools/call"}
            error(await http.post("/mcp", json=listing, headers=wrong), 400, HEADER_MISMATCH)
            call = request("tools/call", {"name": "mct_look", "arguments": {"text": "x"}})
            named = headers("tools/call", "mct_note")
            error(await http.post("/mcp", json=call, headers=named), 400, HEADER_MISMATCH)
            twice = [*given.items(), ("Mcp-Method", "tools/list")]
            error(await http.post("/mcp", json=listing, headers=twice), 400, HEADER_MISMATCH)
            future = {**META, f"{PREFIX}/protocolVersion": "2030-01-01"}
            unknown = {**listing, "params": {"_meta": future}}
            answer = await http.post(
                "/mcp", json=unknown, headers=headers("tools/list", version="2030-01-01")
            )
            refused = error(answer, 400, UNSUPPORTED_PROTOCOL_VERSION)
            assert refused["error"]["data"]["supported"] == [VERSION]
            given = headers("tools/list")
            reply = {"jsonrpc": "2.0", "id": 1, "result": {}}
            error(await http.post("/mcp", json=reply, headers=given), 400, INVALID_REQUEST)
            notification = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
            assert (await http.post("/mcp", json=notification, headers=given)).status_code == 202

    asyncio.run(run())


def test_pages_of_other_sites_are_refused(folder: McpFolder) -> None:
    async def run() -> None:
        async with running_host(folder) as host, host.http() as http:
            for given in (
                {"Origin": "https://evil.example"},
                {"Host": "evil.example"},
                {"Sec-Fetch-Site": "cross-site"},
                {"Origin": "null"},
            ):
                refused = await http.post("/mcp", json=INITIALIZE, headers={**JSON, **given})
                assert refused.status_code == 403, given
            own = {**JSON, "Origin": host.url}
            assert (await http.post("/mcp", json=INITIALIZE, headers=own)).status_code == 200

    asyncio.run(run())


@pytest.mark.parametrize("asked", ["jackfield-" + "0" * 24, "x", 5])
def test_replies_to_questions_that_nobody_asked_are_dropped(folder: McpFolder, asked: object) -> None:
    async def run() -> None:
        async with running_host(folder) as host, host.http() as http:
            given = await connect(http)
            replies: list[dict[str, Any]] = [
                {"result": {}},
                {"error": {"code": 1, "message": "no"}},
                {"result": 5},
            ]
            for more in replies:
                reply = {"jsonrpc": "2.0", "id": asked, **more}
                assert (await http.post("/mcp", json=reply, headers=given)).status_code == 202

    asyncio.run(run())
