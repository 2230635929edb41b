"""Whether a handler holds the loop that all sessions share."""

from __future__ import annotations

from collections.abc import Iterator

from jackfield_testkit.tool_contract.case import Case
from jackfield_testkit.tool_contract.running import call, on_a_loop
from jackfield_testkit.tool_contract.watching import Hold, LoopWatch


def problems(case: Case, limit_ms: float, best_of: int) -> Iterator[str]:
    """Whether the best of a few runs still holds the loop for longer than the limit."""
    holds: list[Hold] = []
    for _ in range(case.tool.runs(best_of)):
        holds.append(on_a_loop(_watched(case)))
        if holds[-1].ms <= limit_ms:
            return
    best = min(holds)
    place = f" at {best.place}" if best.place else ""
    yield (
        f"the handler held the loop for {best.ms:.0f} ms, {best.how}{place}; "
        f"at most {limit_ms:.0f} are allowed; await what waits, move what computes into asyncio.to_thread, "
        "or make execute a plain def"
    )


async def _watched(case: Case) -> Hold:
    arguments, context = case.arguments(), case.context()
    async with LoopWatch(case.tool.source.folder) as watch:
        await call(case.tool, arguments, context)
    return watch.longest
