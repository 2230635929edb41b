"""`jackfield dev`: a saved file is checked, built and served while sessions go on."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from host_harness import HostFolder, HostProcess, Provider, scripted_provider, wait_until
from http_client import http_client
from jackfield_scripted import ScriptedCall, ScriptedModel
from jackfield_testkit.site_packages import SitePackages, write_files

HANDLER = """\
from hst_dev.words import ANSWER

from jackfield import ok


async def execute(args, ctx):
    return ok({"answer": ANSWER, "registry": ctx.session.registry_version})
"""

SCHEMA: dict[str, Any] = {
    "description": "Answers.",
    "parameters": {
        "type": "object",
        "additionalProperties": False,
        "properties": {"text": {"type": "string", "description": "The question.", "maxLength": 50}},
    },
}

GUIDE = "# dev_answer\n\nAnswers with a number.\n\n## Watch out\n\nThe first guide.\n"

PLUGIN = """\
from jackfield import hookimpl
from jackfield.offers import CapabilityOffer


@hookimpl
def jackfield_capabilities():
    return [CapabilityOffer("hst_extra", lambda settings, services: object())]
"""


async def asks(model: ScriptedModel) -> None:
    """Answer with the instructions, or call the tool."""
    while True:
        heard = await model.hears()
        if heard.text == "call":
            await model.calls(ScriptedCall("dev_answer", {}))
        await model.says("new" if "second guide" in model.instructions else "old")


class DevelopedTool:
    """A tool whose files a developer saves."""

    def __init__(self, site: Path) -> None:
        made = SitePackages(site)
        self.folder = made.tool(
            "dev_answer", distribution="hst-dev", schema=SCHEMA, guide=GUIDE, handler=HANDLER
        )
        self.site = made
        self.save("words.py", "ANSWER = 1\n")

    def save(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def save_schema(self, **fields: Any) -> None:
        before = json.loads((self.folder / "schema.json").read_text())
        self.save("schema.json", json.dumps({**before, **fields}))


@pytest.fixture
def tool(tmp_path: Path) -> DevelopedTool:
    return DevelopedTool(tmp_path / "site")


@pytest.fixture
def developed(tool: DevelopedTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HostFolder:
    monkeypatch.setenv("HST_KEY", "k")
    monkeypatch.chdir(tmp_path)
    return HostFolder(tmp_path, tmp_path / "tool_registry.json", tool.site.folder)


@asynccontextmanager
async def developing(folder: HostFolder) -> AsyncIterator[tuple[HostProcess, httpx.AsyncClient, Provider]]:
    async with (
        scripted_provider(asks, asks, asks, asks) as served,
        HostProcess(folder, served, command="dev") as host,
        http_client(host) as http,
    ):
        yield host, http, served


async def built(http: httpx.AsyncClient, after: int) -> dict[str, Any]:
    """Wait for the build after a number."""
    while True:
        status: dict[str, Any] = (await http.get("/development", params={"after": after})).json()
        if status["number"] > after:
            return status


async def answer(http: httpx.AsyncClient, **arguments: Any) -> dict[str, Any]:
    """Call the tool and return the envelope of the result."""
    response = await http.post("/execute/dev_answer", json={"arguments": arguments})
    envelope: dict[str, Any] = response.json()["envelope"]
    return envelope


def test_saved_files_are_served_and_a_session_goes_on(developed: HostFolder, tool: DevelopedTool) -> None:
    async def main() -> None:
        async with developing(developed) as (host, http, _), host.client("text") as ada:
            first = (await http.get("/registry")).json()["version"]
            await ada.say("text", text="call")
            done = await ada.until_type("tool_complete")
            assert done["data"] == {"answer": 1, "registry": first}
            await ada.until_type("turn_complete")
            assert ada.said("assistant")[-1] == "old"

            tool.save("guide.md", GUIDE.replace("first", "second"))
            status = await built(http, 0)
            assert (status["ok"], status["tools"]) == (True, ["dev_answer"])
            second = (await http.get("/registry")).json()["version"]
            notified = await ada.until_type("notification")
            assert (notified["code"], notified["registry"]) == ("registry_reloaded", second)
            assert notified["tools"] == ["dev_answer"]
            # The model gets the new guide with the next turn of the same session.
            await ada.say("text", text="hello")
            await ada.until_type("turn_complete", 2)
            assert ada.said("assistant")[-1] == "new"

            tool.save_schema(parameters={**SCHEMA["parameters"], "required": ["text"]})
            await built(http, status["number"])
            assert (await answer(http))["error"]["type"] == "VALIDATION"

            # Shared code of the package, in a file of the same size and within the same second.
            tool.save("words.py", "ANSWER = 2\n")
            await built(http, status["number"] + 1)
            tool.save("words.py", "ANSWER = 3\n")
            await built(http, status["number"] + 2)
            newest = (await http.get("/registry")).json()["version"]
            assert (await answer(http, text="?"))["data"]["answer"] == 3
            lines = await developed.audited(1)
            assert (lines[0]["pinnedVersion"], lines[0]["registryVersion"]) == (first, first)
            assert newest not in (first, second)

    asyncio.run(main())


def test_a_fault_is_reported_with_its_place_and_the_last_good_registry_stays(
    developed: HostFolder, tool: DevelopedTool
) -> None:
    async def main() -> None:
        async with developing(developed) as (host, http, _):
            good = (await http.get("/registry")).json()["version"]
            tool.save_schema(category="nonsense")
            status = await built(http, 0)
            (finding,) = status["findings"]
            assert (status["ok"], finding["severity"], finding["file"]) == (False, "error", "schema.json")
            assert (finding["path"], finding["subject"]) == ("/category", "dev_answer")
            assert finding["location"] == str(tool.folder / "schema.json")
            assert (await http.get("/registry")).json()["version"] == good
            assert (await answer(http))["data"]["answer"] == 1
            output = host.output.read_text()
            assert f"error {finding['code']}" in output
            assert "schema.json /category" in output
            assert "the last good registry is served" in output

            tool.save("handler.py", "import nowhere\n" + HANDLER)
            tool.save_schema(category="utility")
            status = await built(http, status["number"])
            while [each["file"] for each in status["findings"]] != ["handler.py"]:
                status = await built(http, status["number"])
            assert status["findings"][0]["path"] == "line 1"

            tool.save("handler.py", HANDLER.replace("ANSWER,", "ANSWER + 1,"))
            status = await built(http, status["number"])
            assert (status["ok"], [each for each in status["findings"] if each["severity"] == "error"]) == (
                True,
                [],
            )
            assert (await answer(http))["data"]["answer"] == 2

    asyncio.run(main())


def test_a_call_that_runs_finishes_with_the_code_and_the_version_it_began_with(
    developed: HostFolder, tool: DevelopedTool
) -> None:
    waits = HANDLER.replace(
        "    return",
        "    import asyncio\n    from pathlib import Path\n"
        f"    while not Path({str(developed.path / 'go')!r}).exists():\n"
        "        await asyncio.sleep(0.01)\n    return",
    )
    tool.save("handler.py", waits)

    async def main() -> None:
        async with developing(developed) as (host, http, _), host.client("text") as ada:
            first = (await http.get("/registry")).json()["version"]
            await ada.say("text", text="call")
            await ada.until_type("tool_start")
            tool.save("handler.py", HANDLER.replace("ANSWER,", "ANSWER + 6,"))
            await built(http, 0)
            assert (await answer(http))["data"]["answer"] == 7
            developed.open_gate("go")
            done = await ada.until_type("tool_complete")
            assert done["data"]["answer"] == 1
            await ada.until_type("turn_complete")
            await ada.say("text", text="call")
            done = await ada.until_type("tool_complete", 2)
            assert done["data"]["answer"] == 7
            second = (await http.get("/registry")).json()["version"]
            # In the order in which they finished: the call over HTTP, then the two of the session.
            assert [line["registryVersion"] for line in await developed.audited(3)] == [second, first, second]

    asyncio.run(main())


def test_a_tool_that_is_installed_meanwhile_and_a_changed_plugin_restart_the_host(
    developed: HostFolder, tool: DevelopedTool
) -> None:
    tool.site.plugin("hst-extra", PLUGIN)

    async def main() -> None:
        async with developing(developed) as (host, http, _), host.client("text") as ada:
            await ada.say("text", text="hello")
            await ada.until_type("turn_complete")
            pid = host.pid
            tool.site.tool(
                "dev_more", distribution="hst-more", schema=SCHEMA, guide=GUIDE.replace("answer", "more")
            )
            await ada.until_closed()
            await until_serving(http, lambda tools: "dev_more" in tools)
            async with host.client("text", token=ada.token, lastEvent=ada.last_event) as back:
                assert back.session
                assert back.session["resumed"]
                # A quick host loads the tool before it notices the new distribution and restarts for it.
                notified = (ada.of("notification") or [await back.until_type("notification")])[-1]
                assert notified["registry"] == (await http.get("/registry")).json()["version"]
                module = tool.site.folder / "hst_extra" / "__init__.py"
                module.write_text(PLUGIN.replace("hst_extra", "hst_other"))
                await back.until_closed()
            await until_serving(
                http, lambda _: "plugins are loaded only at startup" in host.output.read_text()
            )
            registry = await until_plugins(http, "hst_other")
            assert registry["deployment"] == "development"
            assert host.pid == pid

    asyncio.run(main())


async def until_serving(http: httpx.AsyncClient, condition: Any) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            # A host that is about to restart still answers, but accepts no sessions.
            ready = (await http.get("/health/ready")).status_code == 200
            tools = (await http.get("/tools")).json()["tools"] if ready else []
        except httpx.TransportError:
            tools = []
        if tools and condition([each["toolId"] for each in tools]):
            return
        await asyncio.sleep(0.05)
    raise AssertionError("the host does not serve what was expected")


async def until_plugins(http: httpx.AsyncClient, capability: str) -> dict[str, Any]:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            registry: dict[str, Any] = (await http.get("/registry")).json()
        except httpx.TransportError:
            await asyncio.sleep(0.05)
            continue
        if any(capability in each["offers"].get("capabilities", ()) for each in registry["plugins"]):
            return registry
        await asyncio.sleep(0.05)
    raise AssertionError(f"no plugin offers {capability}")


def test_dev_waits_for_a_registry_that_can_be_built(developed: HostFolder, tool: DevelopedTool) -> None:
    whole = (tool.folder / "schema.json").read_text()
    tool.save("schema.json", "{")

    async def main() -> None:
        async with scripted_provider(asks) as served:
            host = HostProcess(developed, served, command="dev")
            starting = asyncio.create_task(host.start())
            try:
                await wait_until(
                    lambda: host.output.exists() and "waiting for a change" in host.output.read_text()
                )
                assert "error JF201" in host.output.read_text()
                tool.save("schema.json", whole)
                await starting
                await wait_until(lambda: "Open http" in host.output.read_text())
                async with http_client(host) as http:
                    assert (await answer(http))["data"]["answer"] == 1
            finally:
                starting.cancel()
                await host.kill()

    asyncio.run(main())


FAMILY_SCHEMA = {
    "family": "dev_pair",
    "version": "1.0.0",
    "defaults": {"category": "utility"},
    "tools": {"dev_pair_one": {"description": "One."}, "dev_pair_two": {"description": "Two."}},
}

FAMILY = {
    "schema.json": json.dumps(FAMILY_SCHEMA),
    "guide.md": "# dev_pair_one\n\nOne.\n\n# dev_pair_two\n\nTwo.\n",
    "handler.py": (
        "from jackfield import ok\n\n\n"
        "async def dev_pair_one(args, ctx):\n    return ok({})\n\n\n"
        "async def dev_pair_two(args, ctx):\n    return ok({})\n"
    ),
}


def install_family(site: SitePackages, schema: str) -> Path:
    """Install the family, and return the path of its schema."""
    site.distribution("hst-pair", "1.0.0", {"jackfield.families": {"dev_pair": "hst_pair"}})
    folder = site.folder / "hst_pair"
    write_files(folder, {"__init__.py": "", **FAMILY, "schema.json": schema})
    return folder / "schema.json"


@pytest.mark.parametrize("has_registry", [False, True])
def test_dev_notices_that_an_unreadable_family_is_fixed(
    developed: HostFolder, tool: DevelopedTool, has_registry: bool
) -> None:
    schema = install_family(tool.site, FAMILY["schema.json"])

    async def main() -> None:
        if has_registry:
            async with developing(developed):
                pass
        schema.write_text("{")
        async with scripted_provider(asks) as served:
            host = HostProcess(developed, served, command="dev")
            starting = asyncio.create_task(host.start())
            try:
                await wait_until(
                    lambda: host.output.exists() and "waiting for a change" in host.output.read_text()
                )
                schema.write_text(FAMILY["schema.json"])
                await starting
                async with http_client(host) as http:
                    tools = [each["toolId"] for each in (await http.get("/tools")).json()["tools"]]
                    assert {"dev_answer", "dev_pair_one", "dev_pair_two"} <= set(tools)
            finally:
                starting.cancel()
                await host.kill()

    asyncio.run(main())


def test_dev_that_waits_notices_a_distribution_that_is_installed_meanwhile(
    developed: HostFolder, tool: DevelopedTool
) -> None:
    whole = (tool.folder / "schema.json").read_text()
    tool.save("schema.json", "{")

    async def main() -> None:
        async with scripted_provider(asks) as served:
            host = HostProcess(developed, served, command="dev")
            starting = asyncio.create_task(host.start())
            waits = "waiting for a change"
            try:
                await wait_until(lambda: host.output.exists() and waits in host.output.read_text())
                schema = install_family(tool.site, "{")
                await wait_until(lambda: "dev_pair" in host.output.read_text())
                tool.save("schema.json", whole)
                schema.write_text(FAMILY["schema.json"])
                await starting
            finally:
                starting.cancel()
                await host.kill()

    asyncio.run(main())


def test_a_missing_version_bump_is_reported_in_every_build_and_after_a_restart(
    developed: HostFolder, tool: DevelopedTool
) -> None:
    tool.site.plugin("hst-extra", PLUGIN)
    tool.save_schema(version="1.0.0")
    breaking = {**SCHEMA["parameters"], "required": ["text"]}

    def codes(status: dict[str, Any]) -> list[str]:
        return [each["code"] for each in status["findings"]]

    async def main() -> None:
        async with developing(developed) as (_, http, _):
            tool.save_schema(parameters=breaking)
            status = await built(http, 0)
            assert "JF901" in codes(status)
            for number in range(2, 5):
                tool.save("words.py", f"ANSWER = {number}\n")
                status = await built(http, status["number"])
                assert "JF901" in codes(status), number
            (tool.site.folder / "hst_extra" / "__init__.py").write_text(
                PLUGIN.replace("hst_extra", "hst_other")
            )
            await until_plugins(http, "hst_other")
            for number in range(5, 7):
                before = (await http.get("/development")).json()["number"]
                tool.save("words.py", f"ANSWER = {number}\n")
                status = await built(http, before)
                assert "JF901" in codes(status), number
            tool.save_schema(version="2.0.0")
            status = await built(http, status["number"])
            assert "JF901" not in codes(status)

    asyncio.run(main())


def test_hidden_and_temporary_files_are_no_sources(developed: HostFolder, tool: DevelopedTool) -> None:
    async def main() -> None:
        async with developing(developed) as (_, http, _):
            tool.save("words.py", "ANSWER = 2\n")
            await built(http, 0)
            # The build at the start may have found the change before the watch reported it.
            await asyncio.sleep(3)
            status = (await http.get("/development")).json()
            for name in (".schema.json.x1.part", "guide.md.tmp", ".notes.md"):
                tool.save(name, "{}")
            (tool.folder / ".cache").mkdir()
            tool.save(".cache/words.py", "ANSWER = 4\n")
            # Longer than a build takes.
            await asyncio.sleep(3)
            assert (await http.get("/development")).json()["number"] == status["number"]
            tool.save("words.py", "ANSWER = 3\n")
            await built(http, status["number"])
            assert (await answer(http))["data"]["answer"] == 3

    asyncio.run(main())


def test_a_build_whose_host_has_stopped_ends_quietly(developed: HostFolder) -> None:
    request = json.dumps(
        {"config": None, "flags": {}, "report": False, "keep_previous": False, "keep_listed": True}
    )

    async def main() -> str:
        read, write = os.pipe()
        worker = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "jackfield_host.development.build_worker",
            cwd=developed.path, env={**os.environ, "PYTHONPATH": str(developed.site)},
            stdin=asyncio.subprocess.PIPE, stdout=write, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        os.close(write)
        os.close(read)
        _, errors = await worker.communicate(request.encode() + b"\n")
        return errors.decode()

    assert asyncio.run(main()) == ""
    assert (developed.path / "tool_registry.json").exists()


def test_plain_serve_neither_watches_nor_reloads(developed: HostFolder, tool: DevelopedTool) -> None:
    async def main() -> None:
        async with developing(developed) as (_, http, _):
            version = (await http.get("/registry")).json()["version"]
        async with (
            scripted_provider(asks) as served,
            HostProcess(developed, served) as host,
            http_client(host) as http,
        ):
            assert (await http.get("/status")).json()["development"] is False
            for refused in (await http.get("/development"), await http.post("/development/listings")):
                assert (refused.status_code, refused.json()["error"]["code"]) == (404, "not_development")
            tool.save("words.py", "ANSWER = 2\n")
            await asyncio.sleep(1.0)
            assert (await answer(http))["data"]["answer"] == 1
            assert (await http.get("/registry")).json()["version"] == version

    asyncio.run(main())


def test_dev_refuses_production(developed: HostFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JACKFIELD_DEPLOYMENT", "production")

    async def main() -> None:
        async with scripted_provider(asks) as served:
            host = HostProcess(developed, served, command="dev")
            with pytest.raises(AssertionError, match="for development only"):
                await host.start()

    asyncio.run(main())
