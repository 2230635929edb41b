"""The errors of a connection to a model provider, each with a message, a recovery action and a suggestion."""

from __future__ import annotations

from typing import Literal, NamedTuple

RecoveryAction = Literal["reconnect", "renew", "wait", "none"]
"""Reopen the connection; open a new one with the history; retry later; or stop."""


class ProviderErrorKind(NamedTuple):
    """One kind of provider error, as reported to the user."""

    message: str
    recovery: RecoveryAction
    suggestion: str

    @property
    def recoverable(self) -> bool:
        """True if the session continues without an action by the user."""
        return self.recovery in ("reconnect", "renew", "wait")


PROVIDER_ERRORS: dict[str, ProviderErrorKind] = {
    "network": ProviderErrorKind(
        "The connection to the assistant was lost.", "reconnect", "Wait a moment while the host reconnects."
    ),
    "session_expired": ProviderErrorKind(
        "The conversation reached the provider's time limit and continues on a new connection.",
        "renew",
        "You can continue; the last turns are kept.",
    ),
    "going_away": ProviderErrorKind(
        "The provider is about to close the connection, so the host is renewing it.",
        "renew",
        "You can continue.",
    ),
    "rate_limit_exceeded": ProviderErrorKind(
        "The provider's rate limit has been reached.",
        "wait",
        "Wait; the request will be retried in a few seconds.",
    ),
    "server_error": ProviderErrorKind(
        "The provider had an internal error.", "reconnect", "Wait a moment while the request is retried."
    ),
    "context_length_exceeded": ProviderErrorKind(
        "The conversation is too long for the model, so earlier turns are being summarised.",
        "renew",
        "You can continue; the summary and the last turns are kept.",
    ),
    "authentication": ProviderErrorKind(
        "The provider rejected this deployment's API key.",
        "none",
        "The operator should check the provider API key.",
    ),
    "quota_exhausted": ProviderErrorKind(
        "This deployment's provider quota is used up.",
        "none",
        "The operator should check the provider plan.",
    ),
    "invalid_request_error": ProviderErrorKind(
        "The provider rejected the request as invalid.",
        "none",
        "Rephrase the message, or start a new session.",
    ),
    "content_refused": ProviderErrorKind(
        "The provider declined to answer that.", "none", "Ask for something else."
    ),
    "no_audio": ProviderErrorKind("The speech could not be understood.", "none", "Say it again, or type it."),
}
"""The errors by code; transports map the errors of their provider to these."""
