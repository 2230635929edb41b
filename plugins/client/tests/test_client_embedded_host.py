"""Both commands without a URL, and their messages about wrong usage."""

from __future__ import annotations

import asyncio
import sys

import pytest
from click.testing import CliRunner
from client_hosts import Deployment, command, free_port
from jackfield_client.commands import chat, talk
from jackfield_scripted import ScriptedModel
from jackfield_scripted.openai import OpenAIServer
from test_client_talk import write_wav


def test_a_session_with_the_embedded_host_can_be_resumed(deployment: Deployment) -> None:
    seen: list[str] = []

    async def script(model: ScriptedModel) -> None:
        seen.append((await model.hears()).text)
        assert "user: ada" in model.instructions
        await model.says("Noted.")

    async def again(model: ScriptedModel) -> None:
        heard = await model.hears()
        seen.append(heard.text)
        assert "Noted." in str(model.received)
        await model.says("The blue one.")

    async def main() -> list[tuple[int, str, str]]:
        async with OpenAIServer(script, again) as server:
            deployment.configure(server)
            first = await command(
                deployment.folder, "chat", "--user", "ada", "--keep", lines="the blue one\n"
            )
            other = await command(deployment.folder, "chat", "--user", "bob", "--resume", lines="which\n")
            same = await command(deployment.folder, "chat", "--user", "ada", "--resume", lines="which\n")
            return [first, other, same]

    first, other, same = asyncio.run(main())
    assert first[:2] == (0, "Noted.\n")
    assert other[0] == 1
    assert "no saved session for this host" in other[2]
    # The earlier conversation is printed first, then the new answer.
    assert same[:2] == (0, "Noted.\nThe blue one.\n")
    assert "> the blue one" in same[2]
    assert seen == ["the blue one", "which"]


def test_a_refused_provider_key_is_reported_once_without_reconnecting(deployment: Deployment) -> None:
    async def refuses(model: ScriptedModel) -> None:
        await model.hears()
        await model.fails("invalid_api_key", "no such key")

    async def main() -> tuple[int, str, str]:
        async with OpenAIServer(refuses) as server:
            deployment.configure(server)
            return await command(deployment.folder, "chat", lines="hello\n")

    status, out, err = asyncio.run(main())
    assert (status, out) == (1, "")
    assert "Reconnecting" not in err
    assert err.splitlines()[-1].startswith("Error: The host cannot reach its model. The provider rejected")


def test_talk_starts_an_embedded_host_too(deployment: Deployment) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears_speech("hello there")
        await model.says("Hello.")

    async def main() -> tuple[int, str, str]:
        async with OpenAIServer(script) as server:
            deployment.configure(server)
            return await command(
                deployment.folder, "talk", "--fast", str(write_wav(deployment.folder / "q.wav", 400))
            )

    status, out, err = asyncio.run(main())
    assert (status, out) == (0, "you: hello there\nassistant: Hello.\n"), err


def test_an_unreachable_model_is_reported_without_a_traceback(deployment: Deployment) -> None:
    deployment.configure(f"http://127.0.0.1:{free_port()}/v1")
    wav = str(write_wav(deployment.folder / "q.wav", 100))
    status, _, err = asyncio.run(command(deployment.folder, "talk", wav))
    assert status == 1
    assert "The host cannot reach its model." in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["http://127.0.0.1:1", "--user", "ada"], 2, "--user cannot be used with a URL"),
        (["http://127.0.0.1:1", "--provider", "x"], 2, "--provider cannot be used with a URL"),
        (["ftp://127.0.0.1"], 2, "is not the address of a host"),
        (
            ["http://127.0.0.1:1", "--token-env", "NOT_THERE"],
            2,
            "NOT_THERE (--token-env) is empty or not set",
        ),
        (["--token-env", "CLI_KEY"], 2, "--token-env needs a URL"),
        (["http://agent.example", "--token-env", "CLI_KEY"], 2, "--insecure"),
        (["http://127.0.0.1:1"], 1, "No server is listening at http://127.0.0.1:1"),
        (["--config", "nowhere.toml"], 2, "nowhere.toml"),
    ],
)
def test_wrong_usage_is_explained(
    deployment: Deployment, arguments: list[str], status: int, message: str
) -> None:
    done = CliRunner().invoke(chat, arguments)
    assert (done.exit_code, message in done.output) == (status, True), done.output


def test_chat_without_a_url_says_what_to_install_if_there_is_no_host(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jackfield_host.uvicorn_server", None)
    done = CliRunner().invoke(chat, [])
    assert done.exit_code == 2
    assert "pip install" in done.output


def test_talk_checks_its_files_before_it_connects(deployment: Deployment) -> None:
    done = CliRunner().invoke(talk, ["missing.wav", "http://127.0.0.1:1"])
    assert done.exit_code == 1
    assert "missing.wav: there is no such file" in done.output
    done = CliRunner().invoke(talk, ["http://127.0.0.1:1"])
    assert (done.exit_code, "There is no WAV file to send" in done.output) == (2, True)


def test_chat_prints_which_provider_answers_and_why(deployment: Deployment) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears()
        await model.says("Hello.")

    async def main() -> tuple[int, str, str]:
        async with OpenAIServer(script) as server:
            deployment.configure(server)
            return await command(deployment.folder, "chat", lines="hello\n")

    status, out, err = asyncio.run(main())
    assert (status, out) == (0, "Hello.\n")
    assert err.startswith("(provider: openai; the `provider` setting names it)\n")
