"""The settings that apply to live sessions."""

from __future__ import annotations

from typing import Protocol

from jackfield.transport.protocol import VoiceSettings

from jackfield_sessions.claim_check import ClaimChecking


class SessionOptions(Protocol):
    """The settings of a deployment for its sessions; the settings of a host include them."""

    @property
    def max_sessions(self) -> int:
        """The maximum number of live sessions."""

    @property
    def sessions_per_user(self) -> int:
        """The maximum number of live sessions per user."""

    @property
    def grace_seconds(self) -> float:
        """How long a session stays live after its last client has disconnected."""

    @property
    def idle_seconds(self) -> float:
        """How long a session may be idle before it is closed."""

    @property
    def session_seconds(self) -> float:
        """The maximum duration of a session."""

    @property
    def drain_seconds(self) -> float:
        """How long the host waits for running tools when it stops."""

    @property
    def prune_seconds(self) -> float:
        """How often expired entries are removed from the store."""

    @property
    def dead_air_seconds(self) -> float:
        """How long a tool may run before the user is notified that it is slow."""

    @property
    def claim_checking(self) -> ClaimChecking:
        """What to do if the assistant claims an action that no call performed."""

    @property
    def spoken(self) -> VoiceSettings:
        """The voice settings of the model."""
