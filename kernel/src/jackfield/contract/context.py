"""The context that a handler receives besides its arguments.

It gives access to the session, the client and capabilities, but never to a socket or a provider's session.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol

from jackfield.contract.tool import Intent, ToolResponse, end_voice_session, suppress_audio

Mode = Literal["text", "voice"]


class UserQuestion(NamedTuple):
    """A question to the user during a call, as a form."""

    tool_id: str
    call_id: str | None
    asked_by: str
    """Who asks and gets the answer, such as `the MCP server shop`."""
    message: str
    parameters: Mapping[str, Any]
    """The JSON Schema of the answer."""
    seconds: float
    """How long to wait for the answer."""


class UserAnswer(NamedTuple):
    """The user's reaction to a question; `unanswered` if nobody answered or no client shows forms."""

    outcome: Literal["submitted", "dismissed", "unanswered"]
    values: Mapping[str, Any] = MappingProxyType({})


UNANSWERED = UserAnswer("unanswered")


class ModelRequest(NamedTuple):
    """A request to the session's model to write a text, without tools and without the conversation."""

    instructions: str
    messages: Sequence[tuple[Literal["user", "assistant"], str]]
    """The messages and their roles; the last message is the user's."""
    max_tokens: int
    """The maximum length of the answer."""
    seconds: float
    """How long to wait for the answer."""


class ModelAnswer(NamedTuple):
    """The model's text, and whether it was truncated at the maximum length."""

    text: str
    truncated: bool


class SessionView(Protocol):
    """A read-only view of the session that a call belongs to."""

    @property
    def id(self) -> str:
        """The session's id."""

    @property
    def user(self) -> str | None:
        """The user's id, if the host knows it."""

    @property
    def mode(self) -> Mode:
        """The session's mode; it never changes."""

    @property
    def turn(self) -> int:
        """The number of the current turn, counted from 1."""

    @property
    def registry_version(self) -> str:
        """The registry version that the session is pinned to."""

    @property
    def active(self) -> bool:
        """False once the session has ended."""


class Messaging(Protocol):
    """Sends events to the user's client."""

    async def send(self, event: str, **fields: Any) -> None:
        """Send an event that the model does not see; raises `ConnectionError` if no client is connected."""


class VoiceControl:
    """The voice of a session. Methods return an intent that the handler passes to `ok`."""

    __slots__ = ("_session",)

    def __init__(self, session: SessionView) -> None:
        self._session = session

    @property
    def active(self) -> bool:
        """True if this is a voice session that has not ended."""
        return self._session.mode == "voice" and self._session.active

    def end(self, after: Literal["current_turn", "farewell_spoken"] = "current_turn") -> Intent:
        """Return the intent that ends the session after the current turn or after the farewell."""
        return end_voice_session(after)


class AudioControl:
    """The audio of a turn."""

    __slots__ = ()

    def suppress(self, value: bool = True) -> Intent:
        """Return the intent that suppresses speech for the rest of this turn."""
        return suppress_audio(value)


class ToolContext(Protocol):
    """The second argument of `execute`.

    Capabilities that a tool lists in `requires` are attributes too, such as `ctx.kb` for `"kb"`.
    """

    @property
    def tool_id(self) -> str:
        """The id of the tool, for a handler that several tools share."""

    @property
    def idempotency_key(self) -> str | None:
        """An idempotency key for other systems, so that they run a repeated call only once.

        A repeated call has the same key. The key is None if no policy detects repeated calls. It reveals
        neither the session nor the user.
        """

    @property
    def session(self) -> SessionView:
        """A read-only view of the session."""

    @property
    def messaging(self) -> Messaging:
        """Sends events to the user's client."""

    @property
    def voice(self) -> VoiceControl:
        """The session's voice."""

    @property
    def audio(self) -> AudioControl:
        """The audio of this turn."""

    async def progress(self, message: str, *, fraction: float | None = None) -> None:
        """Report the progress of a long call to the user."""

    async def ask_user(
        self, message: str, parameters: Mapping[str, Any], *, asked_by: str, seconds: float
    ) -> UserAnswer:
        """Ask the user with a form while the call runs; `unanswered` if no connected client shows forms."""

    async def ask_model(self, request: ModelRequest) -> ModelAnswer | None:
        """Ask the session's model outside the conversation; None if it cannot be asked or does not answer."""

    def audit(self, event: str, **fields: Any) -> None:
        """Add a line to the audit record of this call."""

    async def call_tool(self, tool_id: str, arguments: Mapping[str, Any]) -> ToolResponse:
        """Call another tool; policies apply as they do to a call from the model."""

    def __getattr__(self, capability: str) -> Any:
        """Return a capability by its name."""
