"""Any number of `kb_search` copies as installed packages, and the registry built from them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from bench.implementations.workload import PARAMETERS, TOOL

PLUGINS = ("jackfield-policies", "jackfield-observability", "jackfield-store-sqlite")

_MANIFEST = {
    "version": "1.0.0",
    "description": "Search the knowledge base.",
    "category": "retrieval",
    "sideEffects": "read_only",
    "idempotent": True,
    "requiresConfirmation": False,
    "allowedModes": ["text", "voice"],
    "latencyBudgetMs": 800,
    "parameters": PARAMETERS,
}
_GUIDE = '# {tool}\n\nSearch the knowledge base.\n\n```json\n{{"query": "opening hours"}}\n```\n'
_HANDLER = """\
from bench.implementations.workload import evidence
from jackfield import ok


async def execute(args, ctx):
    return ok(evidence(args["top_k"]))
"""


def tool_names(count: int) -> tuple[str, ...]:
    """Return the ids of the tools; the first is `kb_search` itself."""
    return (TOOL, *(f"{TOOL}_{number:03}" for number in range(1, count)))


def package_of(tool: str) -> str:
    """Return the import package of a tool."""
    return f"bench_{tool}"


def install(folder: Path, count: int, plugins: tuple[str, ...] = ()) -> dict[str, str]:
    """Install the tools and their registry in a folder; return the environment in which they are found.

    The registry allows more plugins if they are named.
    """
    site = folder / "site"
    for tool in tool_names(count):
        _install(site, tool)
    tests = Path(__file__).parent.parent
    environment = {
        "PYTHONPATH": os.pathsep.join([str(tests), str(site), os.environ.get("PYTHONPATH", "")]),
        "JACKFIELD_ALLOW": ",".join(("bench-*", *PLUGINS, *plugins)),
        "JACKFIELD_REGISTRY": str(folder / "tool_registry.json"),
    }
    subprocess.run(
        [sys.executable, "-m", "jackfield_cli", "build"],
        cwd=folder, env={**os.environ, **environment}, check=True, capture_output=True,
    )  # fmt: skip
    return environment


def _install(site: Path, tool: str) -> None:
    """Create what pip would install of one tool's package."""
    package = site / package_of(tool)
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "schema.json").write_text(json.dumps({"toolId": tool, **_MANIFEST}))
    (package / "guide.md").write_text(_GUIDE.format(tool=tool))
    (package / "handler.py").write_text(_HANDLER)
    info = site / f"{package.name}-1.0.0.dist-info"
    info.mkdir()
    name = package.name.replace("_", "-")
    (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: 1.0.0\n")
    (info / "entry_points.txt").write_text(f"[jackfield.tools]\n{tool} = {package.name}\n")
