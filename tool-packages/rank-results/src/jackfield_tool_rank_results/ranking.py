"""Combines reasons and weights into one order.

    score = sum of weight * reason, over the reasons that are known for some item,
            with the weights divided by their sum

An item for which a reason is unknown gets the median of the others, which moves it neither up nor down.
The order is total: score, then the given score, then the later update, then the id, then the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jackfield_tool_rank_results.items import Item
    from jackfield_tool_rank_results.reasons import Values

_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Ranked:
    """An item with its score and its components."""

    item: Item
    score: float
    reasons: Mapping[str, float]
    unknown: tuple[str, ...]


def effective_weights(weights: Mapping[str, float], reasons: Mapping[str, Values]) -> dict[str, float]:
    """Return the weights of the known reasons, normalised to a sum of 1; empty if there are none."""
    total = sum(weights[name] for name in reasons)
    return {name: weights[name] / total for name in reasons if weights[name] > 0}


def rank(items: Sequence[Item], reasons: Mapping[str, Values], weights: Mapping[str, float]) -> list[Ranked]:
    """Return all items, best first."""
    neutral = {name: median(value for value in reasons[name] if value is not None) for name in weights}
    ranked = [_ranked(item, at, reasons, weights, neutral) for at, item in enumerate(items)]
    return sorted(ranked, key=_place)


def _ranked(
    item: Item,
    at: int,
    reasons: Mapping[str, Values],
    weights: Mapping[str, float],
    neutral: Mapping[str, float],
) -> Ranked:
    given = {name: reasons[name][at] for name in weights}
    values = {name: neutral[name] if value is None else value for name, value in given.items()}
    score = sum(weights[name] * value for name, value in values.items())
    unknown = tuple(name for name, value in given.items() if value is None)
    return Ranked(item, _without_noise(min(1.0, score)), values, unknown)


def _without_noise(score: float) -> float:
    # Significant digits rather than decimals: equal sums tie despite rounding, while the recencies of very
    # old items, which differ only slightly, do not.
    return float(f"{score:.12g}")


def _place(ranked: Ranked) -> tuple[float, float, timedelta, str, str]:
    item = ranked.item
    given = -1.0 if item.score is None else item.score
    return -ranked.score, -given, _NEVER - (item.updated or _NEVER), item.id, item.text
