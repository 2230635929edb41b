"""MCP clients that this project did not write. Each makes the same calls, through its public interface."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, NamedTuple, cast

from mcp_interop.node_packages import INSTALLED, node

READ, READ_ARGUMENTS = "format_datetime", {"datetime": "2026-03-08T14:30:00Z", "locale": "en-GB"}
INVALID_ARGUMENTS = {"style": "loud"}
WRITE, WRITE_ARGUMENTS = "test_confirmation", {"message": "Go on?"}


class Target(NamedTuple):
    """A server: the URL of its endpoint, or the command that runs it over stdio."""

    url: str | None
    command: list[str]
    environ: dict[str, str]


class Observed(NamedTuple):
    """What a client saw."""

    tools: list[str]
    read: Any
    """The structured content of a read."""
    invalid: str
    """The message about invalid arguments."""
    unknown: str
    """The message about a tool that does not exist."""
    questions: list[str]
    """What the server asked the user."""
    write: Any
    """The structured content of a write that needs confirmation, or the envelope of its failure."""


async def fastmcp_client(target: Target, *, mode: str = "auto") -> Observed:
    """FastMCP's client, whose user approves."""
    from fastmcp import Client
    from fastmcp.client.elicitation import ElicitResult
    from fastmcp.client.transports import StdioTransport

    questions: list[str] = []

    async def approve(message: str, *_: object) -> ElicitResult[dict[str, bool]]:
        questions.append(message)
        return ElicitResult(action="accept", content={"approve": True})

    transport: Any = target.url or StdioTransport(
        target.command[0], target.command[1:], target.environ, keep_alive=False
    )
    async with Client(transport, elicitation_handler=approve, mode=cast(Any, mode)) as client:
        tools = [tool.name for tool in await client.list_tools()]
        read = await client.call_tool(READ, READ_ARGUMENTS)
        invalid = await client.call_tool(READ, INVALID_ARGUMENTS, raise_on_error=False)
        unknown = await message_of(client.call_tool("nowhere", {}))
        write = await client.call_tool(WRITE, WRITE_ARGUMENTS, raise_on_error=False)
    return Observed(
        tools, read.structured_content, text_of(invalid), unknown, questions, write.structured_content
    )


async def pydantic_ai_client(target: Target) -> Observed:
    """An agent of Pydantic AI whose model makes the calls; it has no way to ask the user."""
    from fastmcp.client.transports import StdioTransport
    from pydantic_ai import Agent, ModelRequest, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.mcp import MCPToolset
    from pydantic_ai.messages import ModelMessage, RetryPromptPart, ToolReturnPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    calls = [(READ, READ_ARGUMENTS), (READ, INVALID_ARGUMENTS), ("nowhere", {}), (WRITE, WRITE_ARGUMENTS)]
    offered: list[str] = []
    answers: list[Any] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        offered[:] = [tool.name for tool in info.function_tools]
        last = messages[-1]
        assert isinstance(last, ModelRequest)
        answers.extend(
            part.content for part in last.parts if isinstance(part, ToolReturnPart | RetryPromptPart)
        )
        if len(answers) == len(calls):
            return ModelResponse([TextPart("done")])
        return ModelResponse([ToolCallPart(*calls[len(answers)])])

    transport: Any = target.url or StdioTransport(
        target.command[0], target.command[1:], target.environ, keep_alive=False
    )
    agent = Agent(FunctionModel(model), toolsets=[MCPToolset(transport, max_retries=3)])
    async with agent:
        await agent.run("Go.")
    read, invalid, unknown, write = answers
    return Observed(offered, read, str(invalid), str(unknown), [], json.loads(first_line(write)))


async def openai_agents_client(target: Target) -> Observed:
    """An agent of the OpenAI Agents SDK whose model makes the calls; it has no way to ask the user."""
    from agents import Agent, RunConfig, Runner
    from agents.mcp import MCPServer, MCPServerStdio, MCPServerStreamableHttp

    from mcp_interop.scripted_model import ScriptedModel

    server: MCPServer
    if target.url:
        server = MCPServerStreamableHttp({"url": target.url}, client_session_timeout_seconds=30)
    else:
        command = {"command": target.command[0], "args": target.command[1:], "env": target.environ}
        server = MCPServerStdio(cast(Any, command), client_session_timeout_seconds=30)
    model = ScriptedModel([(READ, READ_ARGUMENTS), (READ, INVALID_ARGUMENTS), (WRITE, WRITE_ARGUMENTS)])
    async with server:
        agent = Agent("caller", model=model, mcp_servers=[server])
        await Runner.run(agent, "Go.", run_config=RunConfig(tracing_disabled=True))
        unknown = await message_of(server.call_tool("nowhere", {}))
    read, invalid, write = model.answers
    return Observed(model.offered, json.loads(read), invalid, unknown, [], json.loads(first_line(write)))


async def typescript_client(target: Target, *, package: str) -> Observed:
    """The client of a TypeScript SDK, whose user approves."""
    import asyncio

    job = {
        "package": package,
        "modules": str(INSTALLED),
        "url": target.url,
        "command": target.command,
        "environ": target.environ,
        "read": [READ, READ_ARGUMENTS, INVALID_ARGUMENTS],
        "write": [WRITE, WRITE_ARGUMENTS],
    }
    program = Path(__file__).parent / "typescript_client.mjs"
    process = await asyncio.create_subprocess_exec(
        node(), str(program), json.dumps(job), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    out, err = await process.communicate()
    if process.returncode:
        raise RuntimeError(err.decode())
    return Observed(**json.loads(out))


Peer = Callable[[Target], Coroutine[Any, Any, Observed]]


async def message_of(call: Awaitable[Any]) -> str:
    """Return the message of a call that has to fail."""
    try:
        result = await call
    except Exception as error:  # noqa: BLE001 - every client has its own
        return str(error)
    raise AssertionError(f"the call did not fail: {result}")


def text_of(result: Any) -> str:
    """Return the text of a result."""
    return "\n".join(block.text for block in result.content)


def first_line(text: Any) -> str:
    """Return the envelope, which is the first text of a failure."""
    first: str = text[0] if isinstance(text, list) else str(text).splitlines()[0]
    return first
