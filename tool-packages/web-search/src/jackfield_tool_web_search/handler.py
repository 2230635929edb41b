"""Searches the web and returns evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jackfield import ErrorType, ToolContext, ToolResponse, fail, ok
from jackfield_capability_types.web import WebResult


async def execute(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:
    """Search, best match first; no match is an empty list."""
    query = " ".join(args["query"].split())
    if not query:
        return fail(ErrorType.PERMANENT, "The query is blank.", suggestion="Say what to search for.")
    found: Sequence[WebResult] = await ctx.web_search.search(
        query, limit=args["count"], recency=args.get("recency")
    )
    results = [_evidence(each) for each in found[: args["count"]]]
    ctx.audit("web_searched", found=len(results))
    return ok({"results": results})


def _evidence(found: WebResult) -> dict[str, Any]:
    """Return a result with the common fields of evidence; its URL is its id."""
    wire: dict[str, Any] = {
        "id": found.url,
        "title": found.title,
        "snippet": found.snippet,
        "source_type": "web",
        "last_updated": found.published.isoformat().replace("+00:00", "Z") if found.published else None,
        "url": found.url,
    }
    if found.score is not None:
        wire["score"] = round(min(max(found.score, 0.0), 1.0), 3)
    return wire
