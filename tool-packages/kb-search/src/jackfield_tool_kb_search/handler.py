"""Searches the records that the session's user may see."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from jackfield import ErrorType, ToolContext, ToolResponse, fail, ok
from jackfield_capability_types.knowledge import Filters

from jackfield_tool_kb_search.results import ALWAYS, result
from jackfield_tool_kb_search.voice_format import shorten_for_voice


async def execute(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Search, best match first; no match is an empty list."""
    if not args["query"].strip():
        return fail(ErrorType.PERMANENT, "The query is blank.", suggestion="Say what to search for.")
    try:
        filters = _filters(args.get("filters", {}))
    except ValueError as error:
        return fail(ErrorType.PERMANENT, str(error), suggestion="Correct date_range, or leave it out.")
    voice = ctx.session.mode == "voice"
    asked = set(args.get("return_fields", ALWAYS))
    fields = asked - ({"full_text"} if voice else set())
    if not args["include_snippets"]:
        fields.discard("snippet")
    found = await ctx.kb.search(
        args["query"],
        namespace=args["namespace"],
        filters=filters,
        limit=args["top_k"],
        snippets="snippet" in fields,
    )
    results = [result(each, fields) for each in found]
    data: dict[str, Any] = {"results": shorten_for_voice(results) if voice else results}
    if results and voice and "full_text" in asked:
        data["left_out"] = ["full_text"]
    ctx.audit("kb_searched", namespace=args["namespace"], found=len(results))
    # Another implementation of the capability may return a plain list.
    incomplete = getattr(found, "incomplete", None)
    return ok(data).with_meta(incomplete=incomplete) if incomplete else ok(data)


def _filters(given: dict[str, Any]) -> Filters:
    within = given.get("date_range", {})
    start, end = (_moment(name, within.get(name)) for name in ("start", "end"))
    if start and end and start > end:
        raise ValueError("The start of date_range is after its end.")
    return Filters(given.get("type"), tuple(given.get("tags", ())), start, end)


def _moment(name: str, text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text.upper())
    except ValueError:
        # The schema accepts leap seconds, which Python does not support.
        raise ValueError(f"date_range.{name} is {text}, which is not a date that can be compared.") from None
