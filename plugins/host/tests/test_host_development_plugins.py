"""`jackfield dev` with tools and a plugin in one distribution: what the plugin uses restarts the host."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from host_harness import HostFolder, HostProcess, scripted_provider, wait_until
from http_client import http_client
from jackfield.contract.snapshot import Snapshot
from jackfield_host.development.plugin_modules import PluginModules, plugin_modules
from jackfield_scripted import ScriptedModel
from jackfield_testkit.site_packages import SitePackages, write_files

SCHEMA: dict[str, Any] = {
    "family": "own",
    "defaults": {"category": "utility", "requires": ["own"]},
    "tools": {"own_answer": {"description": "Answers."}},
}

GUIDE = "# own_answer\n\nAnswers with what it knows.\n"

HANDLER = """\
from hst_own import shared, words
from hst_own.plugin import Extra

from jackfield import ok


async def own_answer(args, ctx):
    same = isinstance(ctx.own, Extra)
    return ok({"word": words.WORD, "shared": shared.WORD, "plugin": ctx.own.word, "same": same})
"""

PLUGIN = """\
from jackfield import hookimpl
from jackfield.offers import CapabilityOffer


class Extra:
    def __init__(self, settings, services):
        from .shared import WORD

        self.word = WORD


@hookimpl
def jackfield_capabilities():
    return [CapabilityOffer("own", Extra)]
"""


class OwnFamily:
    """A family and a plugin in the same package."""

    def __init__(self, site: SitePackages, **files: str) -> None:
        self.site = site
        self.folder = site.folder / "hst_own"
        groups = {"jackfield.families": {"own": "hst_own"}, "jackfield.plugins": {"own": "hst_own.plugin"}}
        site.distribution("hst-own", "1.0.0", groups)
        self.save(
            {
                "__init__.py": "",
                "schema.json": json.dumps(SCHEMA),
                "guide.md": GUIDE,
                "handler.py": HANDLER,
                "words.py": "WORD = 1\n",
                "shared.py": "WORD = 1\n",
                "plugin.py": PLUGIN,
                **files,
            }
        )

    def save(self, files: dict[str, str]) -> None:
        write_files(self.folder, files)

    def plugin_modules(self) -> PluginModules:
        return plugin_modules(Snapshot.load(self.site.frozen("hst-*")))["hst-own"]


@pytest.fixture
def family(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OwnFamily]:
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    yield OwnFamily(SitePackages(tmp_path / "site"))
    for name in [name for name in sys.modules if name.partition(".")[0] == "hst_own"]:
        del sys.modules[name]


async def silent(model: ScriptedModel) -> None:
    await model.hears()


async def answer(http: httpx.AsyncClient) -> dict[str, Any]:
    data: dict[str, Any] = (await http.post("/execute/own_answer", json={"arguments": {}})).json()
    found: dict[str, Any] = data["envelope"]["data"]
    return found


def test_a_tool_is_reloaded_beside_a_plugin_and_what_the_plugin_imports_restarts_the_host(
    family: OwnFamily, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HST_KEY", "k")
    monkeypatch.chdir(tmp_path)
    folder = HostFolder(tmp_path, tmp_path / "tool_registry.json", family.site.folder)

    async def main() -> None:
        async with (
            scripted_provider(silent, silent) as served,
            HostProcess(folder, served, command="dev") as host,
            http_client(host) as http,
        ):
            old = {"word": 1, "shared": 1, "plugin": 1, "same": True}
            assert await answer(http) == old
            family.save({"words.py": "WORD = 2\n"})
            await wait_until(lambda: "own_answer: built and loaded registry" in host.output.read_text())
            assert await answer(http) == {**old, "word": 2}
            assert "the host restarts" not in host.output.read_text()

            family.save({"shared.py": "WORD = 3\n"})
            reason = (
                "shared.py changed: the plugin of hst-own uses it, and plugins are loaded only at startup"
            )
            await wait_until(lambda: reason in host.output.read_text())
            await wait_until(lambda: host.output.read_text().count("Open http") == 2)
            assert await answer(http) == {"word": 2, "shared": 3, "plugin": 3, "same": True}

    asyncio.run(main())


def test_the_imports_inside_of_functions_and_of_parents_count(family: OwnFamily) -> None:
    before = family.plugin_modules()
    assert before.modules == {"hst_own", "hst_own.plugin", "hst_own.shared"}
    for name in ("words.py", "handler.py", "guide.md"):
        family.save({name: (family.folder / name).read_text() + "\n"})
        assert not before.changed(family.plugin_modules()), name
    for name in ("__init__.py", "plugin.py", "shared.py", "data.csv"):
        old = family.plugin_modules()
        family.save({name: "# new\n" + ((family.folder / name).read_text() if name != "data.csv" else "")})
        assert old.changed(family.plugin_modules()) == {family.folder / name}


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("import importlib", "importlib"),
        ("from importlib.resources import files", "importlib"),
        ("from hst_own.shared import *", "`import *`"),
        ("import sys; words = sys.modules.get('hst_own.words')", "modules"),
        ("words = __import__('hst_own.words')", "__import__"),
        ("from pathlib import Path; text = Path(__file__).parent", "__file__"),
    ],
)
def test_where_imports_do_not_tell_everything_counts(family: OwnFamily, line: str, named: str) -> None:
    family.save({"shared.py": f"WORD = 1\n{line}\n"})
    before = family.plugin_modules()
    assert before.unclear.startswith(f"shared.py uses {named}")
    family.save({"words.py": "WORD = 2\n"})
    assert before.changed(family.plugin_modules()) == {family.folder / "words.py"}
