"""How work ends that has no end of its own, and when there is no room for more."""

from __future__ import annotations

import asyncio

from jackfield import ErrorType, ToolError
from jackfield_capability_types.agents import Report

from jackfield_testkit.agents_contract.office import Desk, Model, Office, on_a_loop
from jackfield_testkit.store_contract.verdict import give_up, holds, same
from jackfield_testkit.trials import refused


class EndingTests:
    """What happens when there is no report, or not yet."""

    @on_a_loop
    async def test_no_more_work_than_there_is_room_for(self, office: Office) -> None:
        """Of two pieces of work of one user at once one is refused; when the other ends there is room."""
        async with office.desks("silent") as desk:
            ann = desk("ann")
            for _ in range(2):
                await _cancelled(await _the_one_with_room(ann))

    @on_a_loop
    async def test_cancelled_work_ends(self, office: Office) -> None:
        """Nobody works on for somebody who does not wait any more."""
        async with office.desks("silent") as desk:
            working = await _the_one_with_room(desk("ann"))
            await _cancelled(working)

    @on_a_loop
    async def test_work_without_an_end_is_cut_short(self, office: Office) -> None:
        """What was found by then is the report, and it says why there is no more."""
        async with office.desks("endless", seconds=2) as desk:
            report = await desk("ann").hand_over()
        holds(report.cut_short, "work without an end was not cut short, or does not say so")
        holds(report.text, "what was found is not told")
        same(report.tools, (office.tools[0],), "what was used")

    @on_a_loop
    async def test_work_of_which_nothing_came_is_transient(self, office: Office) -> None:
        """A model that says nothing in its time has changed nothing, and another time may be better."""
        async with office.desks("silent", seconds=1) as desk:
            error = await refused(desk("ann").hand_over(), ErrorType.TRANSIENT, "work of which nothing came")
        same(error.partial_side_effects, False, "whether something was changed")
        holds(error.suggestion, "the failure does not say what to do")

    @on_a_loop
    async def test_a_fault_that_passes_is_transient(self, office: Office) -> None:
        """The provider of the model fails for now; and work that failed leaves its room to the next."""
        await _fails(office, "failing", ErrorType.TRANSIENT)

    @on_a_loop
    async def test_a_deployment_that_is_not_accepted_is_permanent(self, office: Office) -> None:
        """Trying the same again cannot help, and is not offered."""
        error = await _fails(office, "refusing", ErrorType.PERMANENT)
        same(error.retryable, False, "whether it can be tried again")


async def _fails(office: Office, model: Model, kind: ErrorType) -> ToolError:
    async with office.desks(model) as desk:
        await refused(desk("ann").hand_over(), kind, f"work with a model that is {model}")
        return await refused(desk("ann").hand_over(), kind, "the next work with it")


async def _the_one_with_room(desk: Desk) -> asyncio.Task[Report]:
    """Of two that are begun at once, the one that works on."""
    tasks = {asyncio.create_task(desk.hand_over()) for _ in range(2)}
    done, working = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    if len(done) > 1:
        give_up("two pieces of work were begun, and neither went on")
    error = done.pop().exception()
    if not isinstance(error, ToolError):
        give_up(f"work for which there is no room came to {error!r:.200}")
    same((error.type, error.retryable), (ErrorType.RATE_LIMIT, True), "the refusal of work without room")
    return working.pop()


async def _cancelled(working: asyncio.Task[Report]) -> None:
    working.cancel()
    await asyncio.wait({working})
    if not working.cancelled():
        give_up(f"cancelled work came to {working.exception() or working.result()!r:.200}")
