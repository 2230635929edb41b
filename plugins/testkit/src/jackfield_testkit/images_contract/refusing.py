"""What happens when there is no picture."""

from __future__ import annotations

import pytest
from jackfield import ErrorType, ToolError
from jackfield_capability_types.images import ImageOrder

from jackfield_testkit.images_contract.studio import Studio, on_a_loop
from jackfield_testkit.store_contract.verdict import holds, same


class RefusingTests:
    """A failure is a `ToolError` that a model can act on."""

    @on_a_loop
    async def test_what_the_provider_will_not_draw_is_permanent(self, studio: Studio) -> None:
        """The model is told not to try the same again, and what to do instead."""
        refused = await _refusal(studio, "refusing")
        same(refused.type, ErrorType.PERMANENT, "the type of a refusal")
        same(refused.retryable, False, "whether a refusal can be tried again")
        holds(refused.suggestion, "a refusal comes without a suggestion")

    @on_a_loop
    async def test_a_provider_that_is_not_there_is_transient(self, studio: Studio) -> None:
        """Nothing was ordered, so nothing was paid for, and it may work later."""
        refused = await _refusal(studio, "unreachable")
        same(refused.type, ErrorType.TRANSIENT, "the type of the failure")
        same(refused.partial_side_effects, False, "whether something may have been paid for")

    @on_a_loop
    async def test_a_failure_leaves_nothing_behind(self, studio: Studio) -> None:
        """What was kept before is still there, and nothing half made is added."""
        async with studio.view() as view:
            (made,) = await view.generate(ImageOrder("a boat"))
        before = {path.name for path in studio.place.rglob("*")}
        for provider in ("refusing", "unreachable"):
            await _refusal(studio, provider)
        same({path.name for path in studio.place.rglob("*")}, before, "the files after failures")
        async with studio.view() as view:
            holds(await view.read(made.id), "a picture is gone after the failure of another order")


async def _refusal(studio: Studio, provider: str) -> ToolError:
    came: object
    async with studio.view(provider) as view:
        try:
            came = f"{len(await view.generate(ImageOrder('a boat')))} pictures"
        except ToolError as error:
            return error
        except Exception as error:  # noqa: BLE001 - whatever it is, the test names it
            came = f"{type(error).__name__}: {error}"
    raise pytest.fail.Exception(
        f"from a provider that is {provider} came {came}, not ToolError", pytrace=False
    )
