"""Intents applied: each by the handler of its type, refused whole or applied whole."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import orjson

from jackfield.contract.tool import Intent
from jackfield.session.session import Session

_log = logging.getLogger(__name__)


class IntentHandler(Protocol):
    """Knows one type of intent."""

    def refusal(self, session: Session, params: Mapping[str, Any]) -> str | None:
        """Why the intent cannot be applied now, or nothing when it can; changes nothing."""

    def apply(self, session: Session, params: Mapping[str, Any]) -> None:
        """Apply it; called only when `refusal` had nothing to say."""


class RefusedIntent(NamedTuple):
    """An intent that was not applied, and why."""

    type: str
    reason: str


def apply_intents(
    intents: tuple[Intent, ...], session: Session, handlers: Mapping[str, IntentHandler]
) -> tuple[tuple[Intent, ...], list[RefusedIntent]]:
    """Apply what can be applied, in order; what was, and what was refused."""
    applied: list[Intent] = []
    refused: list[RefusedIntent] = []
    for intent in intents:
        try:
            handler = handlers.get(intent.type)
            reason = handler.refusal(session, intent.params) if handler else "no installed plugin knows it"
            if handler and not reason:
                # The answer tells of it, so it has to be something that can be told.
                orjson.dumps(intent.to_wire())
                handler.apply(session, intent.params)
        except Exception:  # noqa: BLE001 - tools and handlers are somebody else's code, and the answer counts
            _log.exception("session %s: intent %r", session.id, intent)
            reason = "it is not what an intent has to be, or its handler failed"
        if reason:
            refused.append(RefusedIntent(str(getattr(intent, "type", intent)), reason))
            _log.warning("session %s: intent %s refused: %s", session.id, refused[-1].type, reason)
        else:
            applied.append(intent)
    return tuple(applied), refused
