"""A host that serves the tools of the conformance suite, and a tool of this repository, to MCP clients."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from faults.deployment import Deployment, Host
from jackfield_testkit.command_server import run_command
from jackfield_testkit.site_packages import SitePackages

FAMILY = Path(__file__).parent / "conformance_tools" / "src" / "conformance_tools"


class InteropDeployment(Deployment):
    """Deploys the tools that clients from elsewhere call."""

    allow = (
        "conformance-tools",
        "jackfield-capability-images",
        "jackfield-mcp-server",
        "jackfield-observability",
        "jackfield-policies",
        "jackfield-store-sqlite",
        "jackfield-tool-format-datetime",
        "jackfield-transport-local",
    )

    def __init__(self, folder: Path, image_server: str | None = None) -> None:
        """`image_server` is the provider of pictures; without it, the tool that shows one is withheld."""
        self.tables = {"endpoints.mcp": {"trust_clients": True}}
        if image_server is not None:
            images = {"provider": "openai", "base_url": image_server, "folder": str(folder / "images")}
            self.tables |= {"capabilities.images": images}
        super().__init__(folder, expiry=600)

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, "OPENAI_API_KEY": "test"}

    def freeze(self) -> Path:
        site = SitePackages(self.folder / "site")
        entry_points = {
            "jackfield.families": {"conformance": FAMILY.name},
            "jackfield.plugins": {"samples": f"{FAMILY.name}.samples"},
        }
        site.distribution("conformance-tools", "1.0.0", entry_points)
        shutil.copytree(FAMILY, site.folder / FAMILY.name, ignore=shutil.ignore_patterns("__pycache__"))
        return site.frozen(*self.allow)


class BuiltDeployment(Deployment):
    """Deploys installed tools, and those of the MCP servers in its settings, with `jackfield build`."""

    def freeze(self) -> Path:
        self.registry = self.folder / "tool_registry.json"
        config = self.write_settings("build", lease=None)
        done = run_command(["build", "--config", str(config)], cwd=self.folder, env=os.environ)
        assert done.returncode == 0, done.stdout + done.stderr
        self.warnings = done.stdout + done.stderr
        return self.registry


@contextmanager
def serving(deployment: Deployment) -> Iterator[Host]:
    """Start a host, and stop it at the end."""
    with asyncio.Runner() as runner:
        host = Host(deployment, 1)
        try:
            runner.run(host.start())
            yield host
        finally:
            runner.run(host.close())
