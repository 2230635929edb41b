"""The transport protocol: a connection has methods for sending and one stream of events.

Code that uses it does not depend on any provider's types.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeGuard

from jackfield.contract.context import Mode
from jackfield.transport.events import Event, Speaker


class Utterance(NamedTuple):
    """Verbatim text of one speaker."""

    speaker: Speaker
    text: str


class VoiceSettings(NamedTuple):
    """Settings for how the model listens and speaks; None means the provider's default."""

    voice: str | None = None
    language: str | None = None
    """A BCP 47 tag such as `en-GB`."""

    silence_ms: int = 500
    """The duration of silence that ends the user's turn."""

    transcribe: bool = True


_DEFAULT_VOICE = VoiceSettings()


class ToolResult(NamedTuple):
    """The result of one call: the envelope as JSON."""

    call_id: str
    tool_id: str
    envelope: bytes


@dataclass(frozen=True, slots=True)
class ConnectionConfig:
    """The configuration of a new connection."""

    mode: Mode
    instructions: str
    declarations: Mapping[str, Any]
    """The declarations of the tools by id, as the transport's schema adapter created them at build."""

    guides: Mapping[str, str] = field(default_factory=dict)
    """The tools' guides by id, for transports that do not rely on the instructions alone."""

    history: tuple[Utterance, ...] = ()
    """The messages so far, if the conversation continues in a new connection."""

    resume: str | None = None
    """The last value of `Connection.resume`, to resume the provider's own session."""

    voice: VoiceSettings = _DEFAULT_VOICE

    answer_tokens: int = 0
    """Maximum number of tokens in one answer; 0 leaves it to the provider."""

    writers: frozenset[str] = frozenset()
    """The tools that have side effects."""

    confirmed: frozenset[str] = frozenset()
    """The tools whose calls always need the user's confirmation."""

    text_only: Mapping[str, str] = field(default_factory=dict)
    """In voice: the guides, by id, of tools that are only available in text."""

    forms: bool = False
    """True if the client can show a tool's arguments as a form."""

    purpose: Literal["session", "summary"] = "session"
    """The use of the connection: a session with a user, or a single text without tools, such as a summary."""


class TransportError(Exception):
    """A connection could not be opened or used; `code` is one of `PROVIDER_ERRORS`."""

    def __init__(self, code: str, detail: str = "", retry_after: float | None = None) -> None:
        super().__init__(f"{code}: {detail}" if detail else code)
        self.code = code
        self.detail = detail
        self.retry_after = retry_after


class Connection(Protocol):
    """An open connection to a model. It ends with the event `Closed`; after that, methods do nothing."""

    @property
    def resume(self) -> str | None:
        """A handle that resumes this conversation at the provider, if it supports that."""

    def events(self) -> AsyncIterator[Event]:
        """Yield all events in order, up to `Closed`; there must be only one reader."""

    async def send_text(self, text: str) -> None:
        """Send a message from the user; the model answers it."""

    async def send_audio(self, pcm: bytes) -> None:
        """Send the user's speech: PCM16, 24 kHz, mono, in pieces of any even length."""

    async def send_results(self, results: Sequence[ToolResult], *, respond: bool = True) -> None:
        """Send results of calls; the model continues once all calls of its message have a result.

        Without `respond`, the model waits for the user's next input, if the provider supports that.
        """

    async def send_context(self, text: str, *, respond: bool = False) -> None:
        """Send information that the user did not say; with `respond`, the model responds to it."""

    async def interrupt(self) -> None:
        """Stop the model's current answer; does nothing if there is none."""

    async def truncate(self, item: str, heard_ms: int) -> None:
        """Truncate an audio item to what the user heard; a value beyond its length keeps all of it."""

    async def close(self) -> None:
        """Close the connection."""


class FormConnection(Connection, Protocol):
    """A connection that can request a tool's arguments with a form."""

    async def send_form(self, tool_id: str, values: Mapping[str, Any] | None) -> None:
        """Send the values of a completed form; None if the user dismissed it, which needs no answer."""


class SpeakingConnection(Connection, Protocol):
    """A connection that can speak a text from the host."""

    async def speak(self, text: str) -> None:
        """Speak a text that is not part of the history, while the model waits for results.

        The speech arrives as `Audio` with `filler` set, has no transcript and does not end the turn. Nothing
        is spoken while the user speaks or an answer is pending; the user's speech and `interrupt` stop it.
        """


class StreamingConnection(Connection, Protocol):
    """A connection whose model takes parts of a result while the call runs."""

    async def send_partial(self, part: ToolResult) -> None:
        """Send a part before the result of the call; the model neither waits for the rest nor answers.

        The call stays open until `send_results`. After a part, it no longer holds back other messages.
        """


def is_streaming(connection: Connection) -> TypeGuard[StreamingConnection]:
    """Return whether a connection takes parts of a result."""
    return callable(getattr(connection, "send_partial", None))


class Transport(Protocol):
    """A model provider; the `provider` setting refers to it by name."""

    @property
    def modes(self) -> frozenset[Mode]:
        """The modes that it supports."""

    def adapter(self, mode: Mode) -> str:
        """Return the name of the schema adapter whose declarations it uses."""

    async def connect(self, config: ConnectionConfig) -> Connection:
        """Open a connection; raises `TransportError` if that fails."""

    async def close(self) -> None:
        """Release the resources that all connections share."""


class BudgetedTransport(Transport, Protocol):
    """A transport with its own limit for prompts; the setting `prompt_tokens` overrides it."""

    @property
    def prompt_tokens(self) -> int | None:
        """Maximum number of tokens in instructions and declarations; None for the general default."""


class DescribedTransport(Transport, Protocol):
    """A transport that has several ways to answer and describes the one in use."""

    def describe(self) -> str:
        """Return how it answers new sessions, as a clause such as "it uses the local language model"."""


def is_described(transport: Transport) -> TypeGuard[DescribedTransport]:
    """Return whether a transport describes itself."""
    return callable(getattr(transport, "describe", None))


class BrowserCall(NamedTuple):
    """The provider's answer to a browser that connects to it directly."""

    answer_sdp: str
    call_id: str


class ClientSecret(NamedTuple):
    """A short-lived key for one browser."""

    value: str
    expires_at: float


class BrowserTransport(Transport, Protocol):
    """A transport with calls between browser and provider; the host attaches to them for the tools."""

    async def mint(self, config: ConnectionConfig, *, seconds: int = 60) -> ClientSecret:
        """Return a key with which a browser can open this session itself."""

    async def exchange(self, offer_sdp: str, config: ConnectionConfig) -> BrowserCall:
        """Open a session for a browser: takes its SDP offer and returns the provider's answer."""

    async def attach(self, call_id: str, config: ConnectionConfig) -> Connection:
        """Open a second connection to a browser's call; methods for audio do nothing on it."""

    async def hang_up(self, call_id: str) -> None:
        """End a browser's call."""
