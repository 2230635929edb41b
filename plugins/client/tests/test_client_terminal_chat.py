"""`jackfield chat URL` in real processes, with a scripted model behind the host."""

from __future__ import annotations

import asyncio
import json
import stat
from typing import Any

from client_hosts import Deployment, HostProcess, at_terminal, command
from jackfield_policies.access import Bans
from jackfield_scripted import ScriptedCall, ScriptedModel
from jackfield_scripted.openai import OpenAIServer
from jackfield_store_sqlite import SqliteStore

LONG = " ".join(f"word{number}" for number in range(10_000))
"""An answer that takes minutes, so that an interrupt hits the middle of it even on a slow machine."""


def test_a_chat_survives_a_killed_host_and_asks_for_confirmation(deployment: Deployment) -> None:
    """Confirmations with yes and no, kill -9 within an answer, and the same session resumed later."""
    asked: list[str] = []

    async def first(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(ScriptedCall("cli_look", {"text": "one two"}))
        await model.calls(ScriptedCall("cli_book", {"text": "a table"}))
        await model.says("It waits for you.")
        await model.hears()
        await model.says("Booked.")
        await model.hears()
        await model.calls(ScriptedCall("cli_book", {"text": "a boat"}))
        await model.says("It waits again.\n\nFor you.\n\n")
        await model.hears()
        await model.says("Not booked.")
        asked.append((await model.hears()).text)
        await model.says(LONG, pieces=10_000)

    async def second(model: ScriptedModel) -> None:
        await model.hears()
        await model.says("Told again.")
        asked.append((await model.hears()).text)
        await model.says("Still here.")

    async def third(model: ScriptedModel) -> None:
        asked.append((await model.hears()).text)
        await model.says("Next day.")

    async def main() -> None:
        async with (
            OpenAIServer(first, second, third, split=250, delay=0.02) as server,
            HostProcess(deployment, server) as host,
        ):
            async with at_terminal(deployment.folder, "chat", host.url) as chat:
                await chat.until("> ")
                chat.write(b"book a table\n")
                await chat.until("half of it (50%)")
                await chat.until("· cli_look done (")
                await chat.until("Book a table?")
                at = await chat.until("[y/N]: ")
                chat.write(b"y\n")
                at = await chat.until("Booked.", at)
                assert deployment.effects() == ["cli_look one two", "cli_book a table"]
                at = await chat.until("> ", at)
                chat.write(b"and a boat\n")
                at = await chat.until("Book a boat?", at)
                assert "again.\n\nFor you.\nBook a boat?" in chat.output
                at = await chat.until("[y/N]: ", at)
                chat.write(b"or rather a bus\n")
                at = await chat.until("Answer y to run it, or n to decline", at)
                at = await chat.until("[y/N]: ", at)
                chat.write(b"\n")
                at = await chat.until("Not booked.", at)
                at = await chat.until("> ", at)
                chat.write(b"tell me much\n")
                at = await chat.until("word7 ", at)
                await host.kill()
                at = await chat.until("Reconnecting: ", at)
                await host.start()
                at = await chat.until("Told again.", at)
                at = await chat.until("> ", at)
                chat.write(b"are you there\n")
                at = await chat.until("Still here.", at)
                await chat.until("> ", at)
                chat.write(b"\x04")
                assert await chat.wait_exit() == 0
                assert "Traceback" not in chat.output
                assert "word9999" not in chat.output
            assert deployment.effects() == ["cli_look one two", "cli_book a table"]
            await host.kill()
            await host.start()
            async with at_terminal(deployment.folder, "chat", "--resume", host.url) as chat:
                await chat.until("> book a table")
                await chat.until("Still here.")
                at = await chat.until("\n> ")
                chat.write(b"good morning\n")
                await chat.until("Next day.", at)
                chat.write(b"\x04")
                assert await chat.wait_exit() == 0

    asyncio.run(main())
    assert asked == ["tell me much", "are you there", "good morning"]
    (kept,) = (deployment.folder / "state" / "jackfield" / "sessions").iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert json.loads(kept.read_text())["token"]


def test_lines_from_a_pipe_are_answered_and_set_the_exit_status(deployment: Deployment) -> None:
    asked: list[str] = []

    async def script(model: ScriptedModel) -> None:
        for answer in ("One\x1b[31m.", "Two."):
            asked.append((await model.hears()).text)
            await model.says(answer)

    async def main() -> list[tuple[int, str, str]]:
        async with OpenAIServer(script) as server, deployment.host(server) as url:
            good = await command(deployment.folder, "chat", url, lines="first\n\n  second\n")
            long = await command(deployment.folder, "chat", url, lines="x" * 9000 + "\n")
            gone = await command(deployment.folder, "chat", "--resume", url)
            return [good, long, gone]

    good, long, gone = asyncio.run(main())
    # Control characters are removed.
    assert good[:2] == (0, "One[31m.\nTwo.\n")
    assert asked == ["first", "second"]
    assert long[0] == 1
    assert "at most 8000 characters, but this one has 9000" in long[2]
    # The end of a pipe ends the session, so there is nothing to resume.
    assert gone[0] == 1
    assert "no saved session for this host" in gone[2]


def test_a_banned_user_sees_for_how_long(deployment: Deployment) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears()
        await model.says("Hello.")

    async def main() -> tuple[Any, ...]:
        async with OpenAIServer(script) as server, deployment.host(server) as url:
            async with at_terminal(deployment.folder, "chat", url) as chat:
                await chat.until("> ")
                chat.write(b"hello\n")
                await chat.until("Hello.\n")
                store = await SqliteStore.open(str(deployment.folder / "jackfield.db"))
                await Bans(store).add("local", 3779)
                await store.close()
                chat.write(b"again\n")
                status = await chat.wait_exit()
            return status, chat.output, await command(deployment.folder, "chat", url, lines="hello\n")

    status, shown, (later, _, err) = asyncio.run(main())
    assert (status, later) == (1, 1)
    assert "banned from this host for another 1 h 2 min" in shown
    assert "banned from this host for another 1 h 2 min" in err


def test_a_missing_or_wrong_token_is_explained(deployment: Deployment) -> None:
    async def main() -> dict[str, tuple[int, str, str]]:
        results: dict[str, tuple[int, str, str]] = {}
        async with OpenAIServer() as server:
            key = {"own": {"digest": "sha256:" + "0" * 64, "user": "ada"}}
            async with deployment.host(server, keys=key) as url:
                results["no token"] = await command(deployment.folder, "chat", url)
                results["bad token"] = await command(deployment.folder, "chat", url, "--token-env", "CLI_KEY")
        return results

    results = asyncio.run(main())
    assert [status for status, _, _ in results.values()] == [1, 1]
    assert "requires a token" in results["no token"][2]
    assert "--token-env" in results["no token"][2]
    assert "does not accept the token" in results["bad token"][2]
