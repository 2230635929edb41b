"""A registry that changes under a session: fatal in development, pinned in production."""

from __future__ import annotations

import asyncio
import json
import shutil

import pytest
from host_harness import HostFolder, HostProcess, scripted_provider
from jackfield.contract.snapshot import seal
from jackfield_scripted import ScriptedCall, ScriptedModel


async def looks(model: ScriptedModel) -> None:
    while True:
        heard = await model.hears()
        if heard.text == "look":
            await model.calls(ScriptedCall("hst_look", {"text": "a"}))
        await model.says("Yes.")


@pytest.mark.parametrize("deployment", ["development", "production"])
def test_a_session_of_another_registry_is_refused_in_development_and_continues_in_production(
    host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch, deployment: str
) -> None:
    monkeypatch.setenv("JACKFIELD_DEPLOYMENT", deployment)
    host_folder.create_store()
    registry = host_folder.path / "tool_registry.json"
    shutil.copy(host_folder.registry, registry)
    own = HostFolder(host_folder.path, registry, host_folder.site)
    whole = json.loads(registry.read_text())
    # A tool is gone, and another one has a new version.
    tools = [each for each in whole["tools"] if each["toolId"] != "hst_much"]
    look = next(each for each in tools if each["toolId"] == "hst_look")
    look["version"] = "9.0.0"
    fewer = seal({**whole, "tools": tools})

    async def main() -> None:
        async with scripted_provider(looks) as served:
            async with HostProcess(own, served) as host, host.client("text") as ada:
                await ada.say("text", text="hello")
                await ada.until_type("turn_complete")
            registry.write_text(json.dumps(fewer.wire))
            async with HostProcess(own, served) as host, host.connected("text") as back:
                await back.say("resume", token=ada.token, lastEvent=ada.last_event)
                if deployment == "development":
                    assert (await back.until_closed())[0] == 4007
                    assert f"pinned to registry {whole['version']}" in back.of("error")[0]["message"]
                    return
                await back.until(lambda: back.session)
                assert back.session
                assert back.session["registry"] == whole["version"]
                told = await back.until_type("notification")
                assert (told["code"], whole["version"] in told["text"]) == ("registry_changed", True)
                await back.say("text", text="look")
                await back.until_type("tool_complete")
                line = (await own.audited(1))[0]
                assert (line["pinnedVersion"], line["registryVersion"]) == (whole["version"], fewer.version)
                assert line["toolVersion"] == "9.0.0"
            continued = f"is pinned to registry {whole['version']}; the session continues with the tools of"
            lines = [each for each in host.output.read_text().splitlines() if continued in each]
            # An update to a new registry is no error.
            assert lines
            assert all(" warning " in each for each in lines)

    asyncio.run(main())
