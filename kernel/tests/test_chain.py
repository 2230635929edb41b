"""The policy chain: its order, and the way back of an answer."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from jackfield import ErrorType, Failure, ToolResponse, fail, ok
from jackfield.governance import Call, Policy, Proceed, SyncPolicy
from jackfield.policy_chain import Chain


class RecordingCheck(SyncPolicy):
    """Records what it sees, and answers itself if configured."""

    def __init__(self, name: str, seen: list[str], *, answers: bool = False) -> None:
        self.name, self.seen, self.answers = name, seen, answers

    def before(self, call: Call) -> ToolResponse | None:
        self.seen.append(f"{self.name} before")
        return fail(ErrorType.PERMANENT, self.name) if self.answers else None

    def after(self, call: Call, response: ToolResponse) -> ToolResponse:
        self.seen.append(f"{self.name} after")
        return response.with_meta(**{self.name: len(response.meta)})


class RecordingPolicy:
    """Records the same, wrapped around the rest of the chain."""

    def __init__(self, name: str, seen: list[str]) -> None:
        self.name, self.seen = name, seen

    def applies_to(self, tool: Any, session: Any) -> bool:
        return True

    async def apply(self, call: Call, proceed: Proceed) -> ToolResponse:
        self.seen.append(f"{self.name} before")
        response = await proceed(call)
        self.seen.append(f"{self.name} after")
        return response


class RetryPolicy(SyncPolicy):
    """Retries a failed call once, at once."""

    def retry_after(self, call: Call, failure: Failure) -> float | None:
        return 0.0 if failure.retryable else None


class RunningCall:
    """The chain's view of a running call: here one whose handler was stopped at its deadline."""

    def __init__(self, idempotent: bool = True) -> None:
        self.cancel_reason = "timeout"
        self.session = SimpleNamespace(pending_retries=set())
        self.tool = SimpleNamespace(
            id="tool", reads=False, manifest=SimpleNamespace(idempotent=idempotent), timeout=1.0
        )
        self.policies, self.key, self.claimed_key, self.handler_task = ("again",), "", "", None
        self.policy_timed_out = self.retried = False
        self.deadline = 0.0


def run(policies: list[Policy | SyncPolicy], seen: list[str], *nameless: SyncPolicy) -> ToolResponse:
    async def handler(_: Call) -> ToolResponse:
        seen.append("handler")
        return ok(1)

    async def use() -> ToolResponse:
        named = [(str(number), policy) for number, policy in enumerate(policies)]
        chain = Chain(named, handler, *nameless)
        assert chain.names == tuple(name for name, _ in named)
        return await chain.run(cast("Call", RunningCall()))

    return asyncio.run(use())


def test_checks_and_wrapping_policies_form_one_chain() -> None:
    seen: list[str] = []
    response = run(
        [
            RecordingCheck("a", seen),
            RecordingCheck("b", seen),
            RecordingPolicy("c", seen),
            RecordingCheck("d", seen),
        ],
        seen,
        RecordingCheck("e", seen),
    )
    order = ["a", "b", "c", "d", "e"]
    assert seen == [
        *(f"{name} before" for name in order),
        "handler",
        *(f"{name} after" for name in reversed(order)),
    ]
    assert dict(response.meta) == {"e": 0, "d": 1, "b": 2, "a": 3}


@pytest.mark.parametrize("around", [False, True])
def test_an_answer_returns_only_through_the_policies_before_it(around: bool) -> None:
    seen: list[str] = []
    between: list[Policy | SyncPolicy] = [RecordingPolicy("w", seen)] if around else []
    response = run(
        [
            RecordingCheck("a", seen),
            *between,
            RecordingCheck("b", seen),
            RecordingCheck("c", seen, answers=True),
            RecordingCheck("d", seen),
        ],
        seen,
    )
    assert response.failure is not None
    assert response.failure.message == "c"
    assert [each for each in seen if "w" not in each] == [
        "a before", "b before", "c before", "b after", "a after",
    ]  # fmt: skip


def test_a_check_that_returns_none_changes_nothing() -> None:
    seen: list[str] = []
    assert run([SyncPolicy(), SyncPolicy()], seen) == ok(1)
    assert seen == ["handler"]


def test_a_check_that_raises_rejects_the_call() -> None:
    class Broken(SyncPolicy):
        def before(self, call: Call) -> ToolResponse | None:
            raise RuntimeError("broken")

    seen: list[str] = []
    with pytest.raises(RuntimeError, match="broken"):
        run([RecordingCheck("a", seen), Broken()], seen)
    assert seen == ["a before"]


def attempts(
    policies: list[Policy | SyncPolicy], *answers: ToolResponse, idempotent: bool = True
) -> tuple[ToolResponse, int]:
    """Return the result of a call whose handler gives one answer after the other, and its number of runs."""
    left = list(answers)

    async def handler(_: Call) -> ToolResponse:
        return left.pop(0)

    chain = Chain([(str(number), policy) for number, policy in enumerate(policies)], handler)
    response = asyncio.run(cast("Any", chain.run(cast("Call", RunningCall(idempotent)))))
    return response, len(answers) - len(left)


BUSY = fail(ErrorType.TRANSIENT, "busy", retryable=True)
GONE = fail(ErrorType.PERMANENT, "gone")


@pytest.mark.parametrize(
    ("answers", "last", "runs"),
    [
        ((BUSY, ok(2)), ok(2), 2),
        ((BUSY, BUSY, ok(3)), BUSY, 2),
        ((GONE, ok(2)), GONE, 1),
        ((ok(1), ok(2)), ok(1), 1),
    ],
)
def test_a_failed_call_is_retried_once(
    answers: tuple[ToolResponse, ...], last: ToolResponse, runs: int
) -> None:
    assert attempts([SyncPolicy(), RetryPolicy(), SyncPolicy()], *answers) == (last, runs)


@pytest.mark.parametrize("waits", [False, True])
def test_policies_after_the_retrying_one_see_every_attempt(waits: bool) -> None:
    seen: list[str] = []
    behind: Policy | SyncPolicy = RecordingPolicy("behind", seen) if waits else RecordingCheck("behind", seen)
    attempts([RecordingCheck("front", seen), RetryPolicy(), behind], BUSY, ok(2))
    assert seen == [
        "front before", "behind before", "behind after", "behind before", "behind after", "front after",
    ]  # fmt: skip


def test_policies_that_only_inspect_answers_see_every_attempt() -> None:
    class Looks(SyncPolicy):
        def after(self, call: Call, response: ToolResponse) -> ToolResponse:
            seen.append("busy" if response.failure else "done")
            return response

    seen: list[str] = []
    attempts([Looks(), RetryPolicy(), Looks()], BUSY, ok(2))
    assert seen == ["busy", "done", "done"]


def test_two_retrying_policies_share_one_retry() -> None:
    assert attempts([RetryPolicy(), RetryPolicy()], BUSY, BUSY, ok(3)) == (BUSY, 2)


def test_a_write_that_is_not_idempotent_is_not_retried(caplog: pytest.LogCaptureFixture) -> None:
    assert attempts([RetryPolicy()], BUSY, ok(2), idempotent=False) == (BUSY, 1)
    assert "no retry of tool: it writes and is not idempotent" in caplog.text
