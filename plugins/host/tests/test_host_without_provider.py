"""A host without a model provider: tools can be called, and everything says that conversations are off."""

from __future__ import annotations

import asyncio

import pytest
from host_harness import HostFolder, HostProcess, scripted_provider, wait_until
from http_client import SESSION, http_client
from jackfield_scripted import ScriptedModel


async def silent(model: ScriptedModel) -> None:
    await model.hears()


def test_a_host_without_a_provider_serves_calls_and_says_that_conversations_are_off(
    host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JACKFIELD_PROVIDER", "none")

    async def main() -> None:
        async with (
            scripted_provider(silent) as served,
            HostProcess(host_folder, served) as host,
            http_client(host) as http,
        ):
            called = await http.post("/execute/hst_look", json={"arguments": {"text": "one two"}})
            assert called.json()["envelope"]["data"]["words"] == 2
            token = called.json()["token"]
            again = await http.post(
                "/execute/hst_look", json={"arguments": {"text": "one"}}, headers={SESSION: token}
            )
            assert again.json()["envelope"]["data"]["words"] == 1
            tools = (await http.get("/tools")).json()
            assert "hst_look" in [each["toolId"] for each in tools["tools"]]
            assert tools["prompts"] == []
            assert (await http.get("/registry")).status_code == 200

            health = await http.get("/health")
            assert health.status_code == 200
            assert (health.json()["status"], health.json()["conversations"]) == ("healthy", "off")
            status = (await http.get("/status")).json()
            assert (status["provider"], status["conversations"], status["modes"]) == ("none", "off", [])
            assert status["providerChoice"]["hints"] == ["set `provider` to `auto` or `gemini` or `openai`"]

            chat = await http.post("/chat", json={"message": "hello"})
            assert (chat.status_code, chat.json()["error"]["code"]) == (503, "conversations_off")
            for first in ({"type": "start"}, {"type": "resume", "token": token, "lastEvent": 0}):
                async with host.connected("text") as ada:
                    await ada.say(first.pop("type"), **first)
                    assert (await ada.until_closed())[0] == 4012
                    (error,) = ada.of("error")
                    assert "no model provider" in error["message"]
                    assert "GET /status" in error["suggestion"]
            await wait_until(lambda: "provider  none, conversations are off" in host.output.read_text())
            assert "turn on   set `provider` to" in host.output.read_text()

    asyncio.run(main())
