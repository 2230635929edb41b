"""Every message of the protocol, as a dataclass.

A member has its field's name in camelCase. A member whose default is None or False is omitted if it has that
value, unless it is marked with `SENT_AS_NULL`. `annotated_types` give limits and descriptions; the host
compiles its validators and the published JSON Schemas from them, and `codec` compiles the encoding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, get_args

from annotated_types import Ge, Le, MaxLen, MinLen, doc

Speaker = Literal["user", "assistant"]

ResetReason = Literal["expired", "unknown"]

MAX_TEXT_LENGTH = 8000
"""Maximum length of a user's message, in characters."""

MAX_CONTEXT_LENGTH = 4000
"""Maximum length of a `context` message, in characters."""

SENT_AS_NULL: Mapping[str, bool] = {"null": True}
"""Metadata of a field that is sent as `null` instead of omitted if it is None."""


def camel_case(name: str) -> str:
    """Return the wire name of a field: `call_id` becomes `callId`."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientMessage:
    """A message from the client; the host rejects members and types that it does not know."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {
        "extra": "forbid",
        "strict": True,
        "alias_generator": camel_case,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class HostMessage:
    """A message from the host; clients ignore members and types that they do not know.

    A message that is not a `SessionEvent` is transient: it matters only now and is not replayed.
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"extra": "allow", "alias_generator": camel_case}


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEvent(HostMessage):
    """A message that the session's event log keeps for 24 hours and replays to clients that missed it."""

    id: Annotated[
        int, Ge(1), doc("Increases within a session; gaps are possible where the session changed hosts.")
    ] = 0
    """0 until the event is in the log."""
    at: Annotated[float, doc("Seconds since the epoch.")] = 0.0


# Messages from the client: `start` or `resume` first, then the others in any order.


@dataclass(frozen=True, slots=True, kw_only=True)
class _FirstMessage(ClientMessage):
    time_zone: Annotated[str | None, MaxLen(64), doc("The user's time zone, such as `Europe/Berlin`.")] = None
    language: Annotated[str | None, MaxLen(35), doc("The user's language, as a BCP 47 tag.")] = None
    forms: Annotated[
        bool,
        doc("True if the client shows `form_request`; otherwise, and in voice, the assistant asks in words."),
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Start(_FirstMessage):
    """Start a session; the first message of a new client."""

    type: Literal["start"] = "start"
    handover: Annotated[
        str | None,
        MaxLen(200),
        doc("The token of a text session whose pending request the new session takes over."),
    ] = None
    model: Annotated[
        str | None, MaxLen(64), doc("One of `models` in the `session` message; null for the provider's own.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume(_FirstMessage):
    """Resume a session; the first message from a client that reconnects."""

    type: Literal["resume"] = "resume"
    token: Annotated[str, MaxLen(200), doc("The token from the `session` message.")] = field(repr=False)
    last_event: Annotated[int, Ge(0), doc("The largest event id that the client has seen; 0 for none.")] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Text(ClientMessage):
    """The user writes a message."""

    type: Literal["text"] = "text"
    text: Annotated[str, MinLen(1), MaxLen(MAX_TEXT_LENGTH)]
    client_id: Annotated[
        str | None,
        MinLen(1),
        MaxLen(64),
        doc("The client's id for this message; the host accepts each id once, so resending is safe."),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupt(ClientMessage):
    """The user wants the assistant to stop."""

    type: Literal["interrupt"] = "interrupt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Playback(ClientMessage):
    """How much of an audio item was played; send it a few times a second during playback."""

    type: Literal["playback"] = "playback"
    item: Annotated[str, MaxLen(200)]
    ms: Annotated[int, Ge(0), Le(86_400_000), doc("Milliseconds from the start of the item.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Approve(ClientMessage):
    """The user approves a call that is waiting for confirmation."""

    type: Literal["approve"] = "approve"
    token: Annotated[str, MaxLen(200), doc("The token of the confirmation.")] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decline(ClientMessage):
    """The user declines a call that is waiting for confirmation."""

    type: Literal["decline"] = "decline"
    token: Annotated[str, MaxLen(200), doc("The token of the confirmation.")] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormSubmit(ClientMessage):
    """The user submits a form: a user turn, in which the form's tool is called."""

    type: Literal["form_submit"] = "form_submit"
    form_id: Annotated[str, MinLen(1), MaxLen(200), doc("The form, as named in `form_request`.")]
    values: Annotated[dict[str, Any], MaxLen(200), doc("All arguments of the form's tool.")]
    client_id: Annotated[
        str | None,
        MinLen(1),
        MaxLen(64),
        doc("The client's id for this message; the host accepts each id once, so resending is safe."),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FormDismiss(ClientMessage):
    """The user closes a form without submitting it."""

    type: Literal["form_dismiss"] = "form_dismiss"
    form_id: Annotated[str, MinLen(1), MaxLen(200), doc("The form, as named in `form_request`.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel(ClientMessage):
    """The user does not want to wait for a tool; a tool that writes still runs to its end."""

    type: Literal["cancel"] = "cancel"
    call_id: Annotated[str, MaxLen(200)]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddContext(ClientMessage):
    """Something the model should know that the user did not say, such as what the screen shows."""

    type: Literal["context"] = "context"
    text: Annotated[str, MinLen(1), MaxLen(MAX_CONTEXT_LENGTH)]
    priority: Annotated[Literal["high", "low"], doc("`high`: now; `low`: when the model next pauses.")] = (
        "low"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class End(ClientMessage):
    """The user ends the session; it cannot be resumed."""

    type: Literal["end"] = "end"


# Transient messages from the host.


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedTool(HostMessage):
    """A tool that the model may use in this session."""

    id: str
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialAnswer(HostMessage):
    """An answer that was being written when the client connected."""

    answer: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedModel(HostMessage):
    """A model that the user may choose for a new session."""

    name: str
    provider: str
    modes: Annotated[Sequence[Literal["text", "voice"]], doc("The modes in which the model answers.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo(HostMessage):
    """The first message from the host: which session this is, and the token that resumes it."""

    type: Literal["session"] = "session"
    protocol: Literal["jackfield.1"] = "jackfield.1"
    session: Annotated[str, doc("The session's id.")]
    token: Annotated[str, doc("The token that resumes the session for 24 hours; keep it secret.")] = field(
        repr=False
    )
    mode: Literal["text", "voice"]
    user: str
    provider: str
    provider_reason: Annotated[str | None, doc("Why the host uses this provider; only for operators.")] = (
        field(default=None, metadata=SENT_AS_NULL)
    )
    provider_hints: Annotated[Sequence[str], doc("How to get a better provider; only for operators.")] = ()
    registry: Annotated[str, doc("The registry version that the session is pinned to.")]
    tools: Sequence[OfferedTool]
    resumed: bool
    state: str
    last_event: Annotated[int, doc("The id of the newest event before this message.")]
    partial: PartialAnswer | None = field(default=None, metadata=SENT_AS_NULL)
    model: Annotated[str | None, doc("The model that the user chose, by its name.")] = None
    models: Annotated[Sequence[OfferedModel], doc("The models that the user may choose.")] = ()
    now: Annotated[float | None, doc("The time by the clock that stamps events, in seconds since 1970.")] = (
        None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset(HostMessage):
    """Events that the client asked for no longer exist: its view of the session may be incomplete."""

    type: Literal["reset"] = "reset"
    reason: ResetReason


@dataclass(frozen=True, slots=True, kw_only=True)
class CaughtUp(HostMessage):
    """The client has received everything it missed; what follows is live."""

    type: Literal["caught_up"] = "caught_up"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta(HostMessage):
    """A piece of the assistant's answer in text."""

    type: Literal["text_delta"] = "text_delta"
    answer: Annotated[
        int, doc("The number of the answer; the `message` that completes it has the same number.")
    ]
    offset: Annotated[int, doc("Where in the answer the piece begins.")]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioItem(HostMessage):
    """The binary frames that follow belong to this audio item."""

    type: Literal["audio"] = "audio"
    item: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript(HostMessage):
    """A transcript of speech in progress; the complete `message` follows."""

    type: Literal["transcript"] = "transcript"
    speaker: Speaker
    text: str
    final: bool
    item: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechStarted(HostMessage):
    """The user started to speak: stop playback at once."""

    type: Literal["speech_started"] = "speech_started"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechStopped(HostMessage):
    """The user stopped speaking."""

    type: Literal["speech_stopped"] = "speech_stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnComplete(HostMessage):
    """The assistant's turn is complete; it waits for the user."""

    type: Literal["turn_complete"] = "turn_complete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted(HostMessage):
    """The assistant was interrupted: drop the audio that has not been played."""

    type: Literal["interrupted"] = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class GoingAway(HostMessage):
    """The host is about to stop; reconnect with the token, to this or another host."""

    type: Literal["going_away"] = "going_away"
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FormFault(HostMessage):
    """A form value that does not fit its schema."""

    path: Annotated[str, doc("The location, as a JSON Pointer into the values.")]
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorMessage(HostMessage):
    """The host rejected a message or could not process it; the session continues unless a close follows."""

    type: Literal["error"] = "error"
    code: str
    message: str
    suggestion: str | None = None
    retry_after: Annotated[float | None, doc("Seconds after which to try again.")] = None
    form_id: Annotated[str | None, doc("Only if a form was rejected.")] = None
    faults: Annotated[
        Sequence[FormFault] | None,
        doc("Only with `invalid_values`: what is wrong with the values; the form stays open."),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDecisions(HostMessage):
    """What each policy decided on a call; sent just before the call's outcome."""

    type: Literal["tool_decisions"] = "tool_decisions"
    tool: str
    call_id: str | None
    decisions: Annotated[
        Mapping[str, str],
        doc("The decisions by policy, in order: `pass`, the policy's own decision, or `not reached`."),
    ]


# Events of the host.


@dataclass(frozen=True, slots=True, kw_only=True)
class UnbackedClaim(HostMessage):
    """An action that the assistant says it performed, although no call that performs it has succeeded."""

    tool: Annotated[str, doc("The tool that does what the assistant says.")]
    says: Annotated[str, doc("The tool's phrase that the sentence contains.")]
    text: Annotated[str, doc("The sentence, truncated to 200 characters.")]
    state: Annotated[
        str,
        doc("`no_call`, or the state of this turn's call: `waiting`, `failed`, `in_doubt`, `declined`, ..."),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage(SessionEvent):
    """A complete message from either speaker; a later one with the same `answer` replaces it."""

    type: Literal["message"] = "message"
    speaker: Speaker
    text: str
    turn: int
    answer: int | None = None
    interrupted: bool | None = None
    client_id: Annotated[str | None, doc("The client's id for the message; only for user messages.")] = None
    form_id: Annotated[str | None, doc("The form that the user submitted; `text` has its values.")] = None
    unbacked_claims: Annotated[
        Sequence[UnbackedClaim] | None, doc("The actions that the assistant says it did, but has not done.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStart(SessionEvent):
    """A tool call begins."""

    type: Literal["tool_start"] = "tool_start"
    tool: str
    call_id: str | None
    description: str
    arguments: Annotated[str, doc("The arguments as the model wrote them, truncated to 4000 characters.")]
    budget_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolProgress(SessionEvent):
    """A tool reports its progress, or a partial result, which is never the answer."""

    type: Literal["tool_progress"] = "tool_progress"
    tool: str
    call_id: str | None
    message: str
    fraction: float | None
    partial: Annotated[
        int | None,
        Ge(1),
        doc("Only with a partial result: its number; at 1, drop what an earlier attempt of the call showed."),
    ] = None
    data: Annotated[
        str | list[Any] | None,
        doc("The partial result: text that continues the one before, or further items."),
    ] = None
    truncated: Annotated[bool, doc("True if the limits are reached, so that no partial result follows.")] = (
        False
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolComplete(SessionEvent):
    """A tool call succeeded."""

    type: Literal["tool_complete"] = "tool_complete"
    tool: str
    call_id: str | None
    duration_ms: float
    data: Annotated[Any, doc("The result, truncated to 4000 characters.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolErrorEvent(SessionEvent):
    """A tool call did not succeed: it failed, a policy rejected it, or it has the outcome in `state`."""

    type: Literal["tool_error"] = "tool_error"
    tool: str
    call_id: str | None
    duration_ms: float
    error_type: str
    message: str
    suggestion: str | None
    recoverable: bool
    state: Annotated[
        str | None,
        doc(
            "`waiting`, `declined`, `expired`, `running`, `in_doubt`, `never_run` or `unknown`; left out for "
            "a call that ran and failed."
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmationRequired(SessionEvent):
    """A call is waiting for the user's decision; the token is for the client alone."""

    type: Literal["confirmation_required"] = "confirmation_required"
    confirmation: str
    tool: str
    call_id: str | None
    preview: str
    args: Mapping[str, Any]
    expires_at: Annotated[float, doc("The expiry by the host's clock, like `at`.")]
    token: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmationSettled(SessionEvent):
    """The user has decided."""

    type: Literal["confirmation_settled"] = "confirmation_settled"
    tool: str
    call_id: str | None
    approved: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FormRequest(SessionEvent):
    """Asks the user for a tool's arguments or a running call's input; only for clients that set `forms`."""

    type: Literal["form_request"] = "form_request"
    form_id: str
    tool: str
    values: Annotated[Mapping[str, Any], doc("The known arguments.")]
    description: Annotated[str, doc("What the tool does.")]
    parameters: Annotated[Mapping[str, Any], doc("The JSON Schema of the values.")]
    asked_by: Annotated[
        str | None,
        doc(
            "Who asks for the values and gets them, if a running call asks; `description` is then the "
            "question."
        ),
    ] = None
    call_id: Annotated[str | None, doc("The call that asks for the values.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FormClosed(SessionEvent):
    """A form is closed: submitted, dismissed, or replaced by a newer form for the same tool."""

    type: Literal["form_closed"] = "form_closed"
    form_id: str
    submitted: bool
    values: Annotated[
        Mapping[str, Any] | None,
        doc("The submitted values; left out if there are none, or if the host lost them."),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStatus(SessionEvent):
    """What the session is doing."""

    type: Literal["session_status"] = "session_status"
    state: str
    active: bool
    tokens_used: int
    age_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification(SessionEvent):
    """A notice from the host for the user."""

    type: Literal["notification"] = "notification"
    code: str
    text: str
    suggestion: str
    registry: Annotated[
        str | None, doc("With `registry_reloaded`: the version that the session is pinned to now.")
    ] = None
    tools: Annotated[
        Sequence[str] | None, doc("With `registry_reloaded`: the tools that were added, changed or removed.")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomEvent(SessionEvent):
    """An event from a tool under its own name: `ban`, `voice_session_start`, `chat_message`."""

    type: Literal["custom"] = "custom"
    name: str
    fields: Mapping[str, Any]


FirstMessage = Start | Resume
"""A client's first message."""

LaterMessage = (
    Text | Interrupt | Playback | Approve | Decline | FormSubmit | FormDismiss | Cancel | AddContext | End
)
"""A client's later messages."""

CLIENT_MESSAGES: tuple[type[ClientMessage], ...] = (*get_args(FirstMessage), *get_args(LaterMessage))

TRANSIENT_MESSAGES: tuple[type[HostMessage], ...] = (
    SessionInfo, Reset, CaughtUp, TextDelta, AudioItem, Transcript, SpeechStarted, SpeechStopped,
    TurnComplete, Interrupted, GoingAway, ErrorMessage, ToolDecisions,
)  # fmt: skip

SESSION_EVENTS: tuple[type[SessionEvent], ...] = (
    ChatMessage, ToolStart, ToolProgress, ToolComplete, ToolErrorEvent, ConfirmationRequired,
    ConfirmationSettled, FormRequest, FormClosed, SessionStatus, Notification, CustomEvent,
)  # fmt: skip

HOST_MESSAGES: tuple[type[HostMessage], ...] = (*TRANSIENT_MESSAGES, *SESSION_EVENTS)

ALL_MESSAGES: tuple[type[ClientMessage | HostMessage], ...] = (*CLIENT_MESSAGES, *HOST_MESSAGES)
