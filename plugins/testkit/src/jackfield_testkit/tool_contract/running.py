"""Calling a tool as the registry calls it, and remembering what happened on the way."""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from jackfield import ErrorType, ToolContext, ToolError, ToolResponse, fail
from jackfield.registry.invoke import Handler

from jackfield_testkit.json_values import same_json
from jackfield_testkit.tool_contract.installed import InstalledTool
from jackfield_testkit.tool_contract.invoking import invoke

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Run:
    """One call of a tool and what came of it."""

    response: ToolResponse
    context: ToolContext
    reached: bool = False
    """Whether the arguments were valid, so that the handler was called."""
    returned: Any = None
    """What the handler itself returned, whatever it was."""
    raised: Exception | None = None
    seconds: float = 0.0
    changed_arguments: bool = False

    @property
    def crashed(self) -> bool:
        """Whether the handler raised what it should not have raised."""
        return self.raised is not None and not isinstance(self.raised, ToolError)


def on_a_loop(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a loop of its own and leave the thread's current loop as it was."""
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        return runner.run(main)


async def call(tool: InstalledTool, arguments: dict[str, Any], context: ToolContext) -> Run:
    """Judge the arguments, complete them in place, and run the handler; invalid ones do not reach it."""
    violations = tool.arguments.violations(arguments)
    if violations:
        message = "; ".join(f"{violation.path}: {violation.message}" for violation in violations)
        return Run(fail(ErrorType.VALIDATION, message), context)
    tool.arguments.complete(arguments)
    return await run(tool, arguments, context)


async def run(tool: InstalledTool, given: dict[str, Any], context: ToolContext) -> Run:
    """Run the handler with exactly these arguments."""
    untouched = copy.deepcopy(given)
    witness = _Witness(tool.handler, given)
    begun = time.perf_counter()
    response = await invocation(tool, given, context, witness)
    seconds = time.perf_counter() - begun
    return Run(
        response,
        context,
        reached=True,
        returned=witness.returned,
        raised=witness.raised,
        seconds=seconds,
        changed_arguments=not same_json(witness.given, untouched),
    )


def invocation(
    tool: InstalledTool, given: dict[str, Any], context: ToolContext, handler: Handler | None = None
) -> Coroutine[Any, Any, ToolResponse]:
    """The registry's own way to run a handler, with the limits that the tool's manifest states."""
    manifest = tool.manifest
    return invoke(
        handler or tool.handler, given, context, timeout_ms=manifest.timeout_ms, writes=manifest.writes
    )


class _Witness:
    """A handler that remembers what the one inside it did, which the registry hides from the model."""

    def __init__(self, handler: Handler, given: dict[str, Any]) -> None:
        self._handler = handler
        self.given = given
        self.returned: Any = None
        self.raised: Exception | None = None

    async def __call__(self, args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
        # The kernel hands out a copy, of which only the handler knows what became.
        self.given = args
        try:
            self.returned = await self._handler(args, ctx)
        except Exception as error:
            self.raised = error
            raise
        return cast("ToolResponse", self.returned)
