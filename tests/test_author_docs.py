"""The pages for authors: the capability runs, and the same tool works in Jackfield and in its peers."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jackfield.invocation import as_handler
from jackfield_testkit import ToolTestContext
from jackfield_testkit.command_server import run_command

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```python\n# (\w+\.py)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def modules(page: str) -> dict[str, str]:
    """Return the Python blocks of a page that name their file in the first line."""
    return dict(BLOCK.findall((DOCS / page).read_text("utf-8")))


def jackfield(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return run_command(arguments, cwd=folder, env=os.environ, timeout=120)


def test_the_capability_shown_to_authors_passes_its_tests(tmp_path: Path) -> None:
    for name, text in modules("capabilities.md").items():
        (tmp_path / name).write_text(text, "utf-8")
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_acme_points.py"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "2 passed" in tested.stdout, tested.stdout


def test_the_streaming_handler_shown_to_authors_shows_its_parts_and_then_answers() -> None:
    handler: dict[str, Any] = {}
    exec(compile(modules("handlers.md")["parcel_status.py"], "parcel_status.py", "exec"), handler)
    execute: Any = as_handler(handler["execute"])
    context = ToolTestContext()
    answer = asyncio.run(execute({"numbers": ["A1", "A2"]}, context))
    assert answer.data == {"parcels": context.shown}
    assert [each["status"] for each in answer.data["parcels"]] == ["at the depot", "delivered"]
    failed = asyncio.run(execute({"numbers": ["A1", "B7"]}, context := ToolTestContext()))
    assert failed.failure is not None
    assert context.shown == [{"number": "A1", "carrier": "post", "status": "at the depot"}]


def test_the_lock_shown_to_authors_works_between_stores_and_after_a_kill(tmp_path: Path) -> None:
    """Three processes change one value; one of them is killed while it holds the lock."""
    (tmp_path / "acme_points.py").write_text(modules("capabilities.md")["acme_points.py"], "utf-8")
    script = tmp_path / "spend.py"
    script.write_text(
        "import asyncio, os, sys\n"
        "from acme_points import SessionPoints, StoreLock\n"
        "from jackfield import ToolError\n"
        "from jackfield_store_sqlite.store import SqliteStore\n\n\n"
        "async def main():\n"
        "    store = SqliteStore('points.db')\n"
        "    if sys.argv[1] == 'die':\n"
        "        await StoreLock(store, 'acme-points/ada').__aenter__()\n"
        "        os.kill(os.getpid(), 9)\n"
        "    spent = 0\n"
        "    try:\n"
        "        while True:\n"
        "            await SessionPoints(store, 'acme-points/ada').spend(1)\n"
        "            spent += 1\n"
        "    except ToolError:\n"
        "        print(spent)\n"
        "    await store.close()\n\n\n"
        "asyncio.run(main())\n",
        "utf-8",
    )

    def start(how: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(script), how], cwd=tmp_path, stdout=subprocess.PIPE, text=True
        )

    killed = start("die")
    killed.communicate(timeout=60)
    assert killed.returncode == -9
    spending = [start("spend") for _ in range(2)]
    spent = [int(each.communicate(timeout=60)[0]) for each in spending]
    assert sum(spent) == 100


def test_the_tool_for_comparison_passes_every_check(tmp_path: Path) -> None:
    assert jackfield("new-tool", "parcel_price", folder=tmp_path).returncode == 0
    package = tmp_path / "parcel-price" / "src" / "jackfield_tool_parcel_price"
    page = (DOCS / "coming-from.md").read_text("utf-8")
    (package / "handler.py").write_text(modules("coming-from.md")["handler.py"], "utf-8")
    shown = {"schema.json": r"^```json\n(.*?)^```$", "guide.md": r"^````markdown\n(.*?)^````$"}
    for name, pattern in shown.items():
        text, *_ = re.findall(pattern, page, re.MULTILINE | re.DOTALL)
        (package / name).write_text(text, "utf-8")
    report = json.loads(jackfield("validate", "parcel-price", "--json", folder=tmp_path).stdout)
    assert [each for each in report["findings"] if each["severity"] != "note"] == []


ARGUMENTS: tuple[dict[str, Any], ...] = ({"grams": 1200}, {"grams": 1200, "country": "US"})


def test_the_same_tool_works_in_the_peers_that_are_installed() -> None:
    shown = modules("coming-from.md")
    fastmcp: dict[str, Any] = {}
    exec(compile(shown["parcels_fastmcp.py"], "parcels_fastmcp.py", "exec"), fastmcp)
    good, bad = ARGUMENTS
    assert asyncio.run(fastmcp["mcp"].call_tool("parcel_price", good)).structured_content == {"cents": 610}
    with pytest.raises(fastmcp["ToolError"], match="US are not possible"):
        asyncio.run(fastmcp["mcp"].call_tool("parcel_price", bad))

    langchain: dict[str, Any] = {}
    exec(compile(shown["parcels_langchain.py"], "parcels_langchain.py", "exec"), langchain)
    assert langchain["parcel_price"].invoke(good) == {"cents": 610}
    assert langchain["parcel_price"].invoke(bad) == "Parcels to US are not possible."


@pytest.mark.parametrize("framework", ["fastmcp", "langchain"])
def test_the_tool_of_a_peer_can_be_imported(framework: str, tmp_path: Path) -> None:
    source = tmp_path / f"parcels_{framework}.py"
    source.write_text(modules("coming-from.md")[source.name], "utf-8")
    imported = jackfield("import", framework, source.name, folder=tmp_path)
    assert imported.returncode == 0, imported.stderr
    (schema,) = tmp_path.glob("*/src/*/schema.json")
    assert list(json.loads(schema.read_text("utf-8"))["tools"]) == ["parcel_price"]
