"""Variants of `kb_search` on the sample knowledge base: a true difference is found, a null one is not."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import jackfield_tool_kb_search
import pytest
from click.testing import CliRunner
from jackfield import ToolCall
from jackfield.runtime import Runtime
from jackfield.settings import Settings
from jackfield_experiments.report import create_report
from jackfield_experiments.shared_figures import read_totals
from jackfield_kb.cli import kb
from jackfield_testkit.site_packages import SitePackages

PACKAGE = Path(jackfield_tool_kb_search.__file__).parent

HANDLERS = {
    "copy": "from jackfield_tool_kb_search.handler import execute\n",
    "brief": """\
from jackfield_tool_kb_search import handler


async def execute(args, ctx):
    return await handler.execute({**args, "top_k": 1}, ctx)
""",
}

QUERIES = ("brand guidelines", "who designs websites", "invoices", "project timeline", "photo room")

USERS = 150

ALLOW = ("jackfield-capability-kb", "jackfield-experiments", "jackfield-tool-kb-search", "kbx-*")


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Return a deployment with the sample knowledge base, `kb_search`, and two variants of it."""
    site = SitePackages(tmp_path / "site")
    schema = json.loads((PACKAGE / "schema.json").read_text())
    for variant, handler in HANDLERS.items():
        site.tool(
            "kb_search",
            distribution=f"kbx-{variant}",
            schema={**schema, "variant": variant},
            guide=(PACKAGE / "guide.md").read_text(),
            handler=handler,
        )
    monkeypatch.syspath_prepend(str(site.folder))
    experiment = {"tool": "kb_search", "variants": {"copy": 33, "brief": 33}, "control": 34}
    file = tmp_path / "experiments.json"
    file.write_text(json.dumps({"version": 1, "experiments": {"brevity": experiment}}))
    found = Settings(
        allow=ALLOW,
        registry=site.frozen(*ALLOW),
        store="memory",
        provider="none",
        experiments=file,
        tables={"capabilities": {"kb": {"folder": str(tmp_path / "kb"), "embeddings": "off"}}},
    )
    config = tmp_path / "jackfield.toml"
    config.write_text(f'[capabilities.kb]\nfolder = "{tmp_path / "kb"}"\nembeddings = "off"\n')
    registry = ("--registry", str(found.registry), "--config", str(config))
    added = CliRunner().invoke(kb, ["add", "--sample", *registry])
    assert added.exit_code == 0, added.output
    return found


async def experiment(settings: Settings) -> dict[str, Any]:
    """Let users search, and return the report."""
    runtime = await Runtime.start(settings)
    try:
        assert runtime.experiments
        # Every user asks every question, the next user begins with the next one.
        for turn in range(len(QUERIES)):
            for number in range(USERS):
                session = runtime.create_session("text", user=f"user{number}")
                query = QUERIES[(turn + number) % len(QUERIES)]
                arguments = json.dumps({"query": query}).encode()
                (result,) = await runtime.orchestrator.handle(
                    session, [ToolCall("kb_search", arguments, "c1")]
                )
                assert result.response.ok, result.text
    finally:
        # Closing an observer stores its last figures, which the store in memory still has.
        await runtime.close()
    totals = await read_totals(runtime.store)
    (found,) = create_report(runtime.experiments.current, {}, totals)["experiments"]
    return dict(found)


def test_a_true_difference_is_found_and_a_null_one_is_not(settings: Settings) -> None:
    found = asyncio.run(experiment(settings))
    arms = {each["arm"]: each for each in found["arms"]}
    assert sum(each["calls"] for each in arms.values()) == USERS * len(QUERIES)
    assert arms["brief"]["resultSize"]["p50"] < arms["control"]["resultSize"]["p50"]
    compared = {each["arm"]: each for each in found["comparisons"]}
    real = {
        arm: {each["measure"] for each in comparison["differences"] if each["real"]}
        for arm, comparison in compared.items()
    }
    assert "result size" in real["brief"], compared["brief"]
    assert not real["copy"], compared["copy"]
    assert compared["copy"]["sentence"].startswith("So far, every difference between copy and control")
    size = next(each for each in compared["brief"]["differences"] if each["measure"] == "result size")
    assert size["high"] < 0
