"""Lists the tools of a Python module as JSON; runs as a script in the environment of that module.

It imports no part of Jackfield, which may not be installed in that environment. The module's own output goes
to standard error, and the list to the file that the caller names.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any


class _ProbeError(Exception):
    """The module has no tools that can be listed."""


def _load(source: str) -> ModuleType:
    if not source.endswith(".py"):
        return importlib.import_module(source)
    spec = importlib.util.spec_from_file_location("imported_source", source)
    if spec is None or spec.loader is None:
        raise _ProbeError(f"{source} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    # Type hints are resolved through the module's entry.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _fastmcp(module: ModuleType, attribute: str) -> dict[str, Any]:
    from fastmcp import Client, FastMCP

    servers = {name: each for name, each in vars(module).items() if isinstance(each, FastMCP)}
    if attribute:
        servers = {name: each for name, each in servers.items() if name == attribute}
    distinct = {id(each): name for name, each in servers.items()}
    if not distinct:
        wanted = f" called {attribute}" if attribute else ""
        raise _ProbeError(f"the module has no FastMCP server{wanted} at its top level")
    if len(distinct) > 1:
        raise _ProbeError(f"the module has several servers; add :{' or :'.join(sorted(distinct.values()))}")
    (name,) = distinct.values()

    async def listed() -> list[dict[str, Any]]:
        async with Client(servers[name]) as client:
            return [each.model_dump(mode="json", by_alias=True) for each in await client.list_tools()]

    tools = [
        {
            "name": each["name"],
            "summary": each.get("description") or each.get("title"),
            "parameters": each.get("inputSchema") or {},
            "returns": each.get("outputSchema"),
            "hints": each.get("annotations") or {},
            "place": name,
        }
        for each in asyncio.run(listed())
    ]
    return {"title": servers[name].name, "tools": tools}


def _langchain(module: ModuleType, attribute: str) -> dict[str, Any]:
    from langchain_core.tools import BaseTool

    tools, seen = [], set()
    for place, tool in _places(vars(module), attribute):
        if isinstance(tool, BaseTool) and id(tool) not in seen:
            seen.add(id(tool))
            schema: Any = tool.tool_call_schema
            parameters = schema if isinstance(schema, dict) else schema.model_json_schema()
            tools.append(
                {"name": tool.name, "summary": tool.description, "parameters": parameters, "place": place}
            )
    if not tools:
        raise _ProbeError("the module has no LangChain tools at its top level")
    return {"title": module.__name__, "tools": tools}


def _places(names: dict[str, Any], attribute: str) -> Iterator[tuple[str, Any]]:
    """Yield every value in the module, and the members of its lists, each with its place."""
    for name, value in names.items():
        if attribute and name != attribute:
            continue
        yield name, value
        if isinstance(value, list | tuple):
            yield from ((f"{name}.{index}", each) for index, each in enumerate(value))


def main(kind: str, source: str, attribute: str, out: str) -> None:
    """Write the tools of a module, or the reason why they cannot be listed, as JSON to a file."""
    frameworks = {"fastmcp": ("fastmcp", _fastmcp), "langchain": ("langchain_core", _langchain)}
    framework, lister = frameworks[kind]
    result: dict[str, Any]
    try:
        if importlib.util.find_spec(framework) is None:
            raise _ProbeError(f"{framework.replace('_', '-')} is not installed in this environment")
        with contextlib.redirect_stdout(sys.stderr):
            result = lister(_load(source), attribute)
    except _ProbeError as error:
        result = {"error": str(error)}
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the module is third-party code
        result = {"error": f"importing it failed with {type(error).__name__}: {error}"}
    Path(out).write_text(json.dumps(result), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
