"""The user's messages that the host has not acknowledged; they are resent after a reconnect."""

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

MAX_PENDING = 64
"""How many messages may wait for a host that is unreachable."""

_DECISION_ERRORS = frozenset({"unknown_confirmation", "already_decided"})
"""Errors in response to a decision: the decision did not count, and resending it changes nothing."""

_DISCARD_ERRORS = frozenset({"store_unavailable", "provider_unavailable", "internal"})
"""Errors after which the host has discarded the last message."""


_DECISIONS = (Approve, Decline)
_FORMS = (FormSubmit, FormDismiss)


@dataclass(frozen=True, slots=True, eq=False)
class PendingMessage:
    """A message that the host has not acknowledged."""

    message: ClientMessage
    call_id: str | None = None
    """The call that a decision is about."""


class Outbox:
    """Holds texts and forms until the host echoes them, decisions until settled, context until sent."""

    def __init__(self) -> None:
        self._pending: list[PendingMessage] = []
        self._call_ids: dict[str, str | None] = {}

    def __len__(self) -> int:
        return len(self._pending)

    def add(self, message: ClientMessage) -> PendingMessage:
        """Add a message before it is sent; raises `ClientError` if too many are pending."""
        if len(self._pending) >= MAX_PENDING:
            raise ClientError(
                f"{MAX_PENDING} messages are already waiting for the host; wait until it is reachable again."
            )
        call_id = self._call_ids.get(message.token) if isinstance(message, _DECISIONS) else None
        pending = PendingMessage(message, call_id)
        self._pending.append(pending)
        return pending

    def mark_sent(self, pending: PendingMessage) -> None:
        """Record that a message was written to the connection; the host never acknowledges context."""
        if isinstance(pending.message, AddContext):
            self._remove(pending)

    def pending(self) -> list[PendingMessage]:
        """Return the unacknowledged messages, oldest first."""
        return list(self._pending)

    def observe(self, message: Message) -> None:
        """Remove the pending message that a message from the host acknowledges."""
        if isinstance(message, ConfirmationRequired):
            self._remember_call(message)
        elif isinstance(message, ChatMessage) and message.speaker == "user":
            self._remove_first(lambda each: _client_id(each) == message.client_id, Text, FormSubmit)
        elif isinstance(message, FormClosed) or (isinstance(message, ErrorMessage) and message.form_id):
            self._remove_first(lambda each: _form_id(each) == message.form_id, *_FORMS)
        elif isinstance(message, ConfirmationSettled) or is_outcome(message):
            self._remove_first(lambda each: each.call_id == message.call_id, *_DECISIONS)
        elif isinstance(message, ErrorMessage) and message.code in _DECISION_ERRORS:
            self._remove_first(lambda _: True, *_DECISIONS)
        elif isinstance(message, ErrorMessage) and message.code in _DISCARD_ERRORS:
            self._remove_first(lambda _: True, Text, *_DECISIONS, *_FORMS)

    def _remember_call(self, confirmation: ConfirmationRequired) -> None:
        self._call_ids[confirmation.token] = confirmation.call_id
        while len(self._call_ids) > MAX_PENDING:
            del self._call_ids[next(iter(self._call_ids))]

    def _remove_first(self, matches: Callable[[PendingMessage], bool], *kinds: type[ClientMessage]) -> None:
        for each in self._pending:
            if isinstance(each.message, kinds) and matches(each):
                self._remove(each)
                return

    def _remove(self, pending: PendingMessage) -> None:
        self._pending = [each for each in self._pending if each is not pending]


def _client_id(pending: PendingMessage) -> str | None:
    message = pending.message
    return message.client_id if isinstance(message, Text | FormSubmit) else None


def _form_id(pending: PendingMessage) -> str | None:
    message = pending.message
    return message.form_id if isinstance(message, _FORMS) else None
