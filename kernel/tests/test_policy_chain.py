"""The policy chain: the order of policies, and which of them see a response."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from jackfield import ErrorType, Failure, ToolResponse, fail, ok
from jackfield.governance import Call, Policy, Proceed, SyncPolicy
from jackfield.policy_chain import Chain


class Noted(SyncPolicy):
    """Records what it sees, and refuses the call if `answers` is set."""

    def __init__(self, name: str, seen: list[str], *, answers: bool = False) -> None:
        self.name, self.seen, self.answers = name, seen, answers

    def before(self, call: Call) -> ToolResponse | None:
        self.seen.append(f"{self.name} before")
        return fail(ErrorType.PERMANENT, self.name) if self.answers else None

    def after(self, call: Call, response: ToolResponse) -> ToolResponse:
        self.seen.append(f"{self.name} after")
        return response.with_meta(**{self.name: len(response.meta)})


class Around:
    """Records the same as an asynchronous policy."""

    def __init__(self, name: str, seen: list[str]) -> None:
        self.name, self.seen = name, seen

    def applies_to(self, tool: Any, session: Any) -> bool:
        return True

    async def apply(self, call: Call, proceed: Proceed) -> ToolResponse:
        self.seen.append(f"{self.name} before")
        response = await proceed(call)
        self.seen.append(f"{self.name} after")
        return response


class Again(SyncPolicy):
    """Requests an immediate retry of a failed call."""

    def retry_after(self, call: Call, failure: Failure) -> float | None:
        return 0.0 if failure.retryable else None


class RunningCall:
    """The part of a running call that the chain uses; its handler was cancelled at its deadline."""

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


def test_sync_and_async_policies_run_in_one_chain() -> None:
    seen: list[str] = []
    response = run(
        [Noted("a", seen), Noted("b", seen), Around("c", seen), Noted("d", seen)], seen, Noted("e", seen)
    )
    order = ["a", "b", "c", "d", "e"]
    assert seen == [
        *(f"{name} before" for name in order),
        "handler",
        *(f"{name} after" for name in reversed(order)),
    ]
    assert dict(response.meta) == {"e": 0, "d": 1, "b": 2, "a": 3}


@pytest.mark.parametrize("around", [False, True])
def test_a_refusal_passes_only_the_policies_before_it(around: bool) -> None:
    seen: list[str] = []
    between: list[Policy | SyncPolicy] = [Around("w", seen)] if around else []
    response = run(
        [Noted("a", seen), *between, Noted("b", seen), Noted("c", seen, answers=True), Noted("d", seen)], seen
    )
    assert response.failure is not None
    assert response.failure.message == "c"
    assert [each for each in seen if "w" not in each] == [
        "a before", "b before", "c before", "b after", "a after",
    ]  # fmt: skip


def test_a_check_without_overrides_has_no_effect() -> None:
    seen: list[str] = []
    assert run([SyncPolicy(), SyncPolicy()], seen) == ok(1)
    assert seen == ["handler"]


def test_a_check_that_raises_stops_the_call() -> None:
    class Broken(SyncPolicy):
        def before(self, call: Call) -> ToolResponse | None:
            raise RuntimeError("broken")

    seen: list[str] = []
    with pytest.raises(RuntimeError, match="broken"):
        run([Noted("a", seen), Broken()], seen)
    assert seen == ["a before"]


def tried(
    policies: list[Policy | SyncPolicy], *answers: ToolResponse, idempotent: bool = True
) -> tuple[ToolResponse, int]:
    """What comes of a call whose handler gives one answer after the other, and how often it ran."""
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
    assert tried([SyncPolicy(), Again(), SyncPolicy()], *answers) == (last, runs)


@pytest.mark.parametrize("waits", [False, True])
def test_policies_after_the_retrying_one_see_every_attempt(waits: bool) -> None:
    seen: list[str] = []
    behind: Policy | SyncPolicy = Around("behind", seen) if waits else Noted("behind", seen)
    tried([Noted("front", seen), Again(), behind], BUSY, ok(2))
    assert seen == [
        "front before", "behind before", "behind after", "behind before", "behind after", "front after",
    ]  # fmt: skip


def test_checks_with_only_after_see_every_attempt() -> None:
    class Looks(SyncPolicy):
        def after(self, call: Call, response: ToolResponse) -> ToolResponse:
            seen.append("busy" if response.failure else "done")
            return response

    seen: list[str] = []
    tried([Looks(), Again(), Looks()], BUSY, ok(2))
    assert seen == ["busy", "done", "done"]


def test_two_retrying_policies_share_one_retry() -> None:
    assert tried([Again(), Again()], BUSY, BUSY, ok(3)) == (BUSY, 2)


def test_a_write_that_is_not_idempotent_is_not_retried(caplog: pytest.LogCaptureFixture) -> None:
    assert tried([Again()], BUSY, ok(2), idempotent=False) == (BUSY, 1)
    assert "no retry of tool: it writes and is not idempotent" in caplog.text
