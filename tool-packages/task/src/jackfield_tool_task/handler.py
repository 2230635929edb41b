"""Runs an agent and reports its progress and findings."""

from __future__ import annotations

from typing import Any

from jackfield import ErrorType, ToolContext, ToolResponse, fail, ok
from jackfield_capability_types.agents import Report


async def execute(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Run the agent; its failures reach the model unchanged."""
    title, instructions = args["title"].strip(), args["instructions"].strip()
    if not title or not instructions:
        return fail(
            ErrorType.PERMANENT,
            "The title or the instructions are blank.",
            suggestion="Say what the agent should find out.",
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
    # Omitted if empty: an answer with empty lists would count as an empty result.
    if report.tools:
        data["tools"] = list(report.tools)
    if report.sources:
        data["sources"] = [dict(each) for each in report.sources]
    if report.cut_short:
        data["note"] = report.cut_short
    return ok(data)
