"""Jackfield's host, as `jackfield serve` runs it, with its own registry and store."""

from __future__ import annotations

import os
from pathlib import Path

import uvloop
from jackfield.settings import Settings
from jackfield_builder.pipeline import build
from jackfield_builder.snapshot import write_snapshot
from jackfield_host.app import create_app, open_host
from jackfield_host.server import Server, bind_socket, uvicorn_config
from jackfield_host.settings import HostSettings


async def main() -> None:
    # It runs in its own folder, which holds the store and the registry.
    settings = Settings(provider="local")
    if port := os.environ.get("BENCH_PORT"):
        table = {"base_url": f"http://127.0.0.1:{port}/v1", "retries": 0}
        settings = Settings(provider="openai", tables={"transports": {"openai": table}})
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
    async with open_host(settings, options) as host:
        listener = bind_socket(options)
        listener.listen(1024)
        print(listener.getsockname()[1], flush=True)
        await Server(uvicorn_config(create_app(host), options), host).serve(sockets=[listener])


if __name__ == "__main__":
    assert not Path("jackfield.toml").exists(), "the bench has settings of its own"
    uvloop.run(main())
