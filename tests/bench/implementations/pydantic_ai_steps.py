"""pydantic-ai's ToolManager as an agent uses it, still without the agent.

An agent prepares a step of its run for every message from the model, which is one call here, and makes a
message of every result. As in `pydantic_ai`, there is no guard against duplicates, no budget, ban, deadline
or audit.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

from bench.implementations.pydantic_ai import context, prepared
from bench.implementations.timer import measure, run
from bench.implementations.workload import TOOL


async def main() -> None:
    messages: Any = import_module("pydantic_ai.messages")
    manager, run_context = await prepared(), context()

    async def answer(arguments: str, number: int, call_id: str) -> str:
        nonlocal manager
        manager = await manager.for_run_step(replace(run_context, run_step=number + 1))
        call = messages.ToolCallPart(TOOL, arguments, call_id)
        result = await manager.handle_call(call)
        text: str = messages.ToolReturnPart(TOOL, result, call.tool_call_id).model_response_str()
        return text

    await measure(answer)


if __name__ == "__main__":
    run(main())
