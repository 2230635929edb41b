"""What a session tells its client, as plain values; members that this client does not know are left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeGuard


class Tool(NamedTuple):
    """A tool the model may use in this session."""

    id: str
    summary: str


@dataclass(frozen=True, slots=True)
class Message:
    """Anything a session tells."""


@dataclass(frozen=True, slots=True)
class Event(Message):
    """Something that happened, and is told again to a client that missed it."""

    id: int
    """Grows by one within a session."""
    at: float
    """Seconds since the epoch, by the host's clock."""


@dataclass(frozen=True, slots=True)
class Welcome(Message):
    """The first message of every connection: which session this is."""

    session: str
    token: str = field(repr=False)
    """Takes the session up again, for 24 hours; keep it secret."""
    mode: str
    user: str
    provider: str
    registry: str
    tools: tuple[Tool, ...]
    resumed: bool
    state: str
    last_event: int
    provider_reason: str | None = None
    """Why this provider; only for operators."""
    provider_hints: tuple[str, ...] = ()
    """How to get a better one; only for operators."""


@dataclass(frozen=True, slots=True)
class CaughtUp(Message):
    """Everything that was missed has been told."""


@dataclass(frozen=True, slots=True)
class Reset(Message):
    """Events of the past are no longer there: what this client shows may be incomplete."""

    reason: str


@dataclass(frozen=True, slots=True)
class TextDelta(Message):
    """A piece of an answer; one at character 0 begins the answer, or begins it anew."""

    answer: int
    at_character: int
    text: str


@dataclass(frozen=True, slots=True)
class Audio(Message):
    """A piece of speech: PCM16, 24 kHz, mono."""

    item: str
    pcm: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Transcript(Message):
    """Speech of either side while it is being said: a piece, or with `final` all of it."""

    speaker: str
    text: str
    final: bool
    item: str = ""


@dataclass(frozen=True, slots=True)
class SpeechStarted(Message):
    """The user began to speak: stop playing at once."""


@dataclass(frozen=True, slots=True)
class SpeechStopped(Message):
    """The user stopped speaking."""


@dataclass(frozen=True, slots=True)
class TurnComplete(Message):
    """The assistant has said what it had to say, and waits."""


@dataclass(frozen=True, slots=True)
class Interrupted(Message):
    """The assistant was cut short: drop what has not been played."""


@dataclass(frozen=True, slots=True)
class GoingAway(Message):
    """The host is about to stop; the session will be resumed."""

    reason: str


@dataclass(frozen=True, slots=True)
class HostError(Message):
    """Something this client did was not accepted."""

    code: str
    message: str
    suggestion: str | None = None
    retry_after: float | None = None
    form_id: str | None = None
    """The form that was not accepted, if it was one."""
    faults: Sequence[Mapping[str, str]] = ()
    """What is wrong with the values of a form that stays open: the `path` and the `message` of each."""


@dataclass(frozen=True, slots=True)
class Said(Event):
    """Somebody has said something, whole; the same `answer` again takes the place of the one before."""

    speaker: str
    text: str
    turn: int
    answer: int | None = None
    interrupted: bool | None = None
    client_id: str | None = None


@dataclass(frozen=True, slots=True)
class ToolStart(Event):
    """A tool is called."""

    tool: str
    call_id: str | None
    description: str
    arguments: str
    budget_ms: int | None


@dataclass(frozen=True, slots=True)
class ToolProgress(Event):
    """A tool says how far it has come."""

    tool: str
    call_id: str | None
    message: str
    fraction: float | None


@dataclass(frozen=True, slots=True)
class ToolComplete(Event):
    """A tool has done what it was asked to."""

    tool: str
    call_id: str | None
    duration_ms: float
    data: Any


@dataclass(frozen=True, slots=True)
class ToolError(Event):
    """A call did not succeed: it failed, or it has the outcome that `state` says."""

    tool: str
    call_id: str | None
    duration_ms: float
    error_type: str
    message: str
    suggestion: str | None
    recoverable: bool
    state: str | None = None
    """`waiting`, `declined`, `expired`, `running`, `in_doubt`, `never_run`, `unknown`; None if it failed."""


def is_outcome(message: Message) -> TypeGuard[ToolComplete | ToolError]:
    """Whether a call with an id has its outcome, so that nobody has to decide about it."""
    if isinstance(message, ToolError):
        return message.call_id is not None and message.error_type != "CONFIRMATION_REQUIRED"
    return isinstance(message, ToolComplete) and message.call_id is not None


@dataclass(frozen=True, slots=True)
class ToolDecisions(Message):
    """What each policy decided about a call, just before its outcome is told."""

    tool: str
    call_id: str | None
    decisions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ConfirmationRequired(Event):
    """A call waits for the user's word: show `preview`, then `approve` or `decline` it."""

    confirmation: str
    tool: str
    call_id: str | None
    preview: str
    args: Mapping[str, Any]
    expires_at: float = field(metadata={"wire": "expires_at"})
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ConfirmationSettled(Event):
    """The user has decided."""

    tool: str
    call_id: str | None
    approved: bool


@dataclass(frozen=True, slots=True)
class FormRequest(Event):
    """The user is asked to complete the arguments of a tool: `submit_form` or `dismiss_form`."""

    form_id: str
    tool_id: str
    values: Mapping[str, Any]
    """The arguments that are known."""
    description: str
    parameters: Mapping[str, Any]
    """The JSON Schema of the tool's arguments."""


@dataclass(frozen=True, slots=True)
class FormClosed(Event):
    """A form waits no more: it was submitted or dismissed, or a newer form of the same tool replaced it."""

    form_id: str
    submitted: bool
    values: Mapping[str, Any] | None = None
    """Those that were submitted."""


@dataclass(frozen=True, slots=True)
class SessionStatus(Event):
    """What the session is doing."""

    state: str
    active: bool
    tokens_used: int
    age_seconds: float


@dataclass(frozen=True, slots=True)
class Notification(Event):
    """A sentence of the host for the user."""

    code: str
    text: str
    suggestion: str


@dataclass(frozen=True, slots=True)
class Custom(Event):
    """What a tool told the client, under a name of its own."""

    name: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Unknown(Message):
    """A message of a newer host, which this client does not know."""

    type: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reconnecting(Message):
    """The connection is gone, and it is tried to have it back."""

    reason: str
    attempt: int
    seconds: float
    """How long until the attempt."""


@dataclass(frozen=True, slots=True)
class Dormant(Message):
    """The host has closed the connection because nobody said anything; the next word resumes the session."""

    reason: str


@dataclass(frozen=True, slots=True)
class Resumed(Message):
    """The session goes on, and what was missed has been told."""

    state: str
    """What the session was doing when the connection came back."""
    said_again: int
    """How many messages had not reached the host, and were sent once more."""
