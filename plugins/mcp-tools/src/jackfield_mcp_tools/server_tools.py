"""Lists the tools of all configured servers for a build, and reports what a person should review."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from jackfield.offers import (
    ListedTool,
    ListingProblem,
    ListingProblemKind,
    ListingRequest,
    ToolListing,
)
from jackfield_builder.listed_definitions import quoted, visible

from jackfield_mcp_tools.connection import ServerError, connect, innermost, list_definitions
from jackfield_mcp_tools.conversion import UnusableDefinitionError, convert
from jackfield_mcp_tools.definitions import Definition, from_origin, tool_ids
from jackfield_mcp_tools.settings import McpToolsSettings, ServerSettings
from jackfield_mcp_tools.suspicious_text import marked_texts

_Result = TypeVar("_Result")

Listed = dict[str, Definition] | ServerError
"""A server's definitions by name, or the reason why there are none."""

MAX_MARKS = 5
"""The maximum number of marks that a build shows for one tool."""


def read_tools(settings: McpToolsSettings, request: ListingRequest) -> ToolListing:
    """Return the tools of all servers: from the kept origins if a server has some, else as they are now."""
    kept: dict[str, dict[str, Definition]] = {}
    for pinned in map(from_origin, request.origins):
        kept.setdefault(pinned.server, {})[pinned.name] = pinned
    asked = {name: server for name, server in settings.servers.items() if name not in kept}
    listed: dict[str, Listed] = {**kept, **read_definitions(asked)}
    tools: list[ListedTool] = []
    problems: list[ListingProblem] = []
    for name, server in settings.servers.items():
        found = listed[name]
        if isinstance(found, ServerError):
            kind = ListingProblemKind.UNAVAILABLE if server.optional else ListingProblemKind.UNREACHABLE
            problems.append(ListingProblem(kind, name, f"{name} ({server.address}): {found}"))
            continue
        problems += _unmatched(name, server, found)
        foreign = request.other_tools | {
            tool for other, each in listed.items() if other != name for tool in _names(each)
        }
        for definition, tool_id in _offered(name, server, found):
            problems += _suspicious(definition, tool_id, foreign)
            try:
                converted = convert(definition, tool_id, server.overrides(definition.name), server.timeout)
            except UnusableDefinitionError as error:
                message = f"{visible(definition.name)!r} of {name}: {error}"
                problems.append(ListingProblem(ListingProblemKind.UNUSABLE, tool_id, message))
                continue
            tools.append(converted.tool)
            problems += [
                ListingProblem(ListingProblemKind.CONVERTED, tool_id, note) for note in converted.notes
            ]
    return ToolListing(tuple(tools), tuple(problems))


def read_definitions(servers: Mapping[str, ServerSettings]) -> dict[str, Listed]:
    """Connect to all servers at once, and return the definitions of each."""

    async def read_all() -> dict[str, Listed]:
        listed = await asyncio.gather(*(_read(name, server) for name, server in servers.items()))
        return dict(zip(servers, listed, strict=True))

    return run(read_all) if servers else {}


def run(work: Callable[[], Coroutine[Any, Any, _Result]]) -> _Result:
    """Run a coroutine to completion, even if this thread already has an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(work())).result()


async def _read(name: str, server: ServerSettings) -> Listed:
    found: dict[str, Definition] | None = None
    try:
        async with connect(server) as client:
            found = await list_definitions(name, client, server.connect_timeout)
    except ServerError as error:
        return error
    except Exception as error:  # noqa: BLE001 - the SDK raises many types for server and network failures
        if found is None:
            cause = innermost(error)
            return ServerError(
                f"its tools cannot be listed: {visible(str(cause))[:300] or type(cause).__name__}"
            )
    # The list is complete, even if closing the connection failed.
    return found


def _names(listed: Listed) -> Iterator[str]:
    if not isinstance(listed, ServerError):
        yield from listed


def _offered(
    name: str, server: ServerSettings, found: Mapping[str, Definition]
) -> Iterator[tuple[Definition, str]]:
    # All tools get their ids first, so that `allow` and `deny` do not change the ids of the offered tools.
    for tool, tool_id in sorted(tool_ids(name, found).items()):
        if server.offers(tool):
            yield found[tool], tool_id


def _unmatched(
    name: str, server: ServerSettings, found: Mapping[str, Definition]
) -> Iterator[ListingProblem]:
    for tool in sorted(set(server.tools) - set(found)):
        message = f"[capabilities.mcp.servers.{name}.tools.{tool}]"
        yield ListingProblem(ListingProblemKind.UNMATCHED, name, message)


def _suspicious(definition: Definition, tool_id: str, foreign: frozenset[str]) -> Iterator[ListingProblem]:
    shown = 0
    for each in marked_texts(definition.wire, foreign):
        for mark in each.marks:
            if shown == MAX_MARKS:
                return
            shown += 1
            around = (
                each.text[max(0, mark.start - 30) : mark.end + 30]
                if mark.end - mark.start < 8
                else (each.text[mark.start : mark.end])
            )
            message = f"{each.path}: {mark.why}: {quoted(around, 120)}"
            yield ListingProblem(ListingProblemKind.SUSPICIOUS, tool_id, message)
