"""`jackfield chat` as a real process with a scripted provider."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
from pathlib import Path
from typing import Any

import pytest
from jackfield_scripted import Refusal, ScriptedCall, ScriptedModel
from jackfield_scripted.openai import OpenAIServer
from jackfield_testkit.command_server import start_command
from provider_sessions import tools


def configure(folder: Path, server: OpenAIServer, provider: str = "openai") -> None:
    """Configure a deployment with this server, or with a provider that needs none."""
    (folder / "jackfield.toml").write_text(
        f'provider = "{provider}"\nstore = "memory"\n'
        f'[transports.openai]\nbase_url = "{server.base_url}"\napi_key_env = "FAB_KEY"\nretries = 0\n'
    )


async def chat(
    folder: Path, server: OpenAIServer, lines: str, *options: str, provider: str = "openai"
) -> tuple[int, str, str]:
    """Run the command with these lines; return its exit status and output."""
    configure(folder, server, provider)
    process = await start_command(
        ["chat", "--user", "ada", *options],
        cwd=folder, env={**os.environ, "FAB_KEY": "k", "NO_COLOR": "1"},
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await asyncio.wait_for(process.communicate(lines.encode()), 60)
    return process.returncode or 0, out.decode(), err.decode()


@pytest.fixture
def built(site: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Build a registry of tools that leave a trace."""
    plugins = "jackfield-client,jackfield-policies,jackfield-transport-*"
    monkeypatch.setenv("JACKFIELD_ALLOW", f"fab-*,{plugins}")
    tools(site, tmp_path / "log.txt")
    rebuild()
    return tmp_path


def rebuild() -> None:
    """Build the registry of the installed tools."""
    from jackfield.settings import Settings
    from jackfield_builder.pipeline import build
    from jackfield_builder.snapshot import write_snapshot

    settings = Settings.load()
    made = build(settings, import_handlers=False)
    assert made.snapshot, made.findings
    write_snapshot(made.snapshot, settings.registry)


def test_a_terminal_without_forms_asks_in_text(built: Path, site: Any) -> None:
    site.plugin("fab-forms", "from jackfield_scripted.form_transport import *\n")
    rebuild()

    async def main() -> tuple[int, str, str]:
        async with OpenAIServer() as server:
            return await chat(built, server, "form fab_note\n", provider="forms")

    status, out, err = asyncio.run(main())
    assert status == 0, err
    assert "Which values shall I use for fab_note?" in out


@pytest.mark.parametrize("approve", [True, False])
def test_a_conversation_calls_a_tool_and_asks_for_confirmation(built: Path, approve: bool) -> None:
    seen: dict[str, Any] = {}

    async def script(model: ScriptedModel) -> None:
        seen["asked"] = (await model.hears()).text
        seen["told"] = model.instructions
        await model.calls(ScriptedCall("fab_look", {"text": "one two"}))
        await model.says("Two words.")
        await model.hears()
        await model.calls(ScriptedCall("fab_book", {"text": "a table"}))
        await model.says("It waits for you.")
        await model.hears()
        seen["settled"] = str(model.received)
        await model.says("So be it.")

    async def main() -> tuple[int, str, str]:
        async with OpenAIServer(script) as server:
            return await chat(built, server, "count\nbook it\n", *(["--yes"] if approve else []))

    status, out, err = asyncio.run(main())
    assert (status, seen["asked"]) == (0, "count")
    assert out.splitlines() == ["Two words.", "It waits for you.", "Book a table?", "So be it."]
    assert "· fab_look done" in err
    assert "user: ada" in seen["told"]
    assert "You are writing in a chat" in seen["told"]
    assert "fab_look" in seen["told"]
    assert ("approved" if approve else "declined") in seen["settled"]
    assert "done fab_book" in (built / "log.txt").read_text() or not approve
    assert "Traceback" not in err


WARM_GREENHOUSE = """
from jackfield import ok


async def execute(args, ctx):
    return ok({"status": "the greenhouse is being warmed"})
"""


@pytest.mark.parametrize("approve", [True, False])
def test_the_local_agent_understands_what_became_of_a_call(built: Path, site: Any, approve: bool) -> None:
    """A session reports it in a sentence for language models, which the user must not see."""
    package = site.tool(
        "fab_greenhouse",
        category="action",
        sideEffects="writes",
        idempotent=False,
        requiresConfirmation=True,
        description="Warm the greenhouse.",
        parameters={"type": "object", "properties": {}, "additionalProperties": False},
        preview="Warm the greenhouse?",
    )
    (package / "guide.md").write_text("# Greenhouse\n\nTurns on the heating of the greenhouse.\n")
    (package / "handler.py").write_text(WARM_GREENHOUSE)
    rebuild()

    async def main() -> tuple[int, str, str]:
        async with OpenAIServer() as server:
            options = ["--yes"] if approve else []
            return await chat(built, server, "warm the greenhouse\n", *options, provider="local")

    status, out, err = asyncio.run(main())
    assert status == 0, err
    waiting, preview, *rest = out.splitlines()
    assert (waiting.startswith("This is waiting for your approval"), preview) == (
        True,
        "Warm the greenhouse?",
    )
    answer = "\n".join(rest)
    assert ("is being warmed" in answer) == approve
    assert ("nothing was done" in answer) == (not approve)
    assert "fab_greenhouse" not in answer


@pytest.mark.parametrize(
    ("refusal", "sentence"),
    [
        (Refusal(401, "invalid_api_key", "no"), "rejected this deployment's API key"),
        (Refusal(429, "insufficient_quota", "no"), "deployment's provider quota is used up"),
    ],
)
def test_provider_errors_are_shown_as_a_sentence(built: Path, refusal: Refusal, sentence: str) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.says("Never.")

    async def main() -> tuple[int, str, str]:
        async with OpenAIServer(script, refusals=[refusal] * 5) as server:
            return await chat(built, server, "hello\n")

    _, out, err = asyncio.run(main())
    assert sentence in err
    assert "Never" not in out
    assert "Traceback" not in err


def test_wrong_settings_are_reported_with_a_remedy(built: Path) -> None:
    async def main() -> list[tuple[int, str, str]]:
        async with OpenAIServer() as server:
            return [
                await chat(built, server, "", "--provider", "opnai"),
                await chat(built, server, "", "--config", str(built / "other.toml")),
            ]

    (built / "other.toml").write_text(
        'prompts = "nowhere"\nprovider = "openai"\n[transports.openai]\napi_key_env = "FAB_KEY"\n'
    )
    (first, _, unknown), (second, _, missing) = asyncio.run(main())
    assert (first, second) == (1, 1)
    assert "provider: no installed plugin offers 'opnai'; choose one of gemini, local, openai" in unknown
    # A path in a settings file is relative to the folder of the file.
    assert f"prompts: there is no directory '{built / 'nowhere'}'" in missing


def test_the_prompts_ship_with_the_conversation() -> None:
    from importlib import resources

    ours = resources.files("jackfield_sessions").joinpath("prompts")
    assert {each.name for each in ours.iterdir()} >= {"core.md", "voice.md", "text.md"}


def test_control_c_stops_the_answer_but_not_the_conversation(built: Path) -> None:
    """In a terminal the answer stops, and the next line is answered."""
    heard: list[str] = []

    async def script(model: ScriptedModel) -> None:
        heard.append((await model.hears()).text)
        await model.calls(ScriptedCall("fab_slow_look", {"text": "x"}))
        await model.says("I stopped.")
        heard.append((await model.hears()).text)
        await model.says("Still here.")

    async def main() -> bytes:
        ours, theirs = pty.openpty()
        async with OpenAIServer(script) as server:
            configure(built, server)
            process = await start_command(
                ["chat"],
                cwd=built, env={**os.environ, "FAB_KEY": "k", "NO_COLOR": "1"},
                stdin=theirs, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
            )  # fmt: skip
            os.close(theirs)
            assert process.stdout
            shown = b""

            async def until(words: bytes) -> None:
                nonlocal shown
                while words not in shown:
                    piece = await asyncio.wait_for(process.stdout.read(4096), 60)  # type: ignore[union-attr]
                    assert piece, shown
                    shown += piece

            os.write(ours, b"look for it\n")
            await until(b"fab_slow_look")
            process.send_signal(signal.SIGINT)
            await until(b"I stopped.")
            await asyncio.sleep(0.2)
            process.send_signal(signal.SIGINT)
            await until(b"Ctrl-D to quit")
            os.write(ours, b"are you there\n")
            await until(b"Still here.")
            os.write(ours, b"\x04")
            assert await asyncio.wait_for(process.wait(), 60) == 0
            os.close(ours)
            return shown

    shown = asyncio.run(main())
    assert heard == ["look for it", "are you there"]
    assert b"Traceback" not in shown
