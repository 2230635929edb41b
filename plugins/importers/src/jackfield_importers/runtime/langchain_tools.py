"""Calls the LangChain tools of a module."""

from __future__ import annotations

import asyncio
import importlib
from typing import Any

from jackfield import ErrorType, ToolResponse, fail, ok

from .wire_arguments import wire_arguments

MAX_MESSAGE = 500


async def call(
    module: str, name: str, place: str, args: dict[str, Any], *, writes: bool, encoded: str = ""
) -> ToolResponse:
    """Call the tool at a place in the module, such as `search` or `tools.2`."""
    from langchain_core.tools import ToolException
    from pydantic_core import to_jsonable_python

    # The first import may read files, so it must not block the event loop.
    attribute, _, index = place.partition(".")
    tool = getattr(await asyncio.to_thread(importlib.import_module, module), attribute)
    if index:
        tool = tool[int(index)]
    if tool.name != name:
        return fail(ErrorType.PERMANENT, f"The tool {name} is no longer at {place} in the original module.")
    arguments = wire_arguments(encoded, args) if encoded else args
    try:
        result = await tool.ainvoke(arguments)
    except ToolException as error:
        message = str(error)[:MAX_MESSAGE] or "The tool failed."
        return fail(ErrorType.PERMANENT, message, partial_side_effects=writes)
    return ok({"result": to_jsonable_python(result, fallback=str)})
