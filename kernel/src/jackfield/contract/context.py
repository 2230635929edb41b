"""What a handler is given besides its arguments: capabilities, never a socket or a provider session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

from jackfield.contract.tool import Intent, ToolResponse, end_voice_session, suppress_audio

Mode = Literal["text", "voice"]


class SessionView(Protocol):
    """A read-only look at the session a call belongs to."""

    @property
    def id(self) -> str:
        """The session's id."""

    @property
    def user(self) -> str | None:
        """Who is talking, when the host knows."""

    @property
    def mode(self) -> Mode:
        """The mode the session was created in; it never changes."""

    @property
    def turn(self) -> int:
        """The number of the current turn, counted from 1."""

    @property
    def registry_version(self) -> str:
        """The registry version the session is pinned to."""

    @property
    def active(self) -> bool:
        """Whether the conversation goes on."""


class Messaging(Protocol):
    """A way to the user's client."""

    async def send(self, event: str, **fields: Any) -> None:
        """Tell the client something that is not for the model; `ConnectionError` when none is connected."""


class VoiceControl:
    """The voice of a session. Intents alone change it, so a verb makes one, to be returned with `ok`."""

    __slots__ = ("_session",)

    def __init__(self, session: SessionView) -> None:
        self._session = session

    @property
    def active(self) -> bool:
        """Whether somebody listens: the session is a voice session, and goes on."""
        return self._session.mode == "voice" and self._session.active

    def end(self, after: Literal["current_turn", "farewell_spoken"] = "current_turn") -> Intent:
        """The intent that ends it when the current turn, or the farewell, is over."""
        return end_voice_session(after)


class AudioControl:
    """What is heard of a turn."""

    __slots__ = ()

    def suppress(self, value: bool = True) -> Intent:
        """The intent with which the answer to this turn is not spoken."""
        return suppress_audio(value)


class ToolContext(Protocol):
    """The second argument of `execute`.

    Capabilities that a tool names under `requires` are attributes of the context too, `ctx.kb` for `"kb"`.
    """

    @property
    def session(self) -> SessionView:
        """The session, to read."""

    @property
    def messaging(self) -> Messaging:
        """A way to the user's client."""

    @property
    def voice(self) -> VoiceControl:
        """The session's voice, if it has one."""

    @property
    def audio(self) -> AudioControl:
        """What is heard of this turn."""

    async def progress(self, message: str, *, fraction: float | None = None) -> None:
        """Tell the user how far a long call has come."""

    def audit(self, event: str, **fields: Any) -> None:
        """Add a line to the audit record of this call."""

    async def call_tool(self, tool_id: str, arguments: Mapping[str, Any]) -> ToolResponse:
        """Call another tool; the same policies hold as for a model's call."""

    def __getattr__(self, capability: str) -> Any:
        """A capability by its name."""
