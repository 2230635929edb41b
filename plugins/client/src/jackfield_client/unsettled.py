"""What the user has said and the host has not acknowledged: said again after a lost connection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jackfield.protocol.messages import (
    AddContext,
    Approve,
    ClientMessage,
    Decline,
    FormDismiss,
    FormSubmit,
    Text,
)

from jackfield_client.errors import ClientError
from jackfield_client.messages import (
    ChatMessage,
    ConfirmationRequired,
    ConfirmationSettled,
    ErrorMessage,
    FormClosed,
    Message,
    is_outcome,
)

MOST = 64
"""How much waits for a host that is away."""

_DECIDED = frozenset({"unknown_confirmation", "already_decided"})
"""Errors that answer a decision: it did not count, and sending it again changes nothing."""

_NOT_SAID = frozenset({"store_unavailable", "provider_unavailable", "internal"})
"""Errors after which the host has given up what it was told last."""


_DECISIONS = (Approve, Decline)
_FORMS = (FormSubmit, FormDismiss)


@dataclass(frozen=True, slots=True, eq=False)
class Waiting:
    """One message on its way."""

    message: ClientMessage
    call_id: str | None = None
    """The call that a decision is about."""


class Unsettled:
    """Texts and forms until they come back as said, decisions until they are settled, notes until sent."""

    def __init__(self) -> None:
        self._waiting: list[Waiting] = []
        self._calls: dict[str, str | None] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, message: ClientMessage) -> Waiting:
        """Something is about to be said."""
        if len(self._waiting) >= MOST:
            raise ClientError(f"{MOST} messages wait for the host already; wait until it is back.")
        call_id = self._calls.get(message.token) if isinstance(message, _DECISIONS) else None
        waiting = Waiting(message, call_id)
        self._waiting.append(waiting)
        return waiting

    def sent(self, waiting: Waiting) -> None:
        """It is on its way; of a note nothing more is heard."""
        if isinstance(waiting.message, AddContext):
            self._drop(waiting)

    def again(self) -> list[Waiting]:
        """What has to be said again."""
        return list(self._waiting)

    def see(self, message: Message) -> None:
        """Take from a message of the host what it settles."""
        if isinstance(message, ConfirmationRequired):
            self._remember(message)
        elif isinstance(message, ChatMessage) and message.speaker == "user":
            self._first(lambda each: _client_id(each) == message.client_id, Text, FormSubmit)
        elif isinstance(message, FormClosed) or (isinstance(message, ErrorMessage) and message.form_id):
            self._first(lambda each: _form_id(each) == message.form_id, *_FORMS)
        elif isinstance(message, ConfirmationSettled) or is_outcome(message):
            self._first(lambda each: each.call_id == message.call_id, *_DECISIONS)
        elif isinstance(message, ErrorMessage) and message.code in _DECIDED:
            self._first(lambda _: True, *_DECISIONS)
        elif isinstance(message, ErrorMessage) and message.code in _NOT_SAID:
            self._first(lambda _: True, Text, *_DECISIONS, *_FORMS)

    def _remember(self, asked: ConfirmationRequired) -> None:
        self._calls[asked.token] = asked.call_id
        while len(self._calls) > MOST:
            del self._calls[next(iter(self._calls))]

    def _first(self, fits: Callable[[Waiting], bool], *kinds: type[ClientMessage]) -> None:
        for each in self._waiting:
            if isinstance(each.message, kinds) and fits(each):
                self._drop(each)
                return

    def _drop(self, waiting: Waiting) -> None:
        self._waiting = [each for each in self._waiting if each is not waiting]


def _client_id(waiting: Waiting) -> str | None:
    message = waiting.message
    return message.client_id if isinstance(message, Text | FormSubmit) else None


def _form_id(waiting: Waiting) -> str | None:
    message = waiting.message
    return message.form_id if isinstance(message, _FORMS) else None
