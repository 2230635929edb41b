"""The agents suite: correct agents pass, and broken ones fail."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from jackfield import ErrorType, SessionView, ToolError
from jackfield_capability_types.agents import Report, Show, Tell
from jackfield_testkit import AgentsContractTests
from jackfield_testkit.agents.harness import AgentsCapability, AgentsHarness, ModelBehaviour
from suite_checks import check_page, check_proofs, check_sealed, needs_pages

SOURCE = {"id": "doc:rooms", "title": "Rooms"}
OVER = "Its time was over."


class Sound:
    """Agents without a model that behave as agents with one."""

    def __init__(self, model: ModelBehaviour, seconds: float) -> None:
        self.model = model
        self.seconds = seconds
        self.works = 0
        self.busy: list[str | None] = []

    def for_session(self, session: SessionView) -> View:
        return View(self, session)

    async def close(self) -> None: ...

    async def work(self, parent: SessionView, instructions: str, tools: Sequence[str], tell: Tell) -> Report:
        self.check(tools)
        self.admit(parent)
        try:
            self.works += 1
            return await self.done(parent, instructions, tools, tell)
        finally:
            self.busy.remove(parent.user)

    def check(self, tools: Sequence[str]) -> None:
        if unknown := set(tools) - {"look", "count"}:
            raise ToolError(ErrorType.PERMANENT, f"No {unknown}.", suggestion="They have look and count.")

    def admit(self, parent: SessionView) -> None:
        if parent.user in self.busy:
            raise ToolError(ErrorType.RATE_LIMIT, "One works already.", retryable=True)
        self.busy.append(parent.user)

    async def done(self, parent: SessionView, instructions: str, tools: Sequence[str], tell: Tell) -> Report:
        report = Report(f"You asked: {instructions}", 2, (), (), 0.1, f"agent-{self.works}")
        match self.model:
            case "failing":
                raise ToolError(ErrorType.TRANSIENT, "A fault.", retryable=True)
            case "refusing":
                raise ToolError(ErrorType.PERMANENT, "No key.")
            case "silent":
                await self.wait()
                raise ToolError(ErrorType.TRANSIENT, OVER, suggestion="Hand over less.")
        if "look" in (tools or ("look", "count")):
            await tell("step 1, look")
            report = replace(report, tools=("look",), sources=(SOURCE,))
        return replace(report, cut_short=OVER) if self.model == "endless" else report

    async def wait(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self.seconds):
                await asyncio.Event().wait()


class View:
    def __init__(self, agents: Sound, session: SessionView) -> None:
        self._agents, self._session = agents, session

    async def work(
        self, instructions: str, *, tools: Sequence[str], tell: Tell, show: Show | None = None
    ) -> Report:
        return await self._agents.work(self._session, instructions, tools, tell)


# Each of these breaks one guarantee, and the contract test next to it in BROKEN has to fail.


class Unsourced(Sound):
    async def work(self, *given: object) -> Report:
        return replace(await super().work(*given), sources=())  # type: ignore[arg-type]


class Speechless(Sound):
    async def done(self, parent: SessionView, instructions: str, tools: Sequence[str], tell: Tell) -> Report:
        async def nobody(what: str) -> None: ...

        return await super().done(parent, instructions, tools, nobody)


class Chatty(Sound):
    async def done(self, parent: SessionView, instructions: str, tools: Sequence[str], tell: Tell) -> Report:
        await tell("I am thinking about it. " * 100)
        return await super().done(parent, instructions, tools, tell)


class Impersonates(Sound):
    async def done(self, parent: SessionView, instructions: str, tools: Sequence[str], tell: Tell) -> Report:
        return replace(await super().done(parent, instructions, tools, tell), session=parent.id)


class OneSession(Sound):
    async def done(self, parent: SessionView, instructions: str, tools: Sequence[str], tell: Tell) -> Report:
        return replace(await super().done(parent, instructions, tools, tell), session="agent")


class UsesEverything(Sound):
    async def done(self, parent: SessionView, instructions: str, tools: Sequence[str], tell: Tell) -> Report:
        return await super().done(parent, instructions, (), tell)


class BeginsAnyway(Sound):
    def check(self, tools: Sequence[str]) -> None: ...


class MixesUp(Sound):
    session: SessionView

    async def done(self, parent: SessionView, instructions: str, tools: Sequence[str], tell: Tell) -> Report:
        self.session = parent
        await asyncio.sleep(0)
        asked = instructions.replace(str(parent.user), str(self.session.user))
        return await super().done(parent, asked, tools, tell)


class AlwaysRoom(Sound):
    def admit(self, parent: SessionView) -> None:
        if self.busy:
            raise ToolError(ErrorType.TRANSIENT, "Later.", retryable=True)
        self.busy.append(parent.user)


class KeepsTheRoom(Sound):
    async def work(self, parent: SessionView, instructions: str, tools: Sequence[str], tell: Tell) -> Report:
        self.check(tools)
        self.admit(parent)
        return await self.done(parent, instructions, tools, tell)


class GoesOn(Sound):
    async def wait(self) -> None:
        with suppress(asyncio.CancelledError):
            await super().wait()


class CallsItDone(Sound):
    async def work(self, *given: object) -> Report:
        return replace(await super().work(*given), cut_short="")  # type: ignore[arg-type]


class CallsEverything(Sound):
    kind = ErrorType.PERMANENT

    async def done(self, parent: SessionView, instructions: str, tools: Sequence[str], tell: Tell) -> Report:
        try:
            return await super().done(parent, instructions, tools, tell)
        except ToolError as error:
            raise ToolError(self.kind, error.message, suggestion=error.suggestion) from None


class CallsEverythingTransient(CallsEverything):
    kind = ErrorType.TRANSIENT


BROKEN: list[tuple[type[Sound], str]] = [
    (Unsourced, "test_work_returns_a_report_with_sources"),
    (Speechless, "test_progress_is_reported_for_each_step"),
    (Chatty, "test_progress_is_reported_for_each_step"),
    (Impersonates, "test_each_task_has_its_own_session"),
    (OneSession, "test_each_task_has_its_own_session"),
    (UsesEverything, "test_only_the_given_tools_are_used"),
    (BeginsAnyway, "test_unknown_tool_is_rejected"),
    (MixesUp, "test_concurrent_users_get_their_own_reports"),
    (AlwaysRoom, "test_second_concurrent_task_of_a_user_is_rejected"),
    (KeepsTheRoom, "test_second_concurrent_task_of_a_user_is_rejected"),
    (GoesOn, "test_cancelled_work_stops"),
    (CallsItDone, "test_endless_work_is_cut_short"),
    (CallsEverything, "test_timeout_without_a_result_is_transient"),
    (CallsEverything, "test_temporary_provider_error_is_transient"),
    (KeepsTheRoom, "test_temporary_provider_error_is_transient"),
    (CallsEverythingTransient, "test_provider_refusal_is_permanent"),
]


class TestSound(AgentsContractTests):
    async def create_agents(self, folder: Path, model: ModelBehaviour, seconds: float) -> AgentsCapability:
        return Sound(model, seconds)


@pytest.mark.parametrize(("broken", "test"), BROKEN, ids=lambda each: getattr(each, "__name__", each))
def test_broken_agents_fail(broken: type[Sound], test: str, tmp_path: Path) -> None:
    async def create(folder: Path, model: ModelBehaviour, seconds: float) -> AgentsCapability:
        return broken(model, seconds)

    with pytest.raises(pytest.fail.Exception):
        getattr(TestSound(), test)(AgentsHarness(create, tmp_path, TestSound.tools))


def test_every_contract_test_finds_a_fault_and_cannot_be_dropped() -> None:
    check_proofs(AgentsContractTests, BROKEN)
    check_sealed(AgentsContractTests, "create_agents")


@needs_pages
def test_page_names_every_contract_test_and_its_example_runs(tmp_path: Path) -> None:
    check_page(AgentsContractTests, "agents.md", tmp_path)
