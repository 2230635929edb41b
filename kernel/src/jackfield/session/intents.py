"""Applies intents to a session, each with the handler of its type."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import orjson

from jackfield.contract.tool import Intent
from jackfield.session.session import Session

_log = logging.getLogger(__name__)


class IntentHandler(Protocol):
    """Applies one type of intent."""

    def refusal(self, session: Session, params: Mapping[str, Any]) -> str | None:
        """Return why the intent cannot be applied now, or None if it can; must not change anything."""

    def apply(self, session: Session, params: Mapping[str, Any]) -> None:
        """Apply the intent; called only if `refusal` returned None."""


class RefusedIntent(NamedTuple):
    """An intent that was not applied, and the reason."""

    type: str
    reason: str


def apply_intents(
    intents: tuple[Intent, ...], session: Session, handlers: Mapping[str, IntentHandler]
) -> tuple[tuple[Intent, ...], list[RefusedIntent]]:
    """Apply intents in order; returns those that were applied and those that were rejected."""
    applied: list[Intent] = []
    refused: list[RefusedIntent] = []
    for intent in intents:
        try:
            handler = handlers.get(intent.type)
            reason = handler.refusal(session, intent.params) if handler else "no plugin handles it"
            if handler and not reason:
                # The envelope lists applied intents, so this one must be encodable.
                orjson.dumps(intent.to_wire())
                handler.apply(session, intent.params)
        except Exception:  # noqa: BLE001 - third-party code; the result of the call must not be lost
            _log.exception("session %s: intent %r", session.id, intent)
            reason = "it is not a valid intent, or its handler failed"
        if reason:
            refused.append(RefusedIntent(str(getattr(intent, "type", intent)), reason))
            _log.warning("session %s: intent %s rejected: %s", session.id, refused[-1].type, reason)
        else:
            applied.append(intent)
    return tuple(applied), refused
