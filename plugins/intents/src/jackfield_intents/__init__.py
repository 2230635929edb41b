"""The standard intents of a session, offered as handlers under their types."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from jackfield import hookimpl
from jackfield.offers import IntentHandlerOffer, PluginSettings, Services
from jackfield.settings import SettingsError

from jackfield_intents.handlers import HANDLERS

if TYPE_CHECKING:
    from jackfield.session.intents import IntentHandler


@hookimpl
def jackfield_intent_handlers() -> Iterable[IntentHandlerOffer]:
    """One handler for each intent that the kernel has a function for."""
    return [IntentHandlerOffer(intent, partial(_create, intent)) for intent in HANDLERS]


def _create(intent: str, settings: PluginSettings, services: Services) -> IntentHandler:  # noqa: ARG001
    if settings:
        unknown = ", ".join(sorted(map(repr, settings)))
        raise SettingsError(f"intents.{intent}: unknown setting {unknown}; this intent has none")
    return HANDLERS[intent]
