"""Limits on connections, sessions, messages and audio."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest
import websockets
from host_harness import Client, HostFolder, running_host, scripted_provider, token_protocol
from jackfield_host.security.api_keys import digest, new_key
from jackfield_scripted import ScriptedModel
from joserfc import jwt
from joserfc.jwk import OctKey

SECRET = "a secret that only the issuer and this host may know"

KEYS = {name: new_key(name, name).key for name in ("ada", "bob")}
ACCESS: dict[str, Any] = {
    "keys": {name: {"digest": digest(key), "user": name} for name, key in KEYS.items()},
    "jwt": {"algorithms": ["HS256"], "secret_env": "HST_SECRET", "audience": "host"},
}


async def echo(model: ScriptedModel) -> None:
    while True:
        heard = await model.hears()
        await model.says(f"You said {heard.text}")


def bearer(token: str) -> dict[str, Any]:
    return {"additional_headers": {"Authorization": f"Bearer {token}"}}


def signed(**claims: Any) -> str:
    told = {"sub": "eve", "aud": "host", "exp": int(time.time()) + 60, **claims}
    return jwt.encode({"alg": "HS256"}, told, OctKey.import_key(SECRET))


def unsigned() -> str:
    import base64

    parts = [{"alg": "none"}, {"sub": "ada", "aud": "host", "exp": int(time.time()) + 60}]
    packed = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*packed, ""])


async def status(host: Any, path: str = "text", **options: Any) -> int:
    """Return the status of a refused handshake, or 101 if it is accepted."""
    try:
        async with host.connected(path, **options):
            return 101
    except websockets.InvalidStatus as refused:
        error = json.loads(refused.response.body or b"")["error"]
        assert set(error) == {"code", "message"}
        return int(refused.response.status_code)


def test_foreign_and_missing_origins_are_refused_at_the_handshake(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with scripted_provider(echo) as served, running_host(host_folder, served) as host:
            for mode in ("text", "voice"):
                assert await status(host, mode) == 101
                for origin in (
                    None,
                    "https://evil.example",
                    "null",
                    f"http://127.0.0.1.evil.example:{host.port}",
                ):
                    assert await status(host, mode, origin=origin) == 403
            assert await status(host, additional_headers={"X-Forwarded-For": "203.0.113.9"}) == 403
            assert not host.sessions.live

    asyncio.run(main())


def test_invalid_tokens_are_refused_at_the_handshake_and_valid_ones_identify_the_user(
    host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HST_SECRET", SECRET)
    bad = {
        "none": unsigned(),
        "another audience": signed(aud="elsewhere"),
        "expired": signed(exp=int(time.time()) - 3600),
        "another key": jwt.encode(
            {"alg": "HS256"},
            {"sub": "eve", "aud": "host", "exp": int(time.time()) + 60},
            OctKey.import_key("another secret of the same length as ours"),
        ),
        "no key": KEYS["ada"][:-1] + "x",
        "text only, at voice": signed(mode="text"),
    }

    async def main() -> None:
        async with scripted_provider(echo) as served, running_host(host_folder, served, **ACCESS) as host:
            assert await status(host, "voice") == 401
            for name, token in bad.items():
                assert await status(host, "voice", **bearer(token)) == 401, name
            offers = ["jackfield.1", token_protocol(KEYS["ada"])]
            for options, user in ((bearer(signed()), "eve"), ({"subprotocols": offers}, "ada")):
                async with host.connected("text", **options) as client:
                    assert client.raw.subprotocol == "jackfield.1"
                    await client.say("start")
                    session = await client.until_type("session")
                    assert session["user"] == user
            # The token of another user's session gives no access to it.
            async with host.connected("text", **bearer(KEYS["ada"])) as ada:
                await ada.say("start")
                await ada.until_type("session")
                async with host.connected("text", **bearer(KEYS["bob"])) as bob:
                    await bob.say("resume", token=ada.token)
                    assert (await bob.until_closed())[0] == 4007

    asyncio.run(main())


def test_sessions_are_limited_per_user_and_in_total(host_folder: HostFolder) -> None:
    async def start(client: Client) -> None:
        await client.say("start")
        await client.until_type("session")

    async def turned_away(client: Client, words: str) -> None:
        await client.say("start")
        assert (await client.until_closed())[0] == 4008
        assert words in client.of("error")[0]["message"]

    async def main() -> None:
        access = {"keys": ACCESS["keys"]}
        limits: dict[str, Any] = {"sessions_per_user": 2, "max_sessions": 3}
        async with (
            scripted_provider(echo) as served,
            running_host(host_folder, served, **access, **limits) as host,
        ):
            ada, bob = bearer(KEYS["ada"]), bearer(KEYS["bob"])
            async with (
                host.connected("text", **ada) as first,
                host.connected("text", **ada) as second,
                host.connected("text", **ada) as third,
                host.connected("text", **bob) as fourth,
                host.connected("text", **bob) as fifth,
            ):
                await start(first)
                await start(second)
                await turned_away(third, "You have too many")
                await start(fourth)
                await turned_away(fifth, "too many sessions at the moment")
                assert fifth.of("error")[0]["suggestion"] == "Try again later."
                await first.say("end")
                await first.until_closed()
                async with host.connected("text", **bob) as sixth:
                    await start(sixth)

    asyncio.run(main())


def test_handshakes_of_one_user_are_rate_limited(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with (
            scripted_provider(echo) as served,
            running_host(host_folder, served, requests_per_minute=12) as host,
        ):
            statuses = [await status(host) for _ in range(5)]
            assert statuses == [101, 101, 429, 429, 429]

    asyncio.run(main())


def test_messages_above_the_rate_limit_are_delayed_and_none_is_lost(host_folder: HostFolder) -> None:
    async def main() -> None:
        limits: dict[str, Any] = {"messages_per_second": 10}
        async with (
            scripted_provider(echo) as served,
            running_host(host_folder, served, **limits) as host,
            host.client("text") as ada,
            host.client("text") as bob,
        ):
            for number in range(60):
                await ada.say("context", text=f"note {number}")
            await ada.say("text", text="the end")
            await bob.say("text", text="meanwhile")
            await bob.until(lambda: bob.said("assistant") == ["You said meanwhile"])
            # The burst of four seconds is read at once, the rest later.
            assert not ada.said("user")
            await ada.until(lambda: ada.said("assistant"))
            asked = next(str(each) for each in served.server.requests if "the end" in str(each))
            assert all(f"note {number}" in asked for number in range(60))

    asyncio.run(main())


def test_audio_faster_than_real_time_is_read_at_the_real_time_rate(host_folder: HostFolder) -> None:
    heard: list[int] = []

    async def listen(model: ScriptedModel) -> None:
        await model.hears_speech("all", after_ms=1500)
        heard.append(1)
        await model.says("That was a lot.")
        await asyncio.Event().wait()

    async def main() -> None:
        limits: dict[str, Any] = {"audio_ahead_seconds": 0.5, "message_bytes": 2048}
        async with (
            scripted_provider(listen) as served,
            running_host(host_folder, served, **limits) as host,
            host.client("voice") as ada,
        ):
            began = time.monotonic()
            await ada.speak(1600)
            await ada.until_type("turn_complete")
            # It took at least as long as the audio lasts, minus what may run ahead.
            assert time.monotonic() - began >= 0.9

    asyncio.run(main())
    assert heard


@pytest.mark.parametrize("says", [None, b"sound", '{"type": "text", "text": "hello"}', "{"])
def test_a_client_without_a_valid_first_message_is_disconnected(host_folder: HostFolder, says: Any) -> None:
    seconds = 0.2 if says is None else 60.0

    async def main() -> None:
        async with (
            scripted_provider(echo) as served,
            running_host(host_folder, served, start_seconds=seconds) as host,
        ):
            async with host.connected("text") as client:
                if says is not None:
                    await client.raw.send(says)
                assert await client.until_closed() == (4004, "the client does not follow the protocol")
                (error,) = client.of("error")
                assert error["code"] == "invalid_message"
                assert "start" in error["suggestion"]
            assert not host.sessions.live

    asyncio.run(main())


def test_each_invalid_message_gets_an_error_and_the_tenth_closes_the_connection(
    host_folder: HostFolder,
) -> None:
    async def main() -> None:
        async with (
            scripted_provider(echo) as served,
            running_host(host_folder, served) as host,
            host.client("text") as ada,
        ):
            for number in range(10):
                assert not ada.closed
                await ada.raw.send(json.dumps({"type": "sing", "song": number}))
                await ada.until_type("error", number + 1)
            assert (await ada.until_closed())[0] == 4004
            assert "song" not in str(ada.of("error")[0]["message"])

    asyncio.run(main())


def test_an_abandoned_session_is_released_and_can_be_resumed(
    host_folder: HostFolder, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "jackfield_sessions")

    async def main() -> None:
        async with (
            scripted_provider(echo) as served,
            running_host(host_folder, served, grace_seconds=0.1) as host,
        ):
            async with host.client("text") as ada:
                pass
            while host.sessions.live:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            async with host.client("text", token=ada.token, lastEvent=ada.last_event) as back:
                await back.say("text", text="I was away")
                await back.until(lambda: back.said("assistant") == ["You said I was away"])

    asyncio.run(main())
    assert ": no client was connected any more" in caplog.text
    assert "idle" not in caplog.text


@pytest.mark.parametrize("why", ["no origin", "restarting"])
def test_a_refused_handshake_is_not_logged_as_an_error(
    host_folder: HostFolder, caplog: pytest.LogCaptureFixture, why: str
) -> None:
    async def main() -> int:
        async with scripted_provider(echo) as served, running_host(host_folder, served) as host:
            caplog.set_level("ERROR", "uvicorn.error")
            host.sessions.admission.closed = why == "restarting"
            with pytest.raises(websockets.InvalidStatus) as caught:
                async with host.connected("text", **({"origin": None} if why == "no origin" else {})):
                    pass
            return caught.value.response.status_code

    assert asyncio.run(main()) == (503 if why == "restarting" else 403)
    assert [each.getMessage() for each in caplog.records if each.levelname == "ERROR"] == []


def test_idle_and_overlong_sessions_are_closed_and_an_idle_one_can_be_resumed(
    host_folder: HostFolder,
) -> None:
    async def main() -> None:
        async with scripted_provider(echo) as served:
            async with (
                running_host(host_folder, served, idle_seconds=0.3) as host,
                host.client("text") as ada,
            ):
                assert (await ada.until_closed())[0] == 4001
                async with host.client("text", token=ada.token, lastEvent=ada.last_event) as back:
                    await back.say("text", text="I was away")
                    await back.until(lambda: back.said("assistant") == ["You said I was away"])
            async with (
                running_host(host_folder, served, session_seconds=0.3) as host,
                host.client("text") as ada,
            ):
                assert (await ada.until_closed())[0] == 4002
                assert ada.states[-1] == "terminated"

    asyncio.run(main())
