"""pydantic-ai's ToolManager alone, which is what its agents call tools through.

Arguments are checked by pydantic, retries counted. One step of a run is prepared and serves every call, and a
result is written without the message around it; `pydantic_ai_steps` does what an agent does. There is
no guard against duplicates, no budget, ban, deadline or audit.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bench.implementations.timer import measure, run
from bench.implementations.workload import TOOL


def context() -> Any:
    """Return the context of a run without a model."""
    return import_module("pydantic_ai").RunContext(
        deps=None,
        model=import_module("pydantic_ai.models.test").TestModel(),
        usage=import_module("pydantic_ai.usage").RunUsage(),
    )


async def prepared() -> Any:
    """Return a manager of the tool, ready for its first step."""
    from bench.implementations.typed_tool import kb_search

    toolset = import_module("pydantic_ai.toolsets").FunctionToolset([kb_search])
    manager = import_module("pydantic_ai.tool_manager").ToolManager(toolset)
    return await manager.for_run_step(context())


async def main() -> None:
    from bench.implementations.typed_tool import written

    manager = await prepared()
    part: Any = import_module("pydantic_ai.messages").ToolCallPart

    async def answer(arguments: str, _: int, call_id: str) -> str:
        return written(await manager.handle_call(part(TOOL, arguments, call_id)))

    await measure(answer)


if __name__ == "__main__":
    run(main())
