"""What the planner makes of requests as people write them, on the real model and the real registry.

The requests in `local_held_out` were written before the planner was tuned, and nothing was tuned to them.
"""

from __future__ import annotations

import asyncio

import local_development
import local_held_out
import pytest
from jackfield import Mode
from local_session import failures, session


def test_requests_that_it_was_not_tuned_to() -> None:
    requests = local_held_out.REQUESTS
    failed = failures(requests)
    assert len(requests) >= 40
    assert len(failed) <= 0.15 * len(requests), failed


def test_requests_that_it_was_tuned_to() -> None:
    requests = local_development.REQUESTS
    failed = failures(requests)
    assert len(failed) <= 0.08 * len(requests), failed


@pytest.mark.parametrize("mode", ["text", "voice"])
def test_small_talk_calls_no_tool(mode: Mode) -> None:
    async def calls() -> list[str]:
        called = []
        for said in local_held_out.SMALL_TALK:
            async with session(mode) as talk:
                answer = await talk.says(said)
                assert answer.strip()
                called += [said] if talk.calls else []
        return called

    assert len(local_held_out.SMALL_TALK) >= 10
    assert asyncio.run(calls()) == []
