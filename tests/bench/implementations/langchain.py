"""langchain-core's StructuredTool, which gets a tool call and answers with the text of its message.

Arguments are checked by pydantic; callbacks are prepared, but there are no listeners. There is no protection
against duplicates, no budget, ban, deadline or audit.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bench.implementations.timer import measure, run
from bench.implementations.workload import TOOL


async def main() -> None:
    from bench.implementations.typed_tool import kb_search, read

    tool: Any = import_module("langchain_core.tools").StructuredTool.from_function(coroutine=kb_search)

    async def answer(arguments: str, _: int, call_id: str) -> str:
        call = {"type": "tool_call", "name": TOOL, "args": read(arguments), "id": call_id}
        text: str = (await tool.ainvoke(call)).content
        return text

    await measure(answer)


if __name__ == "__main__":
    run(main())
