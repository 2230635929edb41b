"""Ranks the results of other tools."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from jackfield import ErrorType, ToolContext, ToolResponse, fail, ok

from jackfield_tool_rank_results.duplicates import Kept, deduplicated
from jackfield_tool_rank_results.items import Item, parse_datetime
from jackfield_tool_rank_results.ranking import effective_weights, rank
from jackfield_tool_rank_results.reasons import reasons

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def execute(args: dict[str, Any], ctx: ToolContext) -> ToolResponse:  # noqa: ARG001 - a pure function
    """Rank the items; a plain function, because fifty long items take about thirty milliseconds."""
    now = parse_datetime(args["now"]) if "now" in args else datetime.now(UTC)
    if now is None:
        return fail(
            ErrorType.PERMANENT,
            f"now is {args['now']!r}, which is not a date.",
            suggestion="Write it in ISO 8601, such as 2026-03-08 or 2026-03-08T14:30:00Z, or leave it out.",
            details={"parameter": "now"},
        )
    items = [Item.read(wire) for wire in args["items"]]
    if not items:
        return ok({"results": [], "total": 0, "duplicates": 0})
    values = reasons(args, items, now)
    weights = effective_weights(args["weights"], values)
    if not weights:
        return _nothing_to_rank_by(values)
    ranked = rank(items, values, weights)
    kept = deduplicated(ranked) if args["deduplicate"] else [Kept(each) for each in ranked]
    data: dict[str, Any] = {
        "results": [_result(place, each) for place, each in enumerate(kept[: args["top_k"]], start=1)],
        "total": len(items),
        "duplicates": len(items) - len(kept),
        "weights": _rounded(weights),
    }
    if unread := _unread_dates(args["items"], items):
        data["notes"] = [unread]
    return ok(data)


def _nothing_to_rank_by(values: Mapping[str, Any]) -> ToolResponse:
    if values:
        message = f"Everything that is known has the weight 0: {' and '.join(values)}."
        suggestion = f"Give {' or '.join(values)} a weight above 0, or leave weights out."
    else:
        message = "There is nothing to rank by: no query, and no item with score or last_updated."
        suggestion = "Give a query, or items with score or last_updated, or say what to prefer."
    return fail(ErrorType.PERMANENT, message, suggestion=suggestion)


def _result(place: int, kept: Kept) -> dict[str, Any]:
    ranked = kept.ranked
    result: dict[str, Any] = {
        "rank": place,
        "id": ranked.item.id,
        "title": ranked.item.title,
        "score": round(ranked.score, 4),
        "reasons": _rounded(ranked.reasons),
    }
    if ranked.unknown:
        result["unknown"] = list(ranked.unknown)
    if kept.same_as:
        result["same_as"] = kept.same_as
    return result


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 2) for name, value in values.items()}


def _unread_dates(wires: Iterable[Mapping[str, Any]], items: Iterable[Item]) -> str | None:
    unread = [
        item.id
        for wire, item in zip(wires, items, strict=True)
        if "last_updated" in wire and not item.updated
    ]
    if not unread:
        return None
    named = ", ".join(id_[:60] for id_ in sorted(unread)[:3])
    more = f" and {len(unread) - 3} more" if len(unread) > 3 else ""
    return f"The last_updated of {named}{more} is not an ISO 8601 date and was not used."
