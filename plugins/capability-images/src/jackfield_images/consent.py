"""The policy `image_consent`: vouches for pictures that were asked for and cost little."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jackfield import ToolResponse
from jackfield.governance import Call, Check
from jackfield.offers import Services
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session
from jackfield_capability_types.images import ImageOrder, Images

from jackfield_images.settings import ImageConsentSettings
from jackfield_images.vocabulary import ImageVocabulary

_TOOL = "image_generate"


class ImageConsent(Check):
    """Lets a picture be made without asking, or says on the card why the user is asked."""

    def __init__(self, settings: ImageConsentSettings, services: Services) -> None:
        self._limit = settings.cost_limit
        self._vocabulary = ImageVocabulary(
            settings.verbs, settings.drawing_verbs, settings.nouns, settings.negations
        )
        self._images: Images | None = services.lent.get("images")

    def concerns(self, tool: RegisteredTool, session: Session) -> bool:  # noqa: ARG002
        """The tool that makes pictures."""
        return tool.id == _TOOL

    def before(self, call: Call) -> ToolResponse | None:
        """Vouch, or leave it to the confirmation policy, which is next."""
        cost = self._images.cost(_order(call.args)) if self._images else None
        asked = self._vocabulary.asks_for_picture(call.turn.said)
        within = cost is not None and cost <= self._limit
        if asked and within:
            reason = f"the user asked for a picture, and it costs about {_dollars(cost)}"
            call.vouch(reason)
            call.decide("image_consent", f"vouched: {reason}")
            return None
        if not asked:
            call.remark("You did not ask for a picture in so many words.")
        call.remark(self._about(cost))
        call.decide("image_consent", "left to confirmation")
        return None

    def _about(self, cost: float | None) -> str:
        if cost is None:
            return "What it costs is not known."
        over = f", over the limit of {_dollars(self._limit)}" if cost > self._limit else ""
        return f"It costs about {_dollars(cost)}{over}."


def _order(args: Mapping[str, Any]) -> ImageOrder:
    named = {name: args[name] for name in ("avoid", "shape", "quality", "count") if name in args}
    return ImageOrder(str(args.get("prompt", "")), **named)


def _dollars(amount: float | None) -> str:
    if amount is None:
        return "an unknown amount"
    return f"${amount:.2f}" if amount >= 0.01 or amount == 0 else f"${amount:.3f}"
