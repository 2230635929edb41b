"""What a client says. Everything else in a text frame is refused with an `error`; binary frames are sound."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from jackfield_host.mistakes import explained
from jackfield_host.wire.zones import TimeZone


class Incoming(BaseModel):
    """A message of a client."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, alias_generator=to_camel)


class _Place(Incoming):
    time_zone: TimeZone | None = Field(None, description="The user's time zone, `Europe/Berlin`.")
    language: str | None = Field(None, max_length=35, description="What the user speaks, as in BCP 47.")
    forms: bool = Field(
        False,
        description="Whether the client shows `form_request`; without it, and in voice, questions are asked "
        "in words.",
    )


class Start(_Place):
    """Begin a session; the first message of a new client."""

    type: Literal["start"]
    handover: str | None = Field(
        None,
        max_length=200,
        description="The token of a text session whose pending request this one takes up.",
    )


class Resume(_Place):
    """Go on with a session; the first message of a client that comes back."""

    type: Literal["resume"]
    token: str = Field(max_length=200, description="The token that `session` carried.")
    last_event: int = Field(0, ge=0, description="The largest event id the client has seen; 0 for none.")


class Text(Incoming):
    """The user writes."""

    type: Literal["text"]
    text: str = Field(min_length=1, max_length=8000)
    client_id: str | None = Field(
        None,
        min_length=1,
        max_length=64,
        description="A name of the client's own; what is sent again under the same name is said once.",
    )


class Interrupt(Incoming):
    """The user wants the assistant to stop."""

    type: Literal["interrupt"]


class Playback(Incoming):
    """How much of an item of speech has been heard; to be sent a few times a second while it plays."""

    type: Literal["playback"]
    item: str = Field(max_length=200)
    ms: int = Field(ge=0, le=86_400_000, description="Milliseconds from the beginning of the item.")


class Approve(Incoming):
    """The user approves what a confirmation asked for."""

    type: Literal["approve"]
    token: str = Field(max_length=200, description="The token of the confirmation.")


class Decline(Incoming):
    """The user declines what a confirmation asked for."""

    type: Literal["decline"]
    token: str = Field(max_length=200, description="The token of the confirmation.")


class FormSubmit(Incoming):
    """The user completed a form: a turn of the user, in which the form's tool is called."""

    type: Literal["form_submit"]
    form_id: str = Field(min_length=1, max_length=200, description="The form, as `form_request` named it.")
    values: dict[str, Any] = Field(
        max_length=200, description="The arguments of the form's tool, all of them."
    )
    client_id: str | None = Field(
        None,
        min_length=1,
        max_length=64,
        description="A name of the client's own; what is sent again under the same name counts once.",
    )


class FormDismiss(Incoming):
    """The user does not want to complete a form."""

    type: Literal["form_dismiss"]
    form_id: str = Field(min_length=1, max_length=200, description="The form, as `form_request` named it.")


class Cancel(Incoming):
    """The user does not want to wait for a tool; one that writes goes on to its end."""

    type: Literal["cancel"]
    call_id: str = Field(max_length=200)


class Context(Incoming):
    """Something the model should know that the user did not say: what is on the screen, for instance."""

    type: Literal["context"]
    text: str = Field(min_length=1, max_length=4000)
    priority: Literal["high", "low"] = Field("low", description="At once, or at the next natural break.")


class End(Incoming):
    """The user hangs up; the session cannot be taken up again."""

    type: Literal["end"]


Opening = Annotated[Start | Resume, Field(discriminator="type")]
AnySpoken = (
    Text | Interrupt | Playback | Approve | Decline | FormSubmit | FormDismiss | Cancel | Context | End
)
Spoken = Annotated[AnySpoken, Field(discriminator="type")]

OPENINGS = (Start, Resume)
"""What a client may say first."""

SPOKEN = (
    Text, Interrupt, Playback, Approve, Decline, FormSubmit, FormDismiss, Cancel, Context, End,
)  # fmt: skip
"""What it may say after that."""

_opening: TypeAdapter[Start | Resume] = TypeAdapter(Opening)
_spoken: TypeAdapter[AnySpoken] = TypeAdapter(Spoken)


class MisunderstoodError(Exception):
    """A message that is none; its sentence is for whoever writes the client."""


def read_opening(text: str) -> Start | Resume:
    """The first message of a client."""
    try:
        return _opening.validate_json(text)
    except ValidationError as error:
        raise MisunderstoodError(explained(error, _members, tagged=True)) from None


def read_spoken(text: str) -> AnySpoken:
    """Any later message of a client."""
    try:
        return _spoken.validate_json(text)
    except ValidationError as error:
        raise MisunderstoodError(explained(error, _members, tagged=True)) from None


def _members(kind: str) -> list[str]:
    """What a message of a type may have in it."""
    for model in (*OPENINGS, *SPOKEN):
        if get_args(model.model_fields["type"].annotation) == (kind,):
            return [str(field.alias) for field in model.model_fields.values()]
    return []
