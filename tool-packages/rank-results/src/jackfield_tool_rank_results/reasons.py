"""Ranking signals, each a number from 0 to 1, or unknown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jackfield_tool_rank_results.items import Item, label
from jackfield_tool_rank_results.relevance import relevance

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

Values = Sequence[float | None]

_DAY = 86_400


def reasons(args: Mapping[str, Any], items: Sequence[Item], now: datetime) -> dict[str, Values]:
    """Return the values of every reason for every item, without reasons that are unknown for all items."""
    half_life = args["half_life_days"]
    found: dict[str, Values | None] = {
        "relevance": relevance(args.get("query", ""), items),
        "score": [item.score for item in items],
        "recency": [recency(item.updated, now, half_life) for item in items],
        "preference": preference(args.get("prefer", {}), items),
    }
    return {name: values for name, values in found.items() if values and _any_known(values)}


def recency(updated: datetime | None, now: datetime, half_life_days: float) -> float | None:
    """Return 1 for now and the future, one half after the half-life, a quarter after two."""
    if updated is None:
        return None
    age_days = max(0.0, (now - updated).total_seconds() / _DAY)
    return float(0.5 ** (age_days / half_life_days))


def preference(prefer: Mapping[str, Sequence[str]], items: Sequence[Item]) -> list[float] | None:
    """Return the share of the preferences that each item meets, or None without a preference."""
    types = {label(kind) for kind in prefer.get("types", ())}
    tags = {label(tag) for tag in prefer.get("tags", ())}
    if not types and not tags:
        return None
    wishes = bool(types) + bool(tags)
    return [
        ((item.kind in types) + (len(item.tags & tags) / len(tags) if tags else 0)) / wishes for item in items
    ]


def _any_known(values: Values) -> bool:
    return any(value is not None for value in values)
