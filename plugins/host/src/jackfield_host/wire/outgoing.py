"""What the host says. These classes are the published schemas; messages themselves are written as plain JSON.

What has an `id` is an event: it is kept for 24 hours, ids of a session grow, and a client that comes back
gets what it missed. What has none is passing: it is only of use at the moment.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class Outgoing(BaseModel):
    """A message of the host; clients ignore members and types they do not know."""

    model_config = ConfigDict(extra="allow", alias_generator=to_camel, populate_by_name=True)


class Event(Outgoing):
    """Something that happened, and is told again to whoever missed it."""

    id: int = Field(
        ge=1, description="Grows within a session; one may be left out where the session changed hosts."
    )
    at: float = Field(description="Seconds since the epoch.")


class OfferedTool(Outgoing):
    """A tool the model may use in this session."""

    id: str
    summary: str


class Partial(Outgoing):
    """An answer that was being written when the client came."""

    answer: int
    text: str


class Session(Outgoing):
    """The first message: which session this is, and what takes it up again."""

    type: Literal["session"]
    protocol: Literal["jackfield.1"]
    session: str = Field(description="The session's id.")
    token: str = Field(description="Takes the session up again, for 24 hours; keep it secret.")
    mode: Literal["text", "voice"]
    user: str
    provider: str
    provider_reason: str | None = Field(None, description="Why this provider; only for an operator.")
    provider_hints: list[str] = Field([], description="How to get a better one; only for an operator.")
    registry: str = Field(description="The registry version the session is pinned to.")
    tools: list[OfferedTool]
    resumed: bool
    state: str
    last_event: int = Field(description="The id of the newest event before this message.")
    partial: Partial | None = None


class Reset(Outgoing):
    """Events the client asked for are no longer there: what it shows may be incomplete."""

    type: Literal["reset"]
    reason: Literal["expired", "unknown"]


class CaughtUp(Outgoing):
    """Everything the client had missed has been told; what comes from here on happens now."""

    type: Literal["caught_up"]


class TextDelta(Outgoing):
    """A piece of what the assistant writes."""

    type: Literal["text_delta"]
    answer: int = Field(description="The number of the answer; the `message` that completes it has the same.")
    at_character: int = Field(description="Where in the answer the piece begins.")
    text: str


class Audio(Outgoing):
    """The binary frames from here on belong to this item of speech."""

    type: Literal["audio"]
    item: str


class Transcript(Outgoing):
    """Speech of either side while it is being said; the `message` with all of it follows."""

    type: Literal["transcript"]
    speaker: Literal["user", "assistant"]
    text: str
    final: bool
    item: str


class SpeechStarted(Outgoing):
    """The user began to speak: stop playing at once."""

    type: Literal["speech_started"]


class SpeechStopped(Outgoing):
    """The user stopped speaking."""

    type: Literal["speech_stopped"]


class TurnComplete(Outgoing):
    """The assistant has said what it had to say, and waits."""

    type: Literal["turn_complete"]


class Interrupted(Outgoing):
    """The assistant was cut short: drop what has not been played."""

    type: Literal["interrupted"]


class GoingAway(Outgoing):
    """The host is about to stop; connect again with the token, here or at another host."""

    type: Literal["going_away"]
    reason: str


class FormFault(Outgoing):
    """One value of a form that does not fit its schema."""

    path: str = Field(description="Where: a JSON Pointer into the values.")
    message: str


class Error(Outgoing):
    """Something the client did was not accepted; the session goes on unless a close follows."""

    type: Literal["error"]
    code: str
    message: str
    suggestion: str | None = None
    retry_after: float | None = Field(None, description="Seconds after which it may be tried again.")
    form_id: str | None = Field(None, description="Only where a form was not accepted.")
    faults: list[FormFault] | None = Field(
        None, description="Only with `invalid_values`: what is wrong with the values; the form stays open."
    )


class Message(Event):
    """Somebody has said something, whole; the same `answer` again takes the place of the one before."""

    type: Literal["message"]
    speaker: Literal["user", "assistant"]
    text: str
    turn: int
    answer: int | None = None
    interrupted: bool | None = None
    client_id: str | None = Field(None, description="The name under which the client sent it.")


class ToolStart(Event):
    """A tool is called."""

    type: Literal["tool_start"]
    tool: str
    call_id: str | None
    description: str
    arguments: str = Field(description="The arguments as the model wrote them, cut after 4000 characters.")
    budget_ms: int | None


class ToolProgress(Event):
    """A tool says how far it has come."""

    type: Literal["tool_progress"]
    tool: str
    call_id: str | None
    message: str
    fraction: float | None


class ToolComplete(Event):
    """A tool has done what it was asked to."""

    type: Literal["tool_complete"]
    tool: str
    call_id: str | None
    duration_ms: float
    data: Any = Field(description="Its data, cut by kind to 4000 characters.")


class ToolError(Event):
    """A tool, or a policy in front of it, said no."""

    type: Literal["tool_error"]
    tool: str
    call_id: str | None
    duration_ms: float
    error_type: str
    message: str
    suggestion: str | None
    recoverable: bool
    state: str | None = Field(
        None,
        description="`waiting`, `declined`, `expired`, `running`, `in_doubt`, `never_run` or `unknown`; left "
        "out for a call that ran and failed.",
    )


class ToolDecisions(Outgoing):
    """What each policy decided about a call, just before its outcome is told."""

    type: Literal["tool_decisions"]
    tool: str
    call_id: str | None
    decisions: dict[str, str] = Field(
        description="By policy, in order: `pass`, its own words, or `not reached`."
    )


class ConfirmationRequired(Event):
    """A call waits for the user's word; the token is for the client alone."""

    type: Literal["confirmation_required"]
    confirmation: str
    tool: str
    call_id: str | None
    preview: str
    args: dict[str, Any]
    expires_at: float = Field(description="By the host's clock, as `at` is.")
    token: str


class ConfirmationSettled(Event):
    """The user has decided."""

    type: Literal["confirmation_settled"]
    tool: str
    call_id: str | None
    approved: bool


class FormRequest(Event):
    """The user is asked to complete the arguments of a tool; only for clients that said `forms`."""

    type: Literal["form_request"]
    form_id: str
    tool_id: str
    values: dict[str, Any] = Field(description="The arguments that are known.")
    description: str = Field(description="What the tool does.")
    parameters: dict[str, Any] = Field(description="The JSON Schema of the tool's arguments.")


class FormClosed(Event):
    """A form waits no more: it was submitted or dismissed, or a newer one of the same tool replaced it."""

    type: Literal["form_closed"]
    form_id: str
    submitted: bool
    values: dict[str, Any] | None = Field(
        None, description="Those that were submitted; left out if there are none, or the host has lost them."
    )


class SessionStatus(Event):
    """What the session is doing."""

    type: Literal["session_status"]
    state: str
    active: bool
    tokens_used: int
    age_seconds: float


class Notification(Event):
    """A sentence of the host for the user."""

    type: Literal["notification"]
    code: str
    text: str
    suggestion: str


class Custom(Event):
    """What a tool told the client, under a name of its own: `ban`, `voice_session_start`, `chat_message`."""

    type: Literal["custom"]
    name: str
    fields: dict[str, Any]


PASSING = (
    Session, Reset, CaughtUp, TextDelta, Audio, Transcript, SpeechStarted, SpeechStopped, TurnComplete,
    Interrupted, GoingAway, Error, ToolDecisions,
)  # fmt: skip
"""What is of use only at the moment."""

EVENTS = (
    Message, ToolStart, ToolProgress, ToolComplete, ToolError, ConfirmationRequired, ConfirmationSettled,
    FormRequest, FormClosed, SessionStatus, Notification, Custom,
)  # fmt: skip
"""What is kept, and told again."""


def error(
    code: str, text: str, suggestion: str | None = None, *, retry_after: float | None = None
) -> dict[str, Any]:
    """An `Error` as it is written."""
    message: dict[str, Any] = {"type": "error", "code": code, "message": text}
    if suggestion:
        message["suggestion"] = suggestion
    if retry_after is not None:
        message["retryAfter"] = round(retry_after, 3)
    return message
