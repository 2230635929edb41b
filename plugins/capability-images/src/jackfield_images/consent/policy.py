"""The policy `image_consent`: vouches for pictures that were asked for and cost little."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from jackfield import ToolResponse
from jackfield.governance import Call, Check
from jackfield.offers import PluginSettings, Services
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session
from jackfield.settings import SettingsError
from jackfield_capability_types.images import ImageOrder, Images

from jackfield_images.consent.request import Vocabulary

_TOOL = "image_generate"
_LISTS = ("verbs", "drawing_verbs", "nouns", "negations")
_KNOWN = ("cost_limit", *_LISTS)


class ImageConsent(Check):
    """Lets a picture be made without asking, or says on the card why the user is asked."""

    def __init__(self, settings: PluginSettings, services: Services) -> None:
        _refuse_unknown(settings)
        self._limit = _limit(settings.get("cost_limit", 0.10))
        self._vocabulary = _vocabulary(settings)
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


def _refuse_unknown(settings: PluginSettings) -> None:
    for name in settings:
        if name not in _KNOWN:
            close = get_close_matches(name, _KNOWN, 1)
            meant = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(_KNOWN)}"
            raise SettingsError(f"policies.image_consent: unknown setting {name!r}; {meant}")


def _limit(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise SettingsError(f"policies.image_consent.cost_limit: {value!r} is no amount of US dollars")
    return float(value)


def _vocabulary(settings: PluginSettings) -> Vocabulary:
    given = {name: settings[name] for name in _LISTS if name in settings}
    for name, words in given.items():
        if not isinstance(words, list | tuple) or not words or not all(_is_word(each) for each in words):
            raise SettingsError(
                f'policies.image_consent.{name}: a list of words is wanted, e.g. ["bild", "foto"]'
            )
    return Vocabulary(**{name: tuple(each.casefold() for each in words) for name, words in given.items()})


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())
