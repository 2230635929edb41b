"""Estimated prices of images, from the providers' public price lists and the settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from jackfield_capability_types.images import ImageOrder

Price = float | Mapping[str, float]
"""US dollars for one image: one price for all shapes, or a price for each shape."""

BUILT_IN: Mapping[str, Mapping[str, Mapping[str, Price]]] = {
    "openai": {
        "gpt-image-2": {
            "draft": {"square": 0.006, "landscape": 0.005, "portrait": 0.005},
            "standard": {"square": 0.053, "landscape": 0.041, "portrait": 0.041},
            "high": {"square": 0.211, "landscape": 0.165, "portrait": 0.165},
        },
        "gpt-image-1.5": {
            "draft": {"square": 0.009, "landscape": 0.013, "portrait": 0.013},
            "standard": {"square": 0.034, "landscape": 0.05, "portrait": 0.05},
            "high": {"square": 0.133, "landscape": 0.2, "portrait": 0.2},
        },
        "gpt-image-1-mini": {
            "draft": {"square": 0.005, "landscape": 0.006, "portrait": 0.006},
            "standard": {"square": 0.011, "landscape": 0.015, "portrait": 0.015},
            "high": {"square": 0.036, "landscape": 0.052, "portrait": 0.052},
        },
    },
    "gemini": {
        "gemini-3.1-flash-image": {"draft": 0.067, "standard": 0.067, "high": 0.101},
        "gemini-3-pro-image": {"draft": 0.134, "standard": 0.134, "high": 0.134},
        "gemini-2.5-flash-image": {"draft": 0.039, "standard": 0.039, "high": 0.039},
        "imagen-4.0-generate": {"draft": 0.04, "standard": 0.04, "high": 0.04},
        "imagen-4.0-fast-generate": {"draft": 0.02, "standard": 0.02, "high": 0.02},
        "imagen-4.0-ultra-generate": {"draft": 0.06, "standard": 0.06, "high": 0.06},
    },
}
"""The public price lists of November 2026. Providers bill by tokens, so these are estimates."""

_SNAPSHOT = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{3}|preview(-[\w-]+)?|latest)$")
"""The suffix of a model name that selects a version."""


class Prices:
    """The price of one image by provider, model, quality and shape."""

    def __init__(self, tables: Mapping[str, Mapping[str, Mapping[str, Price]]]) -> None:
        self._tables = tables

    @classmethod
    def of(cls, own: Mapping[Any, Mapping[str, Mapping[Any, Any]]], *, built_in: bool) -> Prices:
        """Return the deployment's prices, which override the built-in price lists if those apply."""
        listed = BUILT_IN if built_in else {}
        providers = {*listed, *own}
        return cls({name: {**listed.get(name, {}), **own.get(name, {})} for name in providers})

    def cost(self, provider: str, model: str, order: ImageOrder) -> float | None:
        """Estimate the cost of an order; None if no price is known."""
        models = self._tables.get(provider, {})
        price = (models.get(model) or models.get(_SNAPSHOT.sub("", model)) or {}).get(order.quality)
        if isinstance(price, Mapping):
            price = price.get(order.shape)
        return None if price is None else round(price * order.count, 6)
