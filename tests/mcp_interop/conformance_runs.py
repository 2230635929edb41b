"""Runs of the conformance suite against a host that serves MCP, and against the client of `mcp-tools`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from jackfield.contract.context import UserAnswer
from jackfield_mcp_tools.call_failures import CallError, NotConnectedError
from jackfield_mcp_tools.settings import OAuthSettings, ServerSettings
from jackfield_mcp_tools.supervised_server import ServerState, SupervisedServer
from jackfield_sessions.questions import form_defaults
from jackfield_testkit import ImageServer, ToolTestContext

from mcp_interop.conformance import REVISIONS, Scenario, run
from mcp_interop.deployment import InteropDeployment, serving

CLIENT_CREDENTIALS, SECRET = "auth/client-credentials-basic", "CONFORMANCE_CLIENT_SECRET"
"""The scenario of the only grant that a host can use, and the variable with its secret."""
SCENARIO_SECONDS = 20.0
"""When a scenario is stopped; the suite itself waits for 30 seconds."""
Results = dict[str, dict[str, Scenario]]


def server_results(folder: Path) -> Results:
    """Run the server's scenarios of both revisions against a host."""
    with ImageServer() as images, serving(InteropDeployment(folder, images.openai_url)) as host:
        url = f"http://127.0.0.1:{host.port}/mcp"
        return {revision: run("server", revision, url, folder / revision) for revision in REVISIONS}


def client_results(folder: Path) -> Results:
    """Run the client's scenarios of both revisions."""
    return asyncio.run(_client_results(folder))


async def _client_results(folder: Path) -> Results:
    path = folder / "client.sock"
    relay = Path(__file__).with_name("client_relay.py")
    # Without site packages, which the command does not need.
    command = f"{sys.executable} -S -E {relay} {path}"
    server = await asyncio.start_unix_server(_serve_scenario, path)
    async with server:
        return {
            revision: await asyncio.to_thread(run, "client", revision, command, folder / f"client-{revision}")
            for revision in REVISIONS
        }


async def _serve_scenario(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Play a scenario for a command of the suite, and tell it what failed."""
    job = json.loads(await reader.readline())
    try:
        async with asyncio.timeout(SCENARIO_SECONDS):
            await play(job["url"], job["context"], oauth=job["scenario"] == CLIENT_CREDENTIALS)
    except Exception as error:  # noqa: BLE001 - the command reports every failure to the suite
        writer.write(f"{type(error).__name__}: {error}\n".encode())
    writer.close()


async def play(url: str, context: dict[str, Any], *, oauth: bool) -> None:
    """Connect to a server as a host does, list its tools, and call each of them."""
    token = await _oauth(url, context) if oauth else None
    settings = ServerSettings(url=url, oauth=token, elicitation="ask", elicitation_timeout=10.0)
    server = SupervisedServer("suite", settings, lambda _: None)
    server.start()
    try:
        await _connected(server)
        schemas = {
            name: definition.wire["inputSchema"] for name, definition in (server.definitions or {}).items()
        }
        for name, arguments in _calls(context, schemas):
            # The host refuses some requests of a server, and goes on.
            with suppress(CallError):
                await server.call(name, arguments, _Person())
    finally:
        await server.close()


async def _connected(server: SupervisedServer) -> None:
    """Wait for the first connection; if it fails, do not wait for another one."""
    ready = asyncio.create_task(server.ready())
    while not ready.done() and server.state is not ServerState.DISCONNECTED:
        await asyncio.wait({ready}, timeout=0.02)
    if not ready.done():
        ready.cancel()
        raise NotConnectedError(server.reason)
    await ready


def _calls(context: dict[str, Any], schemas: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    if asked := context.get("toolCalls"):
        return [(each["name"], each["arguments"]) for each in asked]
    return [(name, _sample(schema, schemas)) for name, schema in schemas.items()]


def _sample(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    """Return arguments for a tool: a value for each required one."""
    # An argument that asks for a schema gets one that the server has listed.
    values: dict[str, Any] = {
        "number": 1,
        "integer": 1,
        "boolean": True,
        "object": next(iter(schemas.values())),
    }
    properties = schema.get("properties", {})
    return {name: values.get(properties[name].get("type"), "text") for name in schema.get("required", [])}


async def _oauth(url: str, context: dict[str, Any]) -> OAuthSettings:
    """Return the settings that an operator would write for the scenario's client."""
    os.environ[SECRET] = context["client_secret"]
    split = urlsplit(url)
    metadata = f"{split.scheme}://{split.netloc}/.well-known/oauth-protected-resource{split.path}"
    async with httpx.AsyncClient(trust_env=False, timeout=SCENARIO_SECONDS) as http:
        issuer = (await http.get(metadata)).json()["authorization_servers"][0]
    return OAuthSettings(issuer=issuer, client_id=context["client_id"], client_secret_env=SECRET)


class _Person(ToolTestContext):
    """A user who submits every form as it is shown."""

    async def ask_user(
        self, message: str, parameters: Mapping[str, Any], *, asked_by: str, seconds: float
    ) -> UserAnswer:
        """Answer with the values that the form shows first."""
        await super().ask_user(message, parameters, asked_by=asked_by, seconds=seconds)
        return UserAnswer("submitted", form_defaults(parameters))
