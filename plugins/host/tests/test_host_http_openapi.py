"""The OpenAPI document describes the host correctly: fuzzing finds no violation."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from host_harness import HostFolder, RunningHost, running_host, scripted_provider
from http_client import SESSION, http_client
from jackfield_host.app import ROUTES
from jackfield_host.endpoints.docs import ENDPOINTS, openapi_document
from jackfield_scripted import ScriptedModel
from starlette.routing import Route

SETTINGS = """\
max-stream-events = 3

[generation]
database = "none"

[phases.stateful]
enabled = false

# What a tool makes of its arguments is not in the document.
[[operations]]
include-path = "/execute/{tool}"

[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 400, 401, 403, 404, 408, 409, 422, 429, "5xx"]

# Nor is which time zones exist.
[[operations]]
include-path = "/chat"

[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 400, 401, 403, 404, 409, 429, "5xx"]
"""

TOOL = """
[parameters]
"path.tool" = "hst_look"
"""

PROGRAM = """\
from schemathesis.cli import schemathesis
from schemathesis.transport import requests as transport

# urllib3-future, which some packages bring in place of urllib3, does not count the connections it opens.
transport._count_opened_connections = lambda _: 0
schemathesis()
"""


async def agrees(model: ScriptedModel) -> None:
    while True:
        await model.hears()
        await model.says("Yes.")


async def fuzzed(folder: Path, url: str, *options: str) -> tuple[int, str]:
    """Run schemathesis against a host; return its output and exit status."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM,
        "--config-file", str(folder / "schemathesis.toml"), "run", f"{url}/openapi.json",
        "--continue-on-failure", "--request-timeout", "60", "--seed", "1", "--no-color", *options,
        cwd=folder, env={**os.environ, "PYTHONWARNINGS": "ignore", "NO_PROXY": "*"},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    out, _ = await asyncio.wait_for(process.communicate(), 600)
    return process.returncode or 0, out.decode()


def test_every_path_is_published() -> None:
    """This excludes the pages and endpoints of the console, and the WebSockets."""
    served = {route.path for route in ROUTES if isinstance(route, Route)}
    published = set(openapi_document()["paths"])
    assert published == {operation.path for operation in ENDPOINTS}
    assert published <= served


@asynccontextmanager
async def fuzzable(host_folder: HostFolder) -> AsyncIterator[RunningHost]:
    """Run a host without a tight rate limit."""
    async with scripted_provider(agrees) as served:
        tables = {"transports": {"openai": {**served.table, "voice": "webrtc"}}}
        options: dict[str, Any] = {"requests_per_minute": 1e6, "sessions_per_user": 1000}
        async with running_host(host_folder, served, tables=tables, **options) as host:
            yield host


def test_fuzzing_the_openapi_document_finds_no_violation(host_folder: HostFolder) -> None:
    """The fuzzer has no session."""

    async def main() -> None:
        async with fuzzable(host_folder) as host:
            (host_folder.path / "schemathesis.toml").write_text(SETTINGS)
            url = f"http://127.0.0.1:{host.port}"
            status, out = await fuzzed(host_folder.path, url, "--max-examples", "5")
        assert status == 0, out

    asyncio.run(main())


def test_fuzzing_with_a_session_finds_no_violation(host_folder: HostFolder) -> None:
    """The fuzzer knows a tool, too."""

    async def main() -> None:
        async with fuzzable(host_folder) as host:
            async with http_client(host) as ada:
                made = await ada.post("/execute/hst_look", json={"arguments": {"text": "a"}})
            token = made.json()["token"]
            (host_folder.path / "schemathesis.toml").write_text(SETTINGS + TOOL)
            holder = ("--phases", "fuzzing", "--max-examples", "8", "-H", f"{SESSION}: {token}")
            url = f"http://127.0.0.1:{host.port}"
            status, out = await fuzzed(host_folder.path, url, *holder, *named())
        assert status == 0, out

    asyncio.run(main())


def named() -> list[str]:
    """Return the options that choose the operations with a session or a tool."""
    chosen = [
        each.path for each in ENDPOINTS if any(one.name in (SESSION, "tool") for one in each.parameters)
    ]
    return [option for path in chosen for option in ("--include-path", path)]
