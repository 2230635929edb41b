"""Toolsets: sessions get the tools and variants of their user, and keep them across hosts and restarts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from host_harness import ALLOW, HostFolder, Provider, running_host, scripted_provider
from http_client import http_client
from jackfield.settings import Settings, SettingsError
from jackfield.settings.toolset_settings import ToolsetSettings
from jackfield_host.security.api_keys import digest, new_key
from jackfield_scripted import Script, ScriptedCall, ScriptedModel
from jackfield_testkit.site_packages import SitePackages

PARAMETERS = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}

FAST = ToolsetSettings(without=("hst_hidden",), variants={"hst_look": "fast"}, organisations=("acme",))
PLAIN = ToolsetSettings(tools=("hst_hidden",), organisations=("acme",))
"""What the organisation gets after the settings have changed."""


@dataclass(frozen=True)
class ToolsetFolder(HostFolder):
    """The working folder of hosts with toolsets."""

    toolsets: Mapping[str, ToolsetSettings] = field(default_factory=dict)

    def settings(self, served: Provider, tables: Mapping[str, Any] | None = None) -> Settings:
        """Return the settings with the toolsets."""
        return replace(super().settings(served, tables), toolsets=self.toolsets)


@pytest.fixture(scope="module")
def toolset_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install a tool, a variant of it and another tool, and freeze them."""
    site = SitePackages(tmp_path_factory.mktemp("toolsets"))
    for name, tool_id, fields in (
        ("hst-look", "hst_look", {}),
        ("hst-look-fast", "hst_look", {"variant": "fast"}),
        ("hst-hidden", "hst_hidden", {}),
    ):
        site.tool(
            tool_id,
            distribution=name,
            schema={"description": f"Does what {name} does.", "parameters": PARAMETERS, **fields},
            guide=f"# {tool_id}\n\nSummary of {name}.\n",
            handler=f"async def execute(args, ctx):\n    return {{'by': {name!r}, 'text': args['text']}}\n",
        )
    site.frozen(*ALLOW)
    return site.folder


@pytest.fixture
def folder(toolset_site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ToolsetFolder:
    monkeypatch.syspath_prepend(str(toolset_site))
    monkeypatch.setenv("HST_KEY", "k")
    monkeypatch.chdir(tmp_path)
    registry = toolset_site / "tool_registry.json"
    return ToolsetFolder(tmp_path, registry, toolset_site, toolsets={"pro": FAST})


def access(**fields: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the settings of a key, and the headers of its user."""
    made = new_key("app", "ada")
    keys = {"app": {"digest": digest(made.key), "user": "ada", **fields}}
    return keys, {"authorization": f"Bearer {made.key}"}


def in_event_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test in its own event loop."""

    @wraps(test)
    def run(*args: Any, **fixtures: Any) -> None:
        asyncio.run(test(*args, **fixtures))

    return run


ACME = {"organisation": "acme"}


@in_event_loop
async def test_the_tools_of_a_session_are_those_of_its_organisation(folder: ToolsetFolder) -> None:
    keys, headers = access(**ACME)
    async with (
        scripted_provider() as served,
        running_host(folder, served, keys=keys) as host,
        http_client(host, **headers) as client,
    ):
        tools = {each["toolId"]: each for each in (await client.get("/tools")).json()["tools"]}
        assert tools["hst_look"]["variant"] == "fast"
        assert tools["hst_look"]["summary"] == "Summary of hst-look-fast."
        assert "hst_hidden" not in tools
        frozen = (await client.get("/registry")).json()["tools"]
        assert [each["variant"] for each in frozen if each["toolId"] == "hst_look"] == ["fast"]
        assert not any(each["toolId"] == "hst_hidden" for each in frozen)

        answer = (await client.post("/execute/hst_look", json={"arguments": {"text": "a"}})).json()[
            "envelope"
        ]
        assert answer["data"]["by"] == "hst-look-fast"
        assert answer["meta"]["variant"] == "fast"

        hidden = await client.get("/tools/hst_hidden")
        unknown = await client.get("/tools/hst_nowhere")
        assert hidden.status_code == unknown.status_code == 404
        assert hidden.json()["error"]["message"] == "There is no tool 'hst_hidden'."

        (hidden, unknown) = [
            (await client.post(f"/execute/{name}", json={"arguments": {"text": "a"}})).json()["envelope"][
                "error"
            ]
            for name in ("hst_hidden", "hst_nowhere")
        ]
        assert hidden["type"] == unknown["type"] == "NOT_FOUND"
        assert hidden["message"] == unknown["message"].replace("nowhere", "hidden")
    lines = await folder.audited(3)
    assert lines[0]["toolset"] == "pro"
    assert lines[0]["variant"] == "fast"
    assert lines[0]["organisation"] == "acme"


@in_event_loop
async def test_users_without_a_toolset_get_every_tool_as_it_is(folder: ToolsetFolder) -> None:
    keys, headers = access(organisation="other")
    async with (
        scripted_provider() as served,
        running_host(folder, served, keys=keys) as host,
        http_client(host, **headers) as client,
    ):
        tools = {each["toolId"]: each for each in (await client.get("/tools")).json()["tools"]}
        assert "variant" not in tools["hst_look"]
        assert "hst_hidden" in tools
        answer = (await client.post("/execute/hst_look", json={"arguments": {"text": "a"}})).json()[
            "envelope"
        ]
        assert answer["data"]["by"] == "hst-look"
        assert "variant" not in answer["meta"]
    (line,) = await folder.audited(1)
    assert not {"toolset", "variant"} & line.keys()


def looks_into(seen: list[Any]) -> Script:
    """A model that calls two tools for each message; `seen` gets what it was offered and told."""

    async def looks(model: ScriptedModel) -> None:
        while True:
            text = (await model.hears()).text
            ids = [f"call_look_{text}", f"call_hidden_{text}"]
            results = await model.calls(
                ScriptedCall("hst_look", {"text": text}, id=ids[0]),
                ScriptedCall("hst_hidden", {"text": text}, id=ids[1]),
            )
            offered = sorted(name for name in model.tools if name.startswith("hst_"))
            guides = ["hst-look-fast" in model.instructions, "hst-hidden" in model.instructions]
            found, refused = results[ids[0]], results[ids[1]]
            seen.append((offered, guides, found["data"]["by"], refused["error"]["message"]))
            await model.says("Done.", pieces=1)

    return looks


SEEN = (["hst_look"], [True, False], "hst-look-fast", "There is no tool 'hst_hidden'.")


@in_event_loop
async def test_a_session_keeps_its_toolset_on_another_host_after_the_settings_changed(
    folder: ToolsetFolder,
) -> None:
    keys, headers = access(**ACME)
    connection = {"additional_headers": headers}
    seen: list[Any] = []
    async with scripted_provider(looks_into(seen)) as served:
        async with (
            running_host(folder, served, keys=keys) as host,
            host.connected("text", **connection) as client,
        ):
            await client.say("start")
            first = await client.until(lambda: client.session)
            assert [each for each in _ids(first) if each.startswith("hst_")] == ["hst_look"]
            await client.say("text", text="one")
            await client.until_type("turn_complete")
            token = first["token"]
        changed = replace(folder, toolsets={"pro": PLAIN})
        async with (
            running_host(changed, served, keys=keys) as host,
            host.connected("text", **connection) as client,
        ):
            await client.say("resume", token=token)
            again = await client.until(lambda: client.session)
            assert [each for each in _ids(again) if each.startswith("hst_")] == ["hst_look"]
            await client.say("text", text="two")
            await client.until(lambda: len(seen) == 2)
            async with http_client(host, **headers) as http:
                # A new session has the new toolset.
                tools = [each["toolId"] for each in (await http.get("/tools")).json()["tools"]]
                assert tools == ["hst_hidden"]
    assert seen == [SEEN, SEEN]
    lines = await folder.audited(4)
    assert {line["toolset"] for line in lines} == {"pro"}
    assert [line.get("variant") for line in lines if line["tool"] == "hst_look"] == ["fast", "fast"]


def _ids(session: Mapping[str, Any]) -> list[str]:
    return [each["id"] if isinstance(each, dict) else each for each in session["tools"]]


@in_event_loop
async def test_a_key_may_name_the_toolset_of_its_sessions(folder: ToolsetFolder) -> None:
    keys, headers = access(toolset="kiosk")
    kiosk = replace(folder, toolsets={"kiosk": ToolsetSettings(tools=("hst_hidden",))})
    async with (
        scripted_provider() as served,
        running_host(kiosk, served, keys=keys) as host,
        http_client(host, **headers) as client,
    ):
        assert [each["toolId"] for each in (await client.get("/tools")).json()["tools"]] == ["hst_hidden"]


@pytest.mark.parametrize(
    ("toolset", "fault"),
    [
        (ToolsetSettings(tools=("hst_loook",)), "there is no tool 'hst_loook'; did you mean 'hst_look'?"),
        (ToolsetSettings(variants={"hst_look": "x"}), "there is no variant 'x'; its variants are fast"),
        (ToolsetSettings(variants={"hst_hidden": "x"}), "there is no variant 'x'; it has no variants"),
    ],
)
@in_event_loop
async def test_a_toolset_that_names_what_does_not_exist_stops_the_start(
    folder: ToolsetFolder, toolset: ToolsetSettings, fault: str
) -> None:
    async with scripted_provider() as served:
        with pytest.raises(SettingsError) as error:
            async with running_host(replace(folder, toolsets={"pro": toolset}), served):
                raise AssertionError
    assert fault in str(error.value)


@in_event_loop
async def test_a_key_with_an_unknown_toolset_stops_the_start(folder: ToolsetFolder) -> None:
    keys, _ = access(toolset="nowhere")
    async with scripted_provider() as served:
        with pytest.raises(SettingsError, match="there is no toolset 'nowhere'"):
            async with running_host(folder, served, keys=keys):
                raise AssertionError
