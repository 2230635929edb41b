"""Authentication, bodies, errors, health and the registry over HTTP."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest
from host_harness import HostFolder, RunningHost, running_host, scripted_provider
from http_client import SESSION, http_client
from jackfield.store import StoreUnavailableError
from jackfield_host.endpoints.docs import ENDPOINTS
from jackfield_host.security.api_keys import digest, new_key
from jackfield_scripted import Refusal, ScriptedModel
from jackfield_sessions.admission import Identity

KEYS = {name: new_key(name, name).key for name in ("ada", "bob", "root", "speech")}

ACCESS: dict[str, Any] = {
    "keys": {
        name: {
            "digest": digest(key),
            "user": name,
            "roles": ["operator"] if name == "root" else [],
            "mode": "voice" if name == "speech" else None,
        }
        for name, key in KEYS.items()
    }
}

BODY = {"arguments": {"text": "a"}}


async def agrees(model: ScriptedModel) -> None:
    while True:
        await model.hears()
        await model.says("Yes.")


@asynccontextmanager
async def serving(
    host_folder: HostFolder, **options: Any
) -> AsyncIterator[tuple[RunningHost, httpx.AsyncClient]]:
    server = options.pop("server", {})
    async with (
        scripted_provider(agrees, **server) as served,
        running_host(host_folder, served, **options) as host,
        http_client(host) as client,
    ):
        yield host, client


def run(
    host_folder: HostFolder, test: Callable[[RunningHost, httpx.AsyncClient], Awaitable[None]], **options: Any
) -> None:
    async def main() -> None:
        async with serving(host_folder, **options) as (host, client):
            await test(host, client)

    asyncio.run(main())


def bearer(name: str, **more: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {KEYS[name]}", **more}


def test_only_health_and_the_api_document_need_no_token(host_folder: HostFolder) -> None:
    async def test(_: RunningHost, client: httpx.AsyncClient) -> None:
        opened = set()
        for operation in ENDPOINTS:
            path = operation.path.replace("{", "").replace("}", "")
            answer = await client.request(operation.method, path)
            if answer.status_code == 401:
                assert answer.json()["error"]["code"] == "missing_token"
                assert answer.headers["WWW-Authenticate"].startswith("Bearer")
            else:
                opened.add(operation.path)
        assert opened == {"/health", "/health/live", "/health/ready", "/openapi.json"}
        wrong = await client.get("/status", headers={"Authorization": "Bearer jf_ada_wrong"})
        assert (wrong.status_code, wrong.json()["error"]["code"]) == (401, "bad_token")

    run(host_folder, test, **ACCESS)


def test_a_session_cannot_be_used_by_another_user(host_folder: HostFolder) -> None:
    async def test(_: RunningHost, client: httpx.AsyncClient) -> None:
        made = (await client.post("/execute/hst_facts", json=BODY, headers=bearer("ada"))).json()
        assert made["envelope"]["data"]["user"] == "ada"
        stolen = bearer("bob", **{SESSION: made["token"]})
        for answer in (
            await client.post("/execute/hst_facts", json=BODY, headers=stolen),
            await client.post("/chat", json={"message": "a"}, headers=stolen),
            await client.get(f"/tasks/{made['callId']}", headers=stolen),
            await client.get("/events", headers=stolen),
            await client.post("/confirmations/any", json={"approve": True}, headers=stolen),
        ):
            assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown_session")

    run(host_folder, test, **ACCESS)


@pytest.mark.parametrize("told", ["session_opened", "turn_began", "call_finished"])
def test_a_failing_observer_does_not_affect_responses(
    host_folder: HostFolder, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(f"jackfield_observability.metrics.Metrics.{told}", broken)

    async def test(_: RunningHost, client: httpx.AsyncClient) -> None:
        answer = await client.post("/execute/hst_facts", json=BODY, headers=bearer("ada"))
        assert (answer.status_code, answer.json()["envelope"]["ok"]) == (200, True)

    run(host_folder, test, **ACCESS)


def test_an_idempotency_key_belongs_to_one_user(host_folder: HostFolder) -> None:
    """The same idempotency key of two users identifies two calls."""

    async def test(_: RunningHost, client: httpx.AsyncClient) -> None:
        for user in ("ada", "bob"):
            body = {"arguments": {"text": user}}
            headers = bearer(user, **{"Idempotency-Key": "the-same-key"})
            answer = await client.post("/execute/hst_note", json=body, headers=headers)
            assert answer.json()["envelope"]["data"]["text"] == user

    run(host_folder, test, **ACCESS)


def test_a_token_for_voice_creates_only_voice_sessions(host_folder: HostFolder) -> None:
    async def test(_: RunningHost, client: httpx.AsyncClient) -> None:
        made = (await client.post("/execute/hst_facts", json=BODY, headers=bearer("speech"))).json()
        assert made["envelope"]["data"]["mode"] == "voice"
        chat = await client.post("/chat", json={"message": "a"}, headers=bearer("speech"))
        assert (chat.status_code, chat.json()["error"]["code"]) == (403, "wrong_mode")

    run(host_folder, test, **ACCESS)


def test_a_token_for_one_session_is_not_valid_for_another(
    host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(host: RunningHost, client: httpx.AsyncClient) -> None:
        mine, other = [(await client.post("/execute/hst_facts", json=BODY)).json() for _ in range(2)]
        tied = Identity("local", session=mine["session"])
        monkeypatch.setattr(host.host.authenticator, "authenticate", lambda _: tied)
        answers = [
            await client.post("/execute/hst_facts", json=BODY, headers={SESSION: each["token"]})
            for each in (mine, other)
        ]
        assert [each.status_code for each in answers] == [200, 404]
        for opening in (
            await client.post("/execute/hst_facts", json=BODY),
            await client.post("/chat", json={"message": "a"}),
        ):
            assert (opening.status_code, opening.json()["error"]["code"]) == (404, "unknown_session")

    run(host_folder, test)


def test_metrics_require_the_operator_role(host_folder: HostFolder) -> None:
    async def test(_: RunningHost, client: httpx.AsyncClient) -> None:
        await client.post("/execute/hst_look", json=BODY, headers=bearer("ada"))
        assert (await client.get("/metrics", headers=bearer("ada"))).status_code == 403
        shown = await client.get("/metrics", headers=bearer("root"))
        assert 'jackfield_calls_total{tool="hst_look"} 1.0' in shown.text
        assert shown.headers["content-type"].startswith("text/plain; version=0.0.4")

    run(host_folder, test, **ACCESS)


def test_only_operators_see_why_the_provider_was_chosen(host_folder: HostFolder) -> None:
    why = {"reason": "the `provider` setting names it", "detected": False, "hints": []}

    async def guarded(_: RunningHost, client: httpx.AsyncClient) -> None:
        for user, told in (("ada", None), ("root", why)):
            status = (await client.get("/status", headers=bearer(user))).json()
            assert (status["provider"], status["providerChoice"]) == ("openai", told)
            assert (status["environment"] is None) == (told is None)

    async def alone(_: RunningHost, client: httpx.AsyncClient) -> None:
        assert (await client.get("/status")).json()["providerChoice"] == why

    run(host_folder, guarded, **ACCESS)
    run(host_folder, alone)


def test_without_the_observer_there_are_no_metrics(host_folder: HostFolder) -> None:
    async def test(_: RunningHost, client: httpx.AsyncClient) -> None:
        answer = await client.get("/metrics")
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "no_metrics")
        assert "jackfield-observability" in answer.json()["error"]["suggestion"]

    off = {"observers": {"metrics": {"enabled": False}, "audit": {"enabled": False}}}
    run(host_folder, test, tables=off)


def test_a_banned_user_is_told_how_long_the_ban_lasts(host_folder: HostFolder) -> None:
    async def test(host: RunningHost, client: httpx.AsyncClient) -> None:
        await host.sessions.runtime.capabilities["bans"].add("ada", 60)
        for answer in (
            await client.post("/chat", json={"message": "a"}, headers=bearer("ada")),
            await client.post("/execute/hst_look", json=BODY, headers=bearer("ada")),
            await client.get("/tools", headers=bearer("ada")),
        ):
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "banned")
            assert 0 < answer.json()["error"]["retryAfter"] <= 60
            assert 0 < int(answer.headers["Retry-After"]) <= 60
        assert (await client.get("/tools", headers=bearer("bob"))).status_code == 200

    run(host_folder, test, **ACCESS)


def test_requests_above_the_rate_limit_are_refused(host_folder: HostFolder) -> None:
    async def test(_: RunningHost, client: httpx.AsyncClient) -> None:
        answers = [await client.get("/tools", headers=bearer("ada")) for _ in range(13)]
        refused = [each for each in answers if each.status_code == 429]
        assert refused
        assert refused[0].json()["error"]["code"] == "too_many_requests"
        assert int(refused[0].headers["Retry-After"]) >= 1
        assert (await client.get("/tools", headers=bearer("bob"))).status_code == 200
        assert (await client.get("/health")).status_code == 200

    run(host_folder, test, requests_per_minute=60.0, **ACCESS)


@pytest.mark.parametrize(
    ("content", "where"),
    [
        (b"", "empty"),
        (b"hello", "line 1, column 1"),
        (b"[]", "expected a JSON object"),
        (b'{"message": "a", "message": "b"}', "message"),
        (b'{"message": NaN}', "/message"),
        (b'{"message": 5}', "message: expected a string"),
        (
            b'{"message": "a", "time_zone": "UTC"}',
            "time_zone: there is no such member; did you mean 'timeZone'?",
        ),
        (b'{"message": "a", "timeZone": "Mars/Olympus"}', "timeZone: there is no such time zone; "),
        (b'{"message": ""}', "message: expected at least 1 character."),
        (b'{"timeZone": "UTC"}', "message: it is missing."),
        (b'{"message": "\xff"}', "byte 13"),
        (b'{"a":' * 200 + b"1" + b"}" * 200, "deeper than 64"),
        (b'{"message": "' + b"a" * 8001 + b'"}', "message: expected at most 8000 characters."),
    ],
)
def test_an_invalid_body_is_refused_with_the_location_of_the_fault(
    host_folder: HostFolder, content: bytes, where: str
) -> None:
    async def test(_: RunningHost, client: httpx.AsyncClient) -> None:
        kind = {"Content-Type": "application/json"}
        answer = await client.post("/chat", content=content, headers=kind)
        assert answer.status_code == 400
        assert where in answer.json()["error"]["message"]

    run(host_folder, test)


def test_bodies_of_other_types_and_sizes_are_refused(host_folder: HostFolder) -> None:
    async def test(_: RunningHost, client: httpx.AsyncClient) -> None:
        kind = {"Content-Type": "text/plain"}
        text = await client.post("/chat", content=json.dumps({"message": "a"}), headers=kind)
        assert (text.status_code, text.json()["error"]["code"]) == (415, "not_json")
        large = await client.post("/chat", json={"message": "a" * 3000})
        assert (large.status_code, large.json()["error"]["code"]) == (413, "body_too_large")

    run(host_folder, test, request_bytes=2048)


def test_the_status_leads_a_terminal_to_the_hosts_environment(host_folder: HostFolder) -> None:
    async def test(_: RunningHost, client: httpx.AsyncClient) -> None:
        environment = (await client.get("/status")).json()["environment"]
        ask = 'python -c "import os, sys; print(os.getcwd(), sys.prefix)"'
        lines = "\n".join([*environment["enter"], ask])
        shell = await asyncio.create_subprocess_exec(
            "sh", "-ec", lines, env={"PATH": "/usr/bin:/bin"}, stdout=asyncio.subprocess.PIPE
        )
        answer = (await shell.communicate())[0]
        assert answer.decode().split() == [str(Path.cwd()), sys.prefix]
        installs = environment["install"].removesuffix("pip install")
        assert installs == ("python -m " if find_spec("pip") else "uv ")

    run(host_folder, test)


def test_a_browser_at_an_unknown_address_gets_a_page(host_folder: HostFolder) -> None:
    async def test(_: RunningHost, client: httpx.AsyncClient) -> None:
        page = await client.get("/nowhere", headers={"Accept": "text/html,*/*;q=0.8"})
        assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
        assert '<a href="/">' in page.text
        program = await client.get("/nowhere", headers={"Accept": "*/*"})
        assert program.json()["error"]["code"] == "no_such_path"

    run(host_folder, test)


def test_unknown_paths_and_methods_get_the_same_form_of_error(host_folder: HostFolder) -> None:
    async def test(_: RunningHost, client: httpx.AsyncClient) -> None:
        nowhere = await client.get("/nowhere")
        assert (nowhere.status_code, nowhere.json()["error"]["code"]) == (404, "no_such_path")
        for method, path, allowed in (("PUT", "/chat", "POST"), ("DELETE", "/tools", "GET")):
            wrong = await client.request(method, path)
            assert (wrong.status_code, wrong.json()["error"]["code"]) == (405, "wrong_method")
            assert allowed in wrong.headers["Allow"]
        asked = await client.options("/chat")
        assert (asked.status_code, asked.headers["Allow"]) == (204, "POST, OPTIONS")
        head = await client.head("/tools")
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["X-Content-Type-Options"] == "nosniff"
        for name in ("foreign.example", "127.0.0.1.foreign.example"):
            foreign = await client.get("/tools", headers={"Host": name})
            assert (foreign.status_code, foreign.json()["error"]["code"]) == (403, "foreign_host")

    run(host_folder, test)


def test_pages_of_allowed_origins_can_read_the_responses(host_folder: HostFolder) -> None:
    allowed, other = "https://console.example", "https://elsewhere.example"

    async def test(_: RunningHost, client: httpx.AsyncClient) -> None:
        asking_first = {
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization, content-type, idempotency-key, "
            "jackfield-session, jackfield-turn",
        }
        before = await client.options("/chat", headers={"Origin": allowed, **asking_first})
        assert (before.status_code, before.headers["Access-Control-Allow-Origin"]) == (200, allowed)
        answer = await client.get("/tools", headers={"Origin": allowed})
        assert (answer.status_code, answer.headers["Access-Control-Allow-Origin"]) == (200, allowed)
        failed = await client.get("/tools/none", headers={"Origin": allowed})
        assert (failed.status_code, failed.headers["Access-Control-Allow-Origin"]) == (404, allowed)
        assert "Retry-After" in failed.headers["Access-Control-Expose-Headers"]
        for refused in (
            await client.options("/chat", headers={"Origin": other, **asking_first}),
            await client.get("/tools", headers={"Origin": other}),
        ):
            assert refused.status_code in (400, 403)
            assert "Access-Control-Allow-Origin" not in refused.headers

    run(host_folder, test, origins=(allowed,))


def test_health_reports_what_fails_and_nothing_private(
    host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: Any, **__: Any) -> None:
        raise StoreUnavailableError("the disk at /secret/place is full")

    async def test(host: RunningHost, client: httpx.AsyncClient) -> None:
        good = await client.get("/health")
        assert (good.status_code, good.json()["status"]) == (200, "healthy")
        assert set(good.json()) == {
            "status", "registry", "store", "provider", "conversations", "active_sessions", "uptime"
        }  # fmt: skip
        assert (await client.get("/health/ready")).json() == {"status": "ready", "reasons": []}
        store = host.sessions.runtime.store
        with monkeypatch.context() as patched:
            patched.setattr(type(store), "put", away)
            patched.setattr("jackfield_host.endpoints.health.CACHE_SECONDS", 0.0)
            bad = await client.get("/health")
            assert (bad.status_code, bad.json()["status"], bad.json()["store"]) == (503, "unhealthy", False)
            assert "/secret" not in bad.text
            assert (await client.get("/health/live")).status_code == 200
            unready = await client.get("/health/ready")
            assert (unready.status_code, unready.json()["reasons"]) == (503, ["the store does not work"])
            failed = await client.post("/execute/hst_look", json=BODY, headers=bearer("ada"))
            assert (failed.status_code, failed.json()["error"]["code"]) == (503, "store_unavailable")
            assert "/secret" not in failed.text
            assert (await client.get("/health")).status_code == 503
        host.sessions.admission.closed = True
        unready = await client.get("/health/ready")
        assert (unready.status_code, unready.json()["reasons"]) == (503, ["the host is draining"])
        leaving = await client.get("/health")
        assert (leaving.status_code, leaving.json()["status"]) == (503, "unhealthy")
        for refused in (
            await client.post("/chat", json={"message": "a"}, headers=bearer("ada")),
            await client.post("/execute/hst_look", json=BODY, headers=bearer("ada")),
        ):
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "restarting")
        assert (await client.get("/status", headers=bearer("ada"))).json()["draining"]

    run(host_folder, test, **ACCESS)


def test_an_unreachable_provider_degrades_health(host_folder: HostFolder) -> None:
    async def test(host: RunningHost, client: httpx.AsyncClient) -> None:
        async with host.connected("voice") as ada:
            await ada.say("start")
            assert (await ada.until_closed())[0] == 4009
        answer = await client.get("/health")
        assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
        assert answer.json()["provider"] is False
        async with host.client("voice"):
            assert (await client.get("/health")).json()["status"] == "healthy"
            assert (await client.get("/health")).json()["active_sessions"] == 1

    run(host_folder, test, server={"refusals": [Refusal(500, "server_error", "no")]})


def test_an_unexpected_error_reveals_nothing(
    host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(host: RunningHost, client: httpx.AsyncClient) -> None:
        monkeypatch.setattr(type(host.sessions.runtime.registry), "get", broken)
        answer = await client.get("/tools/hst_look")
        assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal")
        assert "inner" not in answer.text
        assert "inner secret" in caplog.text

    def broken(*_: Any) -> None:
        raise RuntimeError("inner secret")

    run(host_folder, test)


def test_tools_and_registry_are_shown(host_folder: HostFolder) -> None:
    async def test(_: RunningHost, client: httpx.AsyncClient) -> None:
        spoken = {each["toolId"] for each in (await client.get("/tools?mode=voice")).json()["tools"]}
        written = {each["toolId"] for each in (await client.get("/tools?mode=text")).json()["tools"]}
        every = {each["toolId"] for each in (await client.get("/tools")).json()["tools"]}
        assert "hst_spoken" in spoken - written
        assert "hst_written" in written - spoken
        assert every == spoken | written
        assert (await client.get("/tools?mode=both")).status_code == 400
        tool = (await client.get("/tools/hst_book")).json()
        assert (tool["requiresConfirmation"], tool["sideEffects"]) == (True, "writes")
        assert tool["parameters"]["required"] == ["text"]
        assert "Guide of hst_book." in tool["guide"]
        registry = (await client.get("/registry")).json()
        assert {each["toolId"] for each in registry["tools"]} >= every
        assert registry["policies"].index("duplicates") < registry["policies"].index("confirmation")
        status = (await client.get("/status")).json()
        assert status["registry"] == registry["version"]
        assert (status["user"], status["browserCalls"], status["tools"]) == ("local", False, len(every))

    run(host_folder, test)


def test_a_connection_waits_longer_for_its_next_request_than_a_proxy(
    host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"

    async def test(host: RunningHost, _: httpx.AsyncClient) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", host.port)

        async def status() -> bytes:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            found = re.search(rb"content-length: (\d+)", head)
            assert found
            await reader.readexactly(int(found[1]))
            return head.splitlines()[0]

        assert await status() == b"HTTP/1.1 200 OK"
        loop = asyncio.get_running_loop()
        clock = loop.time
        # nginx closes its connections after 60 seconds.
        monkeypatch.setattr(loop, "time", lambda: clock() + 61)
        for _iteration in range(5):
            await asyncio.sleep(0)
        assert await status() == b"HTTP/1.1 200 OK"
        writer.close()

    run(host_folder, test)
