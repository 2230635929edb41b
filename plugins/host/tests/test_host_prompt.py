"""The prompt of a session: a fixed beginning, a budget, and guides that come with an error."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import httpx
import pytest
from host_harness import HostFolder, Provider, running_host, scripted_provider, wait_until
from jackfield.settings import Settings
from jackfield_host.startup import startup_summary
from jackfield_scripted import ScriptedCall, ScriptedModel
from jackfield_sessions import session_factory
from jackfield_sessions.admission import Identity
from jackfield_sessions.session_factory import ClientLocale

VARIES = "\n\n## Just now\n\n"


def with_settings(monkeypatch: pytest.MonkeyPatch, **given: Any) -> None:
    """Run the hosts of this folder with further settings."""
    plain = HostFolder.settings

    def extended(self: HostFolder, served: Provider, tables: Any = None) -> Settings:
        return replace(plain(self, served, tables), **given)

    monkeypatch.setattr(HostFolder, "settings", extended)


async def listens(model: ScriptedModel) -> None:
    await model.hears()
    await model.says("Good day.")


async def asked(models: list[Any], number: int) -> Any:
    """Wait until a model has been asked, and return it."""
    await wait_until(lambda: len(models) > number and getattr(models[number], "exchanges", True))
    return models[number]


@pytest.mark.parametrize("provider", ["openai", "gemini"])
@pytest.mark.parametrize("mode", ["text", "voice"])
def test_every_prompt_starts_with_the_same_bytes_for_every_user_time_and_host(
    provider: str, mode: Any, host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Later(datetime):
        days = 0

        @classmethod
        def now(cls, tz: Any = None) -> Any:
            cls.days += 1
            return datetime.now(tz) + timedelta(days=cls.days)

    monkeypatch.setattr(session_factory, "datetime", Later)
    began: list[tuple[str, str, str]] = []

    async def visit(tls: bool) -> None:
        users = [("ada", "Asia/Tokyo"), ("bob", "Europe/Berlin")]
        async with (
            scripted_provider(
                listens, listens, provider=provider, **({"tls": True} if tls else {})
            ) as served,
            running_host(host_folder, served) as host,
        ):
            for user, zone in users:
                live = await host.sessions.open(mode, Identity(user), ClientLocale(zone, "en-GB"))
                await live.send_text("Hello.")
                model = await asked(served.server.models, users.index((user, zone)))
                fixed, separator, varies = model.instructions.partition(VARIES)
                assert separator
                assert user in varies
                assert zone in varies
                began.append((fixed, json.dumps(model.tools), varies))

    async def main() -> None:
        tls = provider == "gemini" and mode == "voice"
        await visit(tls)
        await visit(tls)

    asyncio.run(main())
    assert len(began) == 4
    assert len({fixed for fixed, _, _ in began}) == 1
    assert len({tools for _, tools, _ in began}) == 1
    assert len({varies for _, _, varies in began}) == 4
    assert list(json.loads(began[0][1])) == sorted(json.loads(began[0][1]))


def test_an_omitted_guide_is_sent_with_the_first_error_and_not_recorded(
    host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_settings(monkeypatch, prompt_tokens=1000)

    async def fails_twice(model: ScriptedModel) -> None:
        await model.hears()
        assert "Guide of hst_refuse." not in model.instructions
        assert "- hst_refuse: Summary of hst_refuse." in model.instructions
        answers: list[Any] = []
        for text in ("once", "twice"):
            answers += (await model.calls(ScriptedCall("hst_refuse", {"text": text}))).values()
        first, second = answers
        assert "Guide of hst_refuse." in first["meta"]["guide"]
        assert "guide" not in second["meta"]
        await model.says("It cannot be done today.")

    async def main() -> None:
        async with (
            scripted_provider(fails_twice) as served,
            running_host(host_folder, served) as host,
            host.client("text") as ada,
        ):
            await ada.say("text", text="Do it.")
            await ada.until_type("turn_complete")
            assert not served.failures
            told = [json.dumps(each) for each in ada.got]
            assert not any("Guide of hst_refuse." in each for each in told)

    asyncio.run(main())


def test_a_prompt_budget_that_is_too_small_is_reported_at_startup_and_the_host_serves(
    host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_settings(monkeypatch, prompt_tokens=1000)

    async def main() -> None:
        async with (
            scripted_provider(listens) as served,
            running_host(host_folder, served) as host,
            host.client("text") as ada,
        ):
            said = list(startup_summary(host.host, host_folder.settings(served), host.port, ()).lines())
            told = [line for line in said if line.startswith("  prompt    ")]
            assert [line.split()[1] for line in told] == ["text", "voice"]
            assert all("prompt_tokens allows only 1,000" in line for line in told)
            assert "for the declarations of" in told[0]
            await ada.say("text", text="Hello.")
            await ada.until_type("turn_complete")

    asyncio.run(main())


def test_the_tools_endpoint_reports_the_tokens_of_tools_and_prompts(host_folder: HostFolder) -> None:
    async def main() -> None:
        async with (
            scripted_provider() as served,
            running_host(host_folder, served) as host,
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{host.port}") as client,
        ):
            answer = (await client.get("/tools")).json()
            tools = {tool["toolId"]: tool["tokens"] for tool in answer["tools"]}
            guide = (await client.get("/tools/hst_look")).json()["guide"]
            assert tools["hst_look"]["guide"] == len(guide) // 4
            assert min(tools["hst_look"]["declaration"], tools["hst_look"]["summary"]) > 0
            written, spoken = answer["prompts"]
            # The provider of these tests is a server on this machine.
            assert (written["mode"], written["budget"]) == ("text", 3000)
            assert written["guides"] == sum(tokens["guideInPrompt"] == ["text"] for tokens in tools.values())
            assert spoken["guides"] == 0
            assert (await client.get("/tools/hst_look")).json()["tokens"] == tools["hst_look"]

    asyncio.run(main())


@pytest.mark.parametrize("mode", ["text", "voice"])
def test_the_length_of_an_answer_is_limited(
    mode: str, host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_settings(monkeypatch, answer_tokens=300)

    async def main() -> None:
        async with (
            scripted_provider(listens) as served,
            running_host(host_folder, served) as host,
            host.client(mode) as ada,
        ):
            await ada.say("text", text="Hello.")
            await ada.until_type("turn_complete")
            if mode == "text":
                assert served.server.requests[0]["max_tokens"] == 300
            else:
                (update,) = [
                    each for each in served.server.models[0].received if each["type"] == "session.update"
                ]
                assert update["session"]["max_output_tokens"] == 300

    asyncio.run(main())
