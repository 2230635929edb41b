"""The settings that live sessions are held to."""

from __future__ import annotations

from typing import Protocol

from jackfield.transport.protocol import VoiceSettings


class SessionOptions(Protocol):
    """What a deployment decides about its sessions; the options of a host have all of it."""

    @property
    def max_sessions(self) -> int:
        """How many sessions are held at once."""

    @property
    def sessions_per_user(self) -> int:
        """How many of them one user may hold."""

    @property
    def grace_seconds(self) -> float:
        """How long a session stays connected to its model after its last client has gone."""

    @property
    def idle_seconds(self) -> float:
        """After how long without a word a session is closed."""

    @property
    def session_seconds(self) -> float:
        """The longest that a session may last."""

    @property
    def drain_seconds(self) -> float:
        """How long running tools may take to finish when the host stops."""

    @property
    def prune_seconds(self) -> float:
        """How often the store is cleared of what has expired."""

    @property
    def dead_air_seconds(self) -> float:
        """After how long without a word from a tool the user is told that it still works."""

    @property
    def spoken(self) -> VoiceSettings:
        """How the model listens and speaks."""
