"""MCP clients that this project did not write use the tools of a host, over HTTP and over stdio."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mcp_interop.deployment import InteropDeployment, serving
from mcp_interop.node_packages import is_installed, node, script
from mcp_interop.peer_clients import (
    READ,
    READ_ARGUMENTS,
    WRITE,
    WRITE_ARGUMENTS,
    Observed,
    Peer,
    Target,
    fastmcp_client,
    openai_agents_client,
    pydantic_ai_client,
    typescript_client,
)

needs_node = pytest.mark.skipif(not is_installed(), reason="the packages from npm are not installed")
# The clients of these SDKs leave streams for the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

ASKING: dict[str, Peer] = {
    "FastMCP": fastmcp_client,
    "FastMCP with a handshake": partial(fastmcp_client, mode="legacy"),
    "TypeScript SDK 1": partial(typescript_client, package="@modelcontextprotocol/sdk"),
    "TypeScript SDK 2": partial(typescript_client, package="@modelcontextprotocol/client"),
}
"""Clients whose user approves what the server asks."""
SILENT: dict[str, Peer] = {"Pydantic AI": pydantic_ai_client, "OpenAI Agents SDK": openai_agents_client}
"""Agents that cannot ask their user."""
NODE = {name for name in ASKING if name.startswith("TypeScript")}


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> InteropDeployment:
    return InteropDeployment(tmp_path_factory.mktemp("interop"))


@pytest.fixture(scope="module")
def http(deployment: InteropDeployment) -> Iterator[Target]:
    with serving(deployment) as host:
        yield Target(f"http://127.0.0.1:{host.port}/mcp", [], {})


@pytest.fixture
def stdio(deployment: InteropDeployment) -> Target:
    config = deployment.write_settings("stdio", lease=None)
    command = [sys.executable, "-m", "jackfield_cli", "mcp", "--config", str(config)]
    return Target(None, command, deployment.environment)


def cases(*names: str) -> list[Any]:
    return [pytest.param(name, marks=needs_node if name in NODE else ()) for name in names]


@pytest.mark.parametrize("name", cases(*ASKING, *SILENT))
def test_a_client_from_elsewhere_uses_the_tools_over_http(http: Target, name: str) -> None:
    check(name, asyncio.run({**ASKING, **SILENT}[name](http)))


@pytest.mark.parametrize("name", cases("FastMCP", "TypeScript SDK 1"))
def test_a_client_from_elsewhere_uses_the_tools_over_stdio(stdio: Target, name: str) -> None:
    check(name, asyncio.run({**ASKING, **SILENT}[name](stdio)))


def check(name: str, seen: Observed) -> None:
    assert {READ, WRITE, "json_schema_2020_12_tool"} <= set(seen.tools)
    assert seen.read["iso"] == "2026-03-08T14:30:00+00:00"
    assert "style" in seen.invalid
    assert "nowhere" in seen.unknown
    if name in ASKING:
        assert seen.questions == ["Go on?"]
        assert seen.write == {"approved": {"message": "Go on?"}}
    else:
        # The call did not run, and the agent learns that a person has to approve it.
        assert seen.write["error"]["type"] == "CONFIRMATION_REQUIRED"


def inspect(url: str, *arguments: str) -> tuple[int, Any]:
    """Run the command line of the inspector; return its exit code and its output."""
    program = script("@modelcontextprotocol/inspector", "clients/launcher/build/index.js")
    done = subprocess.run(
        [node(), str(program), "--cli", url, "--transport", "http", *arguments],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    return done.returncode, json.loads(done.stdout or done.stderr)


@needs_node
def test_the_inspector_lists_and_calls_the_tools(http: Target, tmp_path: Path) -> None:
    url = http.url or ""
    code, listed = inspect(url, "--method", "tools/list")
    assert code == 0
    tools = {tool["name"]: tool for tool in listed["tools"]}
    assert tools[READ]["annotations"]["readOnlyHint"] is True
    assert tools[WRITE]["annotations"]["readOnlyHint"] is False
    given = [f"{name}={value}" for name, value in READ_ARGUMENTS.items()]
    code, result = inspect(url, "--method", "tools/call", "--tool-name", READ, "--tool-arg", *given)
    assert (code, result["structuredContent"]["iso"]) == (0, "2026-03-08T14:30:00+00:00")
    code, result = inspect(url, "--method", "tools/call", "--tool-name", "nowhere")
    assert (code, result["error"]["code"]) == (5, "tool_not_found")
    given = [f"{name}={value}" for name, value in WRITE_ARGUMENTS.items()]
    code, result = inspect(url, "--method", "tools/call", "--tool-name", WRITE, "--tool-arg", *given)
    assert result["structuredContent"]["error"]["type"] == "CONFIRMATION_REQUIRED"
