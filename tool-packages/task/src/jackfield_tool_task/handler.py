"""Has an agent work, and passes on what it does and what it found."""

from __future__ import annotations

from typing import Any

from jackfield import ErrorType, ToolContext, ToolResponse, fail, ok
from jackfield_capability_types.agents import Report


async def execute(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Have the work done; what the agent's model fails at reaches the model as the capability says it."""
    title, instructions = args["title"].strip(), args["instructions"].strip()
    if not title or not instructions:
        return fail(
            ErrorType.PERMANENT,
            "The title or the instructions are blank.",
            suggestion="Say what is to be found out.",
        )

    async def tell(what: str) -> None:
        await ctx.progress(f"{title}: {what}")

    await tell("begun")
    report: Report = await ctx.agents.work(instructions, tools=args["tools"], tell=tell)
    ctx.audit("agent_worked", session=report.session, steps=report.steps, complete=not report.cut_short)
    data: dict[str, Any] = {
        "title": title,
        "report": report.text,
        "complete": not report.cut_short,
        "steps": report.steps,
        "seconds": report.seconds,
    }
    # Left out where there are none: an answer of empty lists would be taken for one that says nothing.
    if report.tools:
        data["tools"] = list(report.tools)
    if report.sources:
        data["sources"] = [dict(each) for each in report.sources]
    if report.cut_short:
        data["note"] = report.cut_short
    return ok(data)
