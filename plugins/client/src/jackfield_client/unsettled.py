"""What the user has said and the host has not acknowledged: said again after a lost connection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jackfield_client.errors import ClientError
from jackfield_client.wire.messages import (
    ConfirmationRequired,
    ConfirmationSettled,
    FormClosed,
    HostError,
    Message,
    Said,
    is_outcome,
)

MOST = 64
"""How much waits for a host that is away."""

_DECIDED = frozenset({"unknown_confirmation", "already_decided"})
"""Errors that answer a decision: it did not count, and sending it again changes nothing."""

_NOT_SAID = frozenset({"store_unavailable", "provider_unavailable", "internal"})
"""Errors after which the host has given up what it was told last."""


_FORMS = ("form_submit", "form_dismiss")


@dataclass(frozen=True, slots=True, eq=False)
class Waiting:
    """One message on its way."""

    payload: Mapping[str, Any]
    call_id: str | None = None
    """The call that a decision is about."""

    @property
    def kind(self) -> str:
        """The type of the message."""
        return str(self.payload["type"])


class Unsettled:
    """Texts and forms until they come back as said, decisions until they are settled, notes until sent."""

    def __init__(self) -> None:
        self._waiting: list[Waiting] = []
        self._calls: dict[str, str | None] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, payload: Mapping[str, Any]) -> Waiting:
        """Something is about to be said."""
        if len(self._waiting) >= MOST:
            raise ClientError(f"{MOST} messages wait for the host already; wait until it is back.")
        waiting = Waiting(payload, self._calls.get(str(payload.get("token"))))
        self._waiting.append(waiting)
        return waiting

    def sent(self, waiting: Waiting) -> None:
        """It is on its way; of a note nothing more is heard."""
        if waiting.kind == "context":
            self._drop(waiting)

    def again(self) -> list[Waiting]:
        """What has to be said again."""
        return list(self._waiting)

    def see(self, message: Message) -> None:
        """Take from a message of the host what it settles."""
        if isinstance(message, ConfirmationRequired):
            self._remember(message)
        elif isinstance(message, Said) and message.speaker == "user":
            self._first(lambda each: each.payload["clientId"] == message.client_id, "text", "form_submit")
        elif isinstance(message, FormClosed) or (isinstance(message, HostError) and message.form_id):
            self._first(lambda each: each.payload["formId"] == message.form_id, *_FORMS)
        elif isinstance(message, ConfirmationSettled) or is_outcome(message):
            self._first(lambda each: each.call_id == message.call_id, "approve", "decline")
        elif isinstance(message, HostError) and message.code in _DECIDED:
            self._first(lambda _: True, "approve", "decline")
        elif isinstance(message, HostError) and message.code in _NOT_SAID:
            self._first(lambda _: True, "text", "approve", "decline", *_FORMS)

    def _remember(self, asked: ConfirmationRequired) -> None:
        self._calls[asked.token] = asked.call_id
        while len(self._calls) > MOST:
            del self._calls[next(iter(self._calls))]

    def _first(self, fits: Callable[[Waiting], bool], *kinds: str) -> None:
        for each in self._waiting:
            if each.kind in kinds and fits(each):
                self._drop(each)
                return

    def _drop(self, waiting: Waiting) -> None:
        self._waiting = [each for each in self._waiting if each is not waiting]
