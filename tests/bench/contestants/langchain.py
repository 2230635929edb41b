"""langchain-core's StructuredTool, given a tool call and answering with the text of its message.

Arguments are checked by pydantic; callbacks are prepared, but nobody listens. There is no guard against
duplicates, no budget, ban, deadline or audit.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bench.contestants.job import TOOL
from bench.contestants.stopwatch import measure, run


async def main() -> None:
    from bench.contestants.typed import kb_search, read

    tool: Any = import_module("langchain_core.tools").StructuredTool.from_function(coroutine=kb_search)

    async def answer(arguments: str, _: int, call_id: str) -> str:
        call = {"type": "tool_call", "name": TOOL, "args": read(arguments), "id": call_id}
        text: str = (await tool.ainvoke(call)).content
        return text

    await measure(answer)


if __name__ == "__main__":
    run(main())
