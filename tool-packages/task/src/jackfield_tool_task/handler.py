"""Runs an agent and reports its progress and findings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from jackfield import ErrorType, Partial, ToolContext, ToolResponse, fail, ok, partial
from jackfield.live_output import LiveOutput
from jackfield_capability_types.agents import AgentsView, Report


async def execute(args: dict[str, Any], ctx: ToolContext) -> AsyncIterator[Partial | ToolResponse]:
    """Run the agent and show what it writes; its failures reach the model unchanged."""
    title, instructions = args["title"].strip(), args["instructions"].strip()
    if not title or not instructions:
        yield fail(
            ErrorType.PERMANENT,
            "The title or the instructions are blank.",
            suggestion="Say what the agent should find out.",
        )
        return

    async def tell(what: str) -> None:
        await ctx.progress(f"{title}: {what}")

    await tell("begun")
    agents: AgentsView = ctx.agents
    tools = args["tools"]
    async with LiveOutput(
        lambda show: agents.work(instructions, tools=tools, tell=tell, show=show)
    ) as output:
        async for text in output:
            yield partial(text, f"{title}: writing")
        report = await output.result()
    ctx.audit("agent_worked", session=report.session, steps=report.steps, complete=not report.cut_short)
    yield ok(_data(title, report))


def _data(title: str, report: Report) -> dict[str, Any]:
    data: dict[str, Any] = {
        "title": title,
        "report": report.text,
        "complete": not report.cut_short,
        "steps": report.steps,
        "seconds": report.seconds,
    }
    # Omitted if empty: an answer with empty lists would count as an empty result.
    if report.tools:
        data["tools"] = list(report.tools)
    if report.sources:
        data["sources"] = [dict(each) for each in report.sources]
    if report.cut_short:
        data["note"] = report.cut_short
    return data
