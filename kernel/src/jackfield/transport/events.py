"""What comes from a model, in words that fit every provider.

Named tuples, because an `Audio` is made every 20 milliseconds of speech.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from jackfield.contract.tool import ToolCall

Speaker = Literal["user", "assistant"]


class TextDelta(NamedTuple):
    """A piece of what the model writes."""

    text: str


class Audio(NamedTuple):
    """A piece of what the model says: PCM16, 24 kHz, mono."""

    pcm: bytes
    item: str
    """What it belongs to; `truncate` takes it back."""

    filler: bool = False
    """Spoken by `SpeakingConnection.speak` while the user waits: no part of an answer, never truncated."""


class Transcript(NamedTuple):
    """What was said, in writing; pieces of it first, the whole at last."""

    speaker: Speaker
    text: str
    final: bool
    item: str = ""


class ToolCalls(NamedTuple):
    """Calls of one message, complete and not taken back; each wants exactly one result."""

    calls: tuple[ToolCall, ...]


class FormRequest(NamedTuple):
    """Asks the user to complete a tool's arguments in a form; sent only where `Opening.forms` allows it."""

    form_id: str
    """Not used before in the session."""
    tool_id: str
    values: Mapping[str, Any]
    """The arguments that are known."""


class ToolCallsCancelled(NamedTuple):
    """Calls whose results the model no longer wants."""

    call_ids: tuple[str, ...]


class SpeechStarted(NamedTuple):
    """The user began to speak."""


class SpeechStopped(NamedTuple):
    """The user stopped speaking."""


class TurnComplete(NamedTuple):
    """The model has said what it had to say, and waits; not sent for a message that ends in calls."""


class Interrupted(NamedTuple):
    """The model was cut short; what it had not said yet will not come."""


class Usage(NamedTuple):
    """Tokens, as the provider counts them."""

    input_tokens: int
    output_tokens: int


class ProviderError(NamedTuple):
    """Something went wrong and the connection stands; `code` is one of `troubles.PROVIDER_ERRORS`.

    An answer that was due does not come; `send_context(..., respond=True)` asks for it again.
    """

    code: str
    detail: str = ""


class ConnectionExpiring(NamedTuple):
    """The provider will end the connection soon."""

    seconds: float


class Closed(NamedTuple):
    """The connection is over; always the last event, and always there."""

    code: str = ""
    """Empty when we closed it, else one of `troubles.PROVIDER_ERRORS`."""

    detail: str = ""


Event = (
    TextDelta | Audio | Transcript | ToolCalls | FormRequest | ToolCallsCancelled | SpeechStarted
    | SpeechStopped | TurnComplete | Interrupted | Usage | ProviderError | ConnectionExpiring | Closed
)  # fmt: skip
