"""The standard intents of a session, offered as handlers under their types."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from jackfield import hookimpl
from jackfield.offers import IntentHandlerOffer, Services

from jackfield_intents.handlers import HANDLERS

if TYPE_CHECKING:
    from jackfield.session.intents import IntentHandler
    from jackfield.settings import NoSettings


@hookimpl
def jackfield_intent_handlers() -> Iterable[IntentHandlerOffer]:
    """One handler for each intent that the kernel has a function for."""
    from jackfield.settings import NoSettings

    return [IntentHandlerOffer(intent, partial(_create, intent), NoSettings) for intent in HANDLERS]


def _create(intent: str, settings: NoSettings, services: Services) -> IntentHandler:  # noqa: ARG001
    return HANDLERS[intent]
