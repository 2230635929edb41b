"""Fake installed distributions: a folder with the files that pip would write to site-packages.

A test module imports the fixtures with `from jackfield_testkit.site_packages import project, site`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from jackfield.settings import Settings
from jackfield_builder.pipeline import build
from jackfield_builder.snapshot import write_snapshot

from jackfield_testkit.command_server import run_command

SCHEMA: dict[str, Any] = {
    "toolId": "echo",
    "version": "1.0.0",
    "description": "Says a text again.",
    "category": "utility",
    "sideEffects": "none",
    "idempotent": True,
    "requiresConfirmation": False,
    "allowedModes": ["text", "voice"],
    "latencyBudgetMs": 100,
    "parameters": {
        "type": "object",
        "additionalProperties": False,
        "required": ["text"],
        "properties": {
            "text": {"type": "string", "description": "What to say.", "maxLength": 100},
            "times": {"type": "integer", "description": "How often.", "minimum": 1, "default": 1},
        },
    },
}
GUIDE = '# echo\n\nSays a text again.\n\n## Examples\n\nSay hello.\n\n```json\n{"text": "hello"}\n```\n'
HANDLER = """from jackfield import ok


async def execute(args, ctx):
    return ok({"said": args["text"] * args["times"]})
"""


class SitePackages:
    """A folder on the import path with distributions, all named `fab-...`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def distribution(self, name: str, version: str, entry_points: Mapping[str, Mapping[str, str]]) -> Path:
        """Write the metadata of a distribution: name, version, and entry points by group."""
        info = self.folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n")
        sections = [
            f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in entries.items())
            for group, entries in entry_points.items()
        ]
        (info / "entry_points.txt").write_text("\n".join(sections))
        return info

    def tool(
        self, tool_id: str, *, distribution: str | None = None, version: str = "1.0.0", **files: Any
    ) -> Path:
        """Install a tool; `schema`, `guide` and `handler` replace the default files, None omits a file."""
        name = distribution or f"fab-{tool_id.replace('_', '-')}"
        package = f"fab_{tool_id}" if distribution is None else distribution.replace("-", "_")
        self.distribution(name, version, {"jackfield.tools": {tool_id: package}})
        folder = self.folder / package
        write_tool(folder, tool_id, **files)
        return folder

    def family(self, name: str, files: Mapping[str, Any], *, version: str = "1.0.0") -> Path:
        """Install a family; `files` maps the paths in its package to their contents."""
        package = f"fab_{name}"
        self.distribution(f"fab-{name.replace('_', '-')}", version, {"jackfield.families": {name: package}})
        folder = self.folder / package
        write_files(folder, {"__init__.py": "", **files})
        return folder

    def plugin(self, name: str, source: str, *, version: str = "1.0.0") -> Path:
        """Install a plugin that is one module with this source."""
        module = name.replace("-", "_")
        self.distribution(name, version, {"jackfield.plugins": {"main": module}})
        (self.folder / module).mkdir()
        file = self.folder / module / "__init__.py"
        file.write_text(source)
        return file

    def enforcer(self) -> None:
        """Install a plugin whose policy enforces every field that a manifest can set."""
        self.plugin(
            "fab-enforcer",
            "from jackfield import hookimpl\nfrom jackfield.offers import PolicyOffer, Stage\n\n"
            "FIELDS = ('allowedModes', 'availability', 'rateLimit', 'requiresConfirmation')\n\n"
            "@hookimpl\ndef jackfield_policies():\n"
            "    return [PolicyOffer('all', Stage.ADMIT, 1, dict, enforces=FIELDS)]\n",
        )

    def frozen(self, *allow: str, name: str = "tool_registry.json") -> Path:
        """Freeze the tools and plugins of these distributions, and return the path of the registry."""
        settings = Settings(allow=allow, registry=self.folder / name)
        sys.path.insert(0, str(self.folder))
        try:
            built = build(settings, import_handlers=False)
        finally:
            sys.path.remove(str(self.folder))
        if built.snapshot is None:
            pytest.fail(f"the registry cannot be frozen: {built.findings}")
        write_snapshot(built.snapshot, settings.registry)
        return settings.registry

    def run(
        self, *arguments: str, stderr: int = subprocess.PIPE, **environ: str
    ) -> subprocess.CompletedProcess[str]:
        """Run `jackfield` in a process that may only use the distributions of this site."""
        path = os.pathsep.join([str(self.folder), *filter(None, [os.environ.get("PYTHONPATH")])])
        return run_command(
            arguments,
            cwd=self.folder.parent,
            env={**os.environ, "PYTHONPATH": path, "JACKFIELD_ALLOW": "fab-*", **environ},
            stderr=stderr,
        )

    def run_json(self, *arguments: str) -> Any:
        """Return the output of a command with `--json`; fail if it writes to stderr."""
        done = self.run(*arguments, "--json")
        if done.stderr:
            pytest.fail(done.stderr)
        return json.loads(done.stdout)


def write_tool(folder: Path, tool_id: str, **files: Any) -> None:
    """Write the files of a tool; a schema field with the value `...` is omitted."""
    schema = files.get("schema", {})
    contents = {
        "__init__.py": '"""A tool."""\n',
        "schema.json": {**SCHEMA, "toolId": tool_id, **schema} if isinstance(schema, dict) else schema,
        "guide.md": files.get("guide", GUIDE),
        "handler.py": files.get("handler", HANDLER),
    }
    folder.mkdir(parents=True)
    write_files(folder, contents)


def write_files(folder: Path, contents: Mapping[str, Any]) -> None:
    """Write files below a folder; a dict is written as JSON, and None omits the file."""
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, dict):
            path.write_text(json.dumps({k: v for k, v in content.items() if v is not ...}))
        elif isinstance(content, bytes):
            path.write_bytes(content)
        elif content is not None:
            path.write_text(content, "utf-8", errors="surrogatepass")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SitePackages]:
    """An empty site on the import path."""
    made = SitePackages(tmp_path / "site")
    monkeypatch.syspath_prepend(str(made.folder))
    yield made
    for name in [name for name in sys.modules if name.startswith("fab_")]:
        del sys.modules[name]


@pytest.fixture
def project(tmp_path: Path) -> Callable[..., Path]:
    """A function that writes the source of a tool package that is not installed."""

    def write(tool_id: str, *, pyproject: str | None = None, **files: Any) -> Path:
        folder = tmp_path / "projects" / tool_id.replace("_", "-")
        write_tool(folder / "src" / f"fab_{tool_id}", tool_id, **files)
        (folder / "pyproject.toml").write_text(
            pyproject
            or f'[project]\nname = "fab-{folder.name}"\nversion = "1.0.0"\n'
            f'[project.entry-points."jackfield.tools"]\n{tool_id} = "fab_{tool_id}"\n'
        )
        return folder

    return write
