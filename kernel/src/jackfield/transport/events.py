"""The events of a connection to a model, independent of the provider.

They are named tuples because speech creates an `Audio` every 20 milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from jackfield.contract.tool import ToolCall

Speaker = Literal["user", "assistant"]


class TextDelta(NamedTuple):
    """A piece of the text that the model writes."""

    text: str


class Audio(NamedTuple):
    """A piece of the model's speech: PCM16, 24 kHz, mono."""

    pcm: bytes
    item: str
    """The audio item it belongs to, for `Connection.truncate`."""

    filler: bool = False
    """True if `SpeakingConnection.speak` produced it; it is not part of an answer and is never truncated."""


class Transcript(NamedTuple):
    """A transcript of speech; partial ones come first, the final one has the whole text."""

    speaker: Speaker
    text: str
    final: bool
    item: str = ""


class ToolCalls(NamedTuple):
    """The complete calls of one message; each needs exactly one result."""

    calls: tuple[ToolCall, ...]


class FormRequest(NamedTuple):
    """Asks the user to complete a tool's arguments in a form; needs `ConnectionConfig.forms`."""

    form_id: str
    """Unique in the session."""
    tool_id: str
    values: Mapping[str, Any]
    """The known arguments."""


class ToolCallsCancelled(NamedTuple):
    """Calls whose results the model no longer needs."""

    call_ids: tuple[str, ...]


class SpeechStarted(NamedTuple):
    """The user began to speak."""


class SpeechStopped(NamedTuple):
    """The user stopped speaking."""


class TurnComplete(NamedTuple):
    """The model's turn is complete and it waits for input; not sent for a message that ends in calls."""


class Interrupted(NamedTuple):
    """The model was interrupted; no more of its answer follows."""


class Usage(NamedTuple):
    """Tokens, as the provider counts them."""

    input_tokens: int
    output_tokens: int


class ProviderError(NamedTuple):
    """An error after which the connection stays open; `code` is one of `PROVIDER_ERRORS`.

    A pending answer is lost; `send_context(..., respond=True)` requests it again.
    """

    code: str
    detail: str = ""


class ConnectionExpiring(NamedTuple):
    """The provider will close the connection soon."""

    seconds: float


class Closed(NamedTuple):
    """The connection is closed; every connection ends with exactly one of these events."""

    code: str = ""
    """Empty if this side closed the connection, else one of `PROVIDER_ERRORS`."""

    detail: str = ""


Event = (
    TextDelta | Audio | Transcript | ToolCalls | FormRequest | ToolCallsCancelled | SpeechStarted
    | SpeechStopped | TurnComplete | Interrupted | Usage | ProviderError | ConnectionExpiring | Closed
)  # fmt: skip
