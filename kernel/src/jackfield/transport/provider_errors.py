"""What can go wrong between a session and its model: each with a sentence, a way on, and a suggestion."""

from __future__ import annotations

from typing import Literal, NamedTuple

RecoveryAction = Literal["reconnect", "renew", "wait", "none"]
"""Open the connection again; open a new one with what was said; try later; or give up."""


class ProviderErrorKind(NamedTuple):
    """One kind of trouble, as a person is told of it."""

    sentence: str
    remedy: RecoveryAction
    suggestion: str

    @property
    def recoverable(self) -> bool:
        """Whether the session goes on without the user doing anything."""
        return self.remedy in ("reconnect", "renew", "wait")


PROVIDER_ERRORS: dict[str, ProviderErrorKind] = {
    "network": ProviderErrorKind(
        "The connection to the assistant was lost.", "reconnect", "It is being restored; wait a moment."
    ),
    "session_expired": ProviderErrorKind(
        "The conversation reached its time limit and is continued in a new one.",
        "renew",
        "Go on; what was said last is remembered.",
    ),
    "going_away": ProviderErrorKind(
        "The provider is about to close the connection, so it is renewed.", "renew", "Go on talking."
    ),
    "rate_limit_exceeded": ProviderErrorKind(
        "The assistant is asked too much at the moment.", "wait", "It tries again by itself in a few seconds."
    ),
    "server_error": ProviderErrorKind(
        "The provider had a fault of its own.", "reconnect", "It is tried again; wait a moment."
    ),
    "context_length_exceeded": ProviderErrorKind(
        "The conversation has become too long for the model, so it is summarised.",
        "renew",
        "Go on; the summary and the last turns are kept.",
    ),
    "authentication": ProviderErrorKind(
        "The provider does not accept the key of this deployment.",
        "none",
        "Whoever runs it should check the key.",
    ),
    "quota_exhausted": ProviderErrorKind(
        "The provider's quota of this deployment is used up.",
        "none",
        "Whoever runs it should look at the plan.",
    ),
    "invalid_request_error": ProviderErrorKind(
        "The provider did not understand what was sent to it.",
        "none",
        "Say it in another way, or start anew.",
    ),
    "content_refused": ProviderErrorKind(
        "The provider declined to answer that.", "none", "Ask for something else."
    ),
    "no_audio": ProviderErrorKind(
        "What was said could not be understood.", "none", "Say it again, or type it."
    ),
}
"""By code. Adapters map what their provider says to one of these."""
