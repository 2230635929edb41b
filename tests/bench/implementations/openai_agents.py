"""openai-agents' `function_tool`, invoked as its runner does but without the runner.

Arguments are checked by pydantic. There is no tracing span, guardrail or hook around the call, which the
runner would add, and no guard against duplicates, no budget, ban, deadline or audit.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bench.implementations.timer import measure, run
from bench.implementations.workload import TOOL


async def main() -> None:
    from bench.implementations.typed_tool import kb_search, written

    tool: Any = import_module("agents").function_tool(kb_search)
    context: Any = import_module("agents.tool_context").ToolContext

    async def answer(arguments: str, _: int, call_id: str) -> str:
        ctx = context(None, tool_name=TOOL, tool_call_id=call_id, tool_arguments=arguments)
        return written(await tool.on_invoke_tool(ctx, arguments))

    await measure(answer)


if __name__ == "__main__":
    run(main())
