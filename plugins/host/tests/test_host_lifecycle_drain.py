"""How a host stops: it releases its sessions, nothing runs twice, and every client can resume."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import httpx
import pytest
from host_harness import Client, HostFolder, HostProcess, running_host, scripted_provider, wait_until
from jackfield_scripted import ScriptedCall, ScriptedModel
from joserfc import jwt
from joserfc.jwk import OctKey
from websockets.exceptions import InvalidStatus

SESSIONS = 6


async def model(model: ScriptedModel) -> None:
    """Call the tool that the user names, and comment on its result."""
    while True:
        heard = (await model.hears()).text
        if heard.startswith("do "):
            _, tool, text = heard.split()
            await model.calls(ScriptedCall(tool, {"text": text, "before": "gate"}))
        await model.says("So it is.")


def outcomes(*clients: Client) -> list[dict[str, Any]]:
    """Return the outcomes of calls, over all connections of one user."""
    return [
        event for client in clients for kind in ("tool_complete", "tool_error") for event in client.of(kind)
    ]


def answered(*clients: Client) -> bool:
    """Return whether any of these clients got an answer."""
    return any(client.said("assistant") for client in clients)


async def begun(host_folder: HostFolder, texts: list[str]) -> None:
    """Wait until the tools are running."""
    await wait_until(lambda: all(host_folder.effects(f"begun {text}") for text in texts))


def test_a_host_that_drains_under_load_releases_every_session(host_folder: HostFolder) -> None:
    texts = [f"item-{number}" for number in range(SESSIONS)]

    async def drive() -> None:
        async with AsyncExitStack() as stack:
            served = await stack.enter_async_context(scripted_provider(model))
            old = await stack.enter_async_context(HostProcess(host_folder, served, sessions_per_user=99))
            new = await stack.enter_async_context(HostProcess(host_folder, served, sessions_per_user=99))
            users = [await stack.enter_async_context(old.client("text")) for _ in texts]
            for user, text in zip(users, texts, strict=True):
                await user.say("text", text=f"do hst_note {text}")
            await begun(host_folder, texts)

            os.kill(old.pid, signal.SIGTERM)
            for user in users:
                await wait_until(partial(user.of, "going_away"))
            with pytest.raises(InvalidStatus) as refused:
                async with old.connected("text"):
                    pass
            assert refused.value.response.status_code == 503
            assert refused.value.response.headers["Retry-After"] == "1"
            async with httpx.AsyncClient() as http:
                assert (await http.get(f"http://127.0.0.1:{old.port}/health")).status_code == 503
                assert (await http.get(f"http://127.0.0.1:{new.port}/health")).status_code == 200

            host_folder.open_gate("gate")
            for user in users:
                assert await user.until_closed() == (1012, "the host is restarting")
            assert await old.ended() == 0

            for user, text in zip(users, texts, strict=True):
                again = await stack.enter_async_context(
                    new.client("text", token=user.token, lastEvent=user.last_event)
                )
                assert again.session
                assert user.session
                assert again.session["registry"] == user.session["registry"]
                await wait_until(partial(answered, user, again))
                (outcome,) = outcomes(user, again)
                assert (outcome["type"], outcome["data"]["text"]) == ("tool_complete", text)
                await again.say("text", text="and now?")
                await again.until_type("turn_complete")

    asyncio.run(drive())
    assert [host_folder.effects(f"begun {text}") for text in texts] == [1] * SESSIONS
    assert [host_folder.effects(f"done {text}") for text in texts] == [1] * SESSIONS


def test_after_a_drain_an_unfinished_write_is_in_doubt_and_an_unfinished_read_runs_again(
    host_folder: HostFolder,
) -> None:
    async def drive() -> None:
        async with AsyncExitStack() as stack:
            served = await stack.enter_async_context(scripted_provider(model))
            old = await stack.enter_async_context(HostProcess(host_folder, served, drain_seconds=0.2))
            writer = await stack.enter_async_context(old.client("text"))
            reader = await stack.enter_async_context(old.client("text"))
            await writer.say("text", text="do hst_note write")
            await reader.say("text", text="do hst_look read")
            await begun(host_folder, ["write", "read"])
            assert await old.kill(signal.SIGTERM) == 0
            assert (await writer.until_closed())[0] == 1012
            assert outcomes(writer, reader) == []

            host_folder.open_gate("gate")
            new = await stack.enter_async_context(HostProcess(host_folder, served))
            for user, kind in ((writer, "tool_error"), (reader, "tool_complete")):
                again = await stack.enter_async_context(
                    new.client("text", token=user.token, lastEvent=user.last_event)
                )
                outcome = await again.until_type(kind)
                if kind == "tool_error":
                    assert "may or may not have taken effect" in outcome["message"]
                await again.until_type("turn_complete")
                assert len(outcomes(user, again)) == 1

    asyncio.run(drive())
    assert (host_folder.effects("begun write"), host_folder.effects("done write")) == (1, 0)
    assert (host_folder.effects("begun read"), host_folder.effects("done read")) == (2, 1)


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_the_second_signal_stops_at_once(host_folder: HostFolder, sig: signal.Signals) -> None:
    async def drive() -> tuple[int, str]:
        async with (
            scripted_provider(model) as served,
            HostProcess(host_folder, served, drain_seconds=600) as host,
        ):
            async with host.client("text") as ada:
                await ada.say("text", text="do hst_note never")
                await begun(host_folder, ["never"])
                os.kill(host.pid, sig)
                await wait_until(lambda: "draining: " in host.output.read_text())
                status = await host.kill(sig)
            return status, host.output.read_text()

    status, output = asyncio.run(drive())
    assert status == 128 + sig
    assert "Traceback" not in output


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_a_drained_host_exits_with_status_0(host_folder: HostFolder, sig: signal.Signals) -> None:
    async def drive() -> str:
        async with scripted_provider(model) as served, HostProcess(host_folder, served) as host:
            async with host.client("text") as ada, host.client("voice") as ben:
                assert await host.kill(sig) == 0
                for user in (ada, ben):
                    assert await user.until_closed() == (1012, "the host is restarting")
                    assert user.of("going_away")
            return host.output.read_text()

    output = asyncio.run(drive())
    assert "Traceback" not in output
    assert output.rstrip().endswith("drained")


def token(secret: str, seconds: float) -> str:
    claims = {"sub": "ada", "aud": "us", "exp": int(time.time() + seconds)}
    return jwt.encode({"alg": "HS256"}, claims, OctKey.import_key(secret))


def test_a_client_with_an_expired_token_is_disconnected_and_resumes_with_a_new_one(
    host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "0123456789abcdef0123456789abcdef"
    monkeypatch.setenv("HST_SECRET", secret)
    access = {"algorithms": ["HS256"], "secret_env": "HST_SECRET", "audience": "us", "leeway": 0}

    def bearing(seconds: float) -> dict[str, Any]:
        return {"additional_headers": {"Authorization": f"Bearer {token(secret, seconds)}"}}

    async def drive() -> None:
        async with scripted_provider(model) as served, running_host(host_folder, served, jwt=access) as host:
            async with host.connected("text", **bearing(3)) as ada:
                await ada.say("start")
                await ada.until(lambda: ada.session)
                assert await ada.until_closed() == (4010, "the access token has expired")
            with pytest.raises(InvalidStatus, match="401"):
                async with host.connected("text", **bearing(-1)):
                    pass
            async with host.connected("text", **bearing(60)) as again:
                await again.say("resume", token=ada.token, lastEvent=ada.last_event)
                await again.until(lambda: again.session and again.session["resumed"])
                await again.say("text", text="hello")
                await again.until_type("turn_complete")

    asyncio.run(drive())


def test_a_tool_that_blocks_its_thread_does_not_keep_the_process_alive() -> None:
    program = (
        "import threading, time\n"
        "from jackfield_host.uvicorn_server import exit_after\n"
        "threading.Thread(target=time.sleep, args=(300,)).start()\n"
        "exit_after(0.1, 7)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, timeout=60)
    assert done.returncode == 7
