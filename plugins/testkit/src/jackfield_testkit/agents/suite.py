"""The contract suite for the capability `agents`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pytest
from jackfield import ErrorType, ToolError
from jackfield_capability_types.agents import Report

from jackfield_testkit.agents.harness import (
    USER_SESSION,
    AgentsCapability,
    AgentsHarness,
    AgentsUser,
    ModelBehaviour,
    async_test,
)
from jackfield_testkit.suite import (
    ContractTests,
    expect,
    expect_equal,
    expect_error,
    fail_test,
    require_override,
)

_SIGNATURE = "async def create_agents(self, folder, model, seconds)"
_USERS = ("ann", "ben", "cyd")
_MAX_PROGRESS_LENGTH = 300


class AgentsContractTests(ContractTests, suite=True):
    """Subclass it and define `create_agents` to run the contract tests of the capability `agents`.

    A contract test cannot be replaced. `waived = {"test_...": "reason"}` skips one, and the report shows the
    reason. `class Ours(AgentsContractTests, abstract=True)` makes a base class that does not run itself.
    """

    overridable = frozenset({"create_agents", "tools", "waived"})

    tools: ClassVar[Sequence[str]] = ("look", "count")
    """The tools of the agents, at least two; the first of them finds things."""

    @classmethod
    def check_settings(cls) -> None:
        """Raise `TypeError` for a class that does not define `create_agents`."""
        require_override(cls, "create_agents", _SIGNATURE)

    async def create_agents(self, folder: Path, model: ModelBehaviour, seconds: float) -> AgentsCapability:
        """Create agents with a time limit per task, one concurrent task per user and three in total.

        The model behind them has one of these behaviours: `looking` uses the first of `tools` and repeats the
        instructions in its report; `endless` uses that tool again and again; `silent` produces nothing;
        `failing` has a provider with a temporary error; `refusing` has one that rejects the deployment.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define `{_SIGNATURE}`")

    @pytest.fixture
    def harness(self, tmp_path: Path) -> AgentsHarness:
        """Creates agents for a contract test."""
        return AgentsHarness(self.create_agents, tmp_path, self.tools)

    # Reports

    @async_test
    async def test_work_returns_a_report_with_sources(self, harness: AgentsHarness) -> None:
        """The report has a text, the tools that were used and their sources, and was not cut short."""
        async with harness.users("looking") as user:
            report = await user("ann").delegate("Find out about lighthouses.")
        expect("lighthouses" in report.text, f"the report is about something else: {report.text!r}")
        expect_equal(report.tools, (harness.tools[0],), "the tools that were used")
        expect(report.steps >= 1, f"the number of steps is {report.steps}")
        expect(report.seconds >= 0, f"the duration is {report.seconds} s")
        expect_equal(report.cut_short, "", "the reason for a cut")
        expect(report.sources, "the evidence of a tool is missing from the sources")
        for source in report.sources:
            is_complete = source.get("title") and (source.get("id") or source.get("url"))
            expect(is_complete, f"a source has no title, or neither id nor URL: {source}")

    @async_test
    async def test_progress_is_reported_for_each_step(self, harness: AgentsHarness) -> None:
        """Each step that uses a tool reports progress in a short message."""
        async with harness.users("looking") as user:
            ann = user("ann")
            await ann.delegate()
        expect(ann.progress, "no progress was reported")
        unsuitable = [each for each in ann.progress if not each.strip() or len(each) > _MAX_PROGRESS_LENGTH]
        expect_equal(unsuitable, [], "progress messages that are empty or too long")

    @async_test
    async def test_each_task_has_its_own_session(self, harness: AgentsHarness) -> None:
        """The audit log lists the agent's calls under this session, which is not the user's."""
        async with harness.users("looking") as user:
            sessions = [(await user("ann").delegate()).session for _ in range(2)]
        expect(all(sessions), "a report has no session")
        expect(
            not any(each.startswith(USER_SESSION) for each in sessions),
            "an agent worked in the user's session",
        )
        expect(len(set(sessions)) == len(sessions), f"two tasks have the session {sessions[0]!r}")

    @async_test
    async def test_only_the_given_tools_are_used(self, harness: AgentsHarness) -> None:
        """The model cannot use a tool that the task does not allow."""
        async with harness.users("looking") as user:
            report = await user("ann").delegate(tools=harness.tools[1:])
        expect(harness.tools[0] not in report.tools, f"{harness.tools[0]} was used although it was not given")
        expect(report.text, "there is no report")

    @async_test
    async def test_unknown_tool_is_rejected(self, harness: AgentsHarness) -> None:
        """An unknown tool is rejected before the task starts, with a suggestion."""
        async with harness.users("looking") as user:
            ann = user("ann")
            task = ann.delegate(tools=[harness.tools[0], "no_agent_has_this_tool"])
            error = await expect_error(task, ErrorType.PERMANENT, "work with an unknown tool")
            expect(error.suggestion, "the error does not suggest tools that agents have")
            expect_equal(ann.progress, [], "the progress of a rejected task")

    @async_test
    async def test_concurrent_users_get_their_own_reports(self, harness: AgentsHarness) -> None:
        """Each user gets the report on their own task."""
        async with harness.users("looking") as user:
            tasks = (user(name).delegate(f"Find out about the keys of {name}.") for name in _USERS)
            reports = await asyncio.gather(*tasks)
        found = [name in report.text for name, report in zip(_USERS, reports, strict=True)]
        expect_equal(found, [True] * len(_USERS), "whether each report is about its task")

    # Limits and errors

    @async_test
    async def test_second_concurrent_task_of_a_user_is_rejected(self, harness: AgentsHarness) -> None:
        """If a user starts two tasks at once, one is rejected; when the other ends, a new one can start."""
        async with harness.users("silent") as user:
            ann = user("ann")
            for _ in range(2):
                await _cancel(await _start_two(ann))

    @async_test
    async def test_cancelled_work_stops(self, harness: AgentsHarness) -> None:
        """Cancelling the call stops the agent."""
        async with harness.users("silent") as user:
            working = await _start_two(user("ann"))
            await _cancel(working)

    @async_test
    async def test_endless_work_is_cut_short(self, harness: AgentsHarness) -> None:
        """At the time limit, the report contains the results so far and says why it was cut short."""
        async with harness.users("endless", seconds=2) as user:
            report = await user("ann").delegate()
        expect(report.cut_short, "endless work was not cut short, or does not report it")
        expect(report.text, "the results so far are missing")
        expect_equal(report.tools, (harness.tools[0],), "the tools that were used")

    @async_test
    async def test_timeout_without_a_result_is_transient(self, harness: AgentsHarness) -> None:
        """If the model produces nothing in time, the error is transient, without side effects."""
        async with harness.users("silent", seconds=1) as user:
            error = await expect_error(user("ann").delegate(), ErrorType.TRANSIENT, "work without a result")
        expect_equal(error.partial_side_effects, False, "partial_side_effects")
        expect(error.suggestion, "the error has no suggestion")

    @async_test
    async def test_temporary_provider_error_is_transient(self, harness: AgentsHarness) -> None:
        """A temporary provider error is transient, and the next task can start."""
        await _expect_failures(harness, "failing", ErrorType.TRANSIENT)

    @async_test
    async def test_provider_refusal_is_permanent(self, harness: AgentsHarness) -> None:
        """If the provider rejects the deployment, the error is permanent and not retryable."""
        error = await _expect_failures(harness, "refusing", ErrorType.PERMANENT)
        expect_equal(error.retryable, False, "retryable")


async def _expect_failures(harness: AgentsHarness, model: ModelBehaviour, kind: ErrorType) -> ToolError:
    async with harness.users(model) as user:
        await expect_error(user("ann").delegate(), kind, f"work with a model that is {model}")
        return await expect_error(user("ann").delegate(), kind, "the next task")


async def _start_two(user: AgentsUser) -> asyncio.Task[Report]:
    """Start two tasks at once, and return the one that is not rejected."""
    tasks = {asyncio.create_task(user.delegate()) for _ in range(2)}
    done, working = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    if len(done) > 1:
        fail_test("two tasks were started, and neither is running")
    error = done.pop().exception()
    if not isinstance(error, ToolError):
        fail_test(f"the second concurrent task ended with {error!r:.200}")
    expect_equal((error.type, error.retryable), (ErrorType.RATE_LIMIT, True), "the error of the second task")
    return working.pop()


async def _cancel(working: asyncio.Task[Report]) -> None:
    working.cancel()
    await asyncio.wait({working})
    if not working.cancelled():
        fail_test(f"cancelled work ended with {working.exception() or working.result()!r:.200}")
