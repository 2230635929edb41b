"""FastMCP's server, called in its own process, without client and transport.

Arguments are checked by pydantic, the middleware chain is empty, the result is written as text and as
structured content. There is no guard against duplicates, no budget, ban, deadline or audit.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bench.implementations.timer import measure, run
from bench.implementations.workload import TOOL


async def main() -> None:
    from bench.implementations.typed_tool import kb_search, read

    server: Any = import_module("fastmcp").FastMCP("bench")
    server.tool(kb_search)

    async def answer(arguments: str, _: int, __: str) -> str:
        result = await server.call_tool(TOOL, read(arguments))
        text: str = result.content[0].text
        return text

    await measure(answer)


if __name__ == "__main__":
    run(main())
