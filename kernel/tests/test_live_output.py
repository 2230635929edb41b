"""The text of running work: complete, in order, limited, and ended with its block."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from jackfield.live_output import LiveOutput
from jackfield.partial_results import MAX_BYTES

Show = Callable[[str], None]


def test_all_text_is_yielded_before_the_result() -> None:
    async def work(show: Show) -> int:
        show("a")
        show("b")
        await asyncio.sleep(0.01)
        show("c")
        return 3

    async def main() -> tuple[str, int]:
        async with LiveOutput(work) as output:
            text = "".join([each async for each in output])
            return text, await output.result()

    assert asyncio.run(main()) == ("abc", 3)


def test_a_failure_is_raised_after_the_text_before_it() -> None:
    seen: list[str] = []

    async def work(show: Show) -> None:
        show("before")
        raise ValueError("no more")

    async def main() -> None:
        async with LiveOutput(work) as output:
            seen.extend([text async for text in output])
            await output.result()

    with pytest.raises(ValueError, match="no more"):
        asyncio.run(main())
    assert seen == ["before"]


def test_work_that_is_left_early_has_ended_when_the_block_ends() -> None:
    ended: list[str] = []

    async def work(show: Show) -> None:
        try:
            show("begun")
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            ended.append("cleaned up")

    async def main() -> None:
        async with LiveOutput(work) as output:
            async for _ in output:
                break
        assert ended == ["cleaned up"]

    asyncio.run(main())


def test_text_beyond_the_limit_of_partial_results_is_not_kept() -> None:
    async def work(show: Show) -> None:
        for _ in range(10):
            show("x" * MAX_BYTES)

    async def main() -> int:
        async with LiveOutput(work) as output:
            return sum([len(each) async for each in output])

    assert asyncio.run(main()) == MAX_BYTES
