"""What comes of work, and what is told meanwhile."""

from __future__ import annotations

import asyncio

from jackfield import ErrorType

from jackfield_testkit.agents_contract.office import PARENT, Office, on_a_loop
from jackfield_testkit.store_contract.verdict import holds, same
from jackfield_testkit.trials import refused

_USERS = ("ann", "ben", "cyd")
_LONGEST_WORDS = 300


class WorkingTests:
    """What a report promises."""

    @on_a_loop
    async def test_work_ends_with_a_report(self, office: Office) -> None:
        """It has a text, says what was used and where it comes from, and was not cut short."""
        async with office.desks("looking") as desk:
            report = await desk("ann").hand_over("Find out about lighthouses.")
        holds("lighthouses" in report.text, f"the report is about something else: {report.text!r}")
        same(report.tools, (office.tools[0],), "what was used, each once")
        holds(report.steps >= 1, f"it took {report.steps} steps")
        holds(report.seconds >= 0, f"it took {report.seconds} seconds")
        same(report.cut_short, "", "why the work was cut short")
        holds(report.sources, "what a tool gave as evidence is missing from the sources")
        for source in report.sources:
            found = source.get("title") and (source.get("id") or source.get("url"))
            holds(found, f"a source without a title, or that cannot be found again: {source}")

    @on_a_loop
    async def test_the_user_is_told_what_is_done(self, office: Office) -> None:
        """A few words for every step in which something is used, and not a page of them."""
        async with office.desks("looking") as desk:
            ann = desk("ann")
            await ann.hand_over()
        holds(ann.told, "nobody was told what the agent did")
        odd = [words for words in ann.told if not words.strip() or len(words) > _LONGEST_WORDS]
        same(odd, [], "what is too long for a user, or empty")

    @on_a_loop
    async def test_every_work_has_a_session_of_its_own(self, office: Office) -> None:
        """Under it the agent's calls are found in the audit; it is never that of the user."""
        async with office.desks("looking") as desk:
            sessions = [(await desk("ann").hand_over()).session for _ in range(2)]
        holds(all(sessions), "a report without a session")
        holds(
            not any(each.startswith(PARENT) for each in sessions), "an agent worked in the user's own session"
        )
        holds(len(set(sessions)) == len(sessions), f"two pieces of work have the session {sessions[0]!r}")

    @on_a_loop
    async def test_only_what_was_given_is_used(self, office: Office) -> None:
        """A model may ask for another tool, and does not get it."""
        async with office.desks("looking") as desk:
            report = await desk("ann").hand_over(tools=office.tools[1:])
        holds(office.tools[0] not in report.tools, f"{office.tools[0]} was used and had not been given")
        holds(report.text, "there is no report")

    @on_a_loop
    async def test_a_tool_that_agents_have_not_is_refused(self, office: Office) -> None:
        """Before anything is begun, and with what they have instead."""
        async with office.desks("looking") as desk:
            ann = desk("ann")
            handed = ann.hand_over(tools=[office.tools[0], "no_agent_has_this_tool"])
            error = await refused(handed, ErrorType.PERMANENT, "work with a tool that agents have not")
            holds(error.suggestion, "the refusal does not say what agents can use")
            same(ann.told, [], "what was begun although a tool is unknown")

    @on_a_loop
    async def test_the_work_of_many_does_not_get_mixed_up(self, office: Office) -> None:
        """Everybody gets the report on what he asked for."""
        async with office.desks("looking") as desk:
            handed = (desk(user).hand_over(f"Find out about the keys of {user}.") for user in _USERS)
            reports = await asyncio.gather(*handed)
        found = [user in report.text for user, report in zip(_USERS, reports, strict=True)]
        same(found, [True] * len(_USERS), "whether each report is about what was asked for")
