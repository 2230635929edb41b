"""The way to a model: verbs out, one stream of events in. No type of a provider shows above this line."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeGuard

from jackfield.contract.context import Mode
from jackfield.transport.events import Event, Speaker


class Utterance(NamedTuple):
    """Something that was said, word for word."""

    speaker: Speaker
    text: str


class VoiceSettings(NamedTuple):
    """How the model listens and speaks; what is left empty is the provider's default."""

    voice: str | None = None
    language: str | None = None
    """As in BCP 47, `en-GB`."""

    silence_ms: int = 500
    """So much silence ends a user's turn."""

    transcribe: bool = True


_DEFAULT_VOICE = VoiceSettings()


class ToolResult(NamedTuple):
    """The one answer to one call: the envelope as JSON."""

    call_id: str
    tool_id: str
    envelope: bytes


@dataclass(frozen=True, slots=True)
class ConnectionConfig:
    """What a connection begins with."""

    mode: Mode
    instructions: str
    declarations: Mapping[str, Any]
    """The tools by id, each as the transport's schema adapter declared it at build."""

    guides: Mapping[str, str] = field(default_factory=dict)
    """The tools' guides by id, for a transport whose model cannot learn them from the instructions."""

    history: tuple[Utterance, ...] = ()
    """What was said before, when a conversation goes on in a new connection."""

    resume: str | None = None
    """What `Connection.resume` said last, to take up the provider's own session again."""

    voice: VoiceSettings = _DEFAULT_VOICE

    answer_tokens: int = 0
    """Most tokens of one answer; 0 leaves it to the provider."""

    writers: frozenset[str] = frozenset()
    """The tools that change something."""

    confirmed: frozenset[str] = frozenset()
    """The tools whose calls always wait for the user's approval."""

    text_only: Mapping[str, str] = field(default_factory=dict)
    """In voice: the guides, by id, of tools that are offered only in text."""

    forms: bool = False
    """Whether the client can show a tool's arguments as a form."""

    purpose: Literal["session", "summary"] = "session"
    """What the connection is for: a session with a user, or one summary of what was said in one."""


class TransportError(Exception):
    """A connection could not be opened, or not be used; `code` is one of `troubles.PROVIDER_ERRORS`."""

    def __init__(self, code: str, detail: str = "", retry_after: float | None = None) -> None:
        super().__init__(f"{code}: {detail}" if detail else code)
        self.code = code
        self.detail = detail
        self.retry_after = retry_after


class Connection(Protocol):
    """One open line to a model. Verbs after its end do nothing; the end itself is the event `Closed`."""

    @property
    def resume(self) -> str | None:
        """What takes this conversation up again at the provider's, where that is possible."""

    def events(self) -> AsyncIterator[Event]:
        """Everything that comes, in order, up to `Closed`; read by one reader."""

    async def send_text(self, text: str) -> None:
        """A message of the user, to be answered."""

    async def send_audio(self, pcm: bytes) -> None:
        """What the user says: PCM16, 24 kHz, mono, in pieces of any even length."""

    async def send_results(self, results: Sequence[ToolResult], *, respond: bool = True) -> None:
        """Answers to calls; the model goes on when all calls of its message have theirs.

        Without `respond` it goes on with the user's next words, where the provider can wait for them.
        """

    async def send_context(self, text: str, *, respond: bool = False) -> None:
        """Something the model should know that the user did not say; `respond` has it speak of it."""

    async def interrupt(self) -> None:
        """Stop what the model is saying; harmless when it says nothing."""

    async def truncate(self, item: str, heard_ms: int) -> None:
        """Make the model remember only what was heard of an item; more than was sent is cut to that."""

    async def close(self) -> None:
        """Hang up."""


class FormConnection(Connection, Protocol):
    """A connection that can ask for a tool's arguments with a form."""

    async def send_form(self, tool_id: str, values: Mapping[str, Any] | None) -> None:
        """The user completed the form of a tool, or dismissed it, which leaves nothing to answer."""


class SpeakingConnection(Connection, Protocol):
    """A connection that can say a sentence of ours aloud."""

    async def speak(self, text: str) -> None:
        """Say this aloud, outside the conversation's history, while the model waits for its calls.

        It comes as `Audio` with `filler` set, without a transcript, and ends no turn. Nothing is said while
        the user speaks or an answer is due; speech of the user and `interrupt` end it.
        """


class Transport(Protocol):
    """A provider of models; the setting `provider` names it."""

    @property
    def modes(self) -> frozenset[Mode]:
        """The modes it can carry."""

    def adapter(self, mode: Mode) -> str:
        """The schema adapter whose declarations it wants."""

    async def connect(self, opening: ConnectionConfig) -> Connection:
        """Open a line; `TransportError` when that fails."""

    async def close(self) -> None:
        """Let go of what all connections share."""


class BudgetedTransport(Transport, Protocol):
    """A transport that knows how long a prompt its model can afford; the setting `prompt_tokens` wins."""

    @property
    def prompt_tokens(self) -> int | None:
        """Most tokens of instructions and declarations; None takes the general default."""


class DescribedTransport(Transport, Protocol):
    """A transport that may answer in more than one way, and says in which."""

    def describe(self) -> str:
        """How it answers new sessions, as a clause such as "it uses the local language model"."""


def is_described(transport: Transport) -> TypeGuard[DescribedTransport]:
    """Whether a transport describes itself."""
    return callable(getattr(transport, "describe", None))


class BrowserCall(NamedTuple):
    """What a browser gets to talk to the provider itself."""

    answer_sdp: str
    call_id: str


class ClientSecret(NamedTuple):
    """A short-lived key for one browser."""

    value: str
    expires_at: float


class BrowserTransport(Transport, Protocol):
    """A transport whose audio goes from the browser to the provider, with us beside it for the tools."""

    async def mint(self, opening: ConnectionConfig, *, seconds: int = 60) -> ClientSecret:
        """A key with which a browser may open this session itself."""

    async def exchange(self, offer_sdp: str, opening: ConnectionConfig) -> BrowserCall:
        """Open the session for a browser: its offer in, the provider's answer out."""

    async def attach(self, call_id: str, opening: ConnectionConfig) -> Connection:
        """A line beside a browser's own; audio verbs do nothing on it."""

    async def hang_up(self, call_id: str) -> None:
        """End a browser's call."""
