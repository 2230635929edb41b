"""The policy `image_consent`: waives confirmation for cheap images that the user asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jackfield.confirmation_waiver import ConfirmationWaiverPolicy, WaiverDecision
from jackfield.governance import Call
from jackfield.offers import Services
from jackfield_capability_types.images import ImageOrder, Images

from jackfield_images.settings import ImageConsentSettings
from jackfield_images.vocabulary import ImageVocabulary


class ImageConsent(ConfirmationWaiverPolicy):
    """Waives confirmation for images that the user asked for and that cost no more than the limit."""

    name = "image_consent"
    tools = frozenset(("image_generate",))

    def __init__(self, settings: ImageConsentSettings, services: Services) -> None:
        self._limit = settings.cost_limit
        self._vocabulary = ImageVocabulary(
            settings.verbs, settings.drawing_verbs, settings.nouns, settings.negations
        )
        self._images: Images | None = services.instances.get("images")

    def judge(self, call: Call) -> WaiverDecision:
        """Decide by the user's words and the estimated price."""
        cost = self._images.cost(_order(call.args)) if self._images else None
        asked = self._vocabulary.asks_for_picture(call.turn.user_text)
        if asked and cost is not None and cost <= self._limit:
            return WaiverDecision(f"the user asked for an image, and it costs about {_dollars(cost)}")
        notes = () if asked else ("You did not ask for an image explicitly.",)
        return WaiverDecision(notes=(*notes, self._about(cost)))

    def _about(self, cost: float | None) -> str:
        if cost is None:
            return "The price is not known."
        over = f", over the limit of {_dollars(self._limit)}" if cost > self._limit else ""
        return f"It costs about {_dollars(cost)}{over}."


def _order(args: Mapping[str, Any]) -> ImageOrder:
    named = {name: args[name] for name in ("avoid", "shape", "quality", "count") if name in args}
    return ImageOrder(str(args.get("prompt", "")), **named)


def _dollars(amount: float | None) -> str:
    if amount is None:
        return "an unknown amount"
    return f"${amount:.2f}" if amount >= 0.01 or amount == 0 else f"${amount:.3f}"
