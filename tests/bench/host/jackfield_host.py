"""Jackfield's host, as `jackfield serve` runs it, with its own registry and store."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import uvloop
from jackfield.settings import Settings
from jackfield_builder.pipeline import build
from jackfield_builder.snapshot import write_snapshot
from jackfield_host.settings import HostSettings
from jackfield_host.uvicorn_server import serve
from jackfield_testkit.site_packages import SitePackages


def install_tool() -> None:
    """Install a tool that costs nothing, so that the cost of a call is the host's."""
    made = SitePackages(Path("site").absolute())
    made.tool("echo")
    sys.path.insert(0, str(made.folder))


async def main() -> None:
    # It runs in its own folder, which holds the store and the registry.
    store = os.environ.get("BENCH_STORE", "")
    settings = Settings(provider="local", store=store)
    if port := os.environ.get("BENCH_PORT"):
        table = {"base_url": f"http://127.0.0.1:{port}/v1", "retries": 0}
        settings = Settings(provider="openai", store=store, tables={"transports": {"openai": table}})
    if registry := os.environ.get("JACKFIELD_REGISTRY"):
        settings = replace(settings, registry=Path(registry))
    else:
        if store:
            install_tool()
        built = build(settings, import_handlers=False)
        assert built.snapshot, built.findings
        write_snapshot(built.snapshot, settings.registry)
    # The benchmark measures the cost of a session, not the number of sessions of a user.
    many = {
        "max_sessions": 20_000,
        "sessions_per_user": 20_000,
        "requests_per_minute": 1e9,
        "start_seconds": 600,
    }
    options = HostSettings.load({"port": 0, **many})
    await serve(settings, options, lambda _, port: print(port, flush=True))


if __name__ == "__main__":
    assert not Path("jackfield.toml").exists(), "the bench has settings of its own"
    uvloop.run(main())
