"""The model's side of one conversation, as a script plays it on whatever protocol."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Script = Callable[["ScriptedModel"], Awaitable[None]]
"""Plays the model in one connection; when it returns, the model has nothing more to say."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What came from the user: words, or so many milliseconds of speech."""

    text: str = ""
    audio_ms: int = 0


@dataclass(frozen=True, slots=True)
class Refusal:
    """A connection or request that is turned away before a script runs."""

    status: int
    code: str = ""
    message: str = ""
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A call that the scripted model makes."""

    tool: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    """As values, or as the very text, which may be malformed."""

    id: str | None = None
    """Left out, a stable one is made."""


class NotOnThisProtocolError(Exception):
    """A step of a script that the protocol has no message for."""


class ScriptedModel(ABC):
    """What a script can do and see; one for each connection."""

    @property
    @abstractmethod
    def instructions(self) -> str:
        """What the model was told to be."""

    @property
    @abstractmethod
    def tools(self) -> Mapping[str, Any]:
        """The declarations it was given, by the name on the wire."""

    @property
    @abstractmethod
    def received(self) -> list[Mapping[str, Any]]:
        """Every message of the client, as it came."""

    @abstractmethod
    async def hears(self) -> Heard:
        """Wait until the user has said something and an answer is due."""

    @abstractmethod
    async def hears_speech(self, transcript: str, *, after_ms: int = 200) -> Heard:
        """Wait for so much audio, take it for speech that began and ended, and write it down so (voice)."""

    @abstractmethod
    async def says(self, text: str, *, pieces: int = 3) -> None:
        """Answer to the end; in voice also as audio, some 60 ms of it for each word."""

    @abstractmethod
    async def speaks(self, text: str, *, ms: int) -> None:
        """Begin an answer with so much audio, sent faster than it plays, and leave it unfinished (voice)."""

    @abstractmethod
    async def ends_speaking(self) -> None:
        """Finish what `speaks` began (voice)."""

    @abstractmethod
    async def is_interrupted(self) -> None:
        """The user speaks while the model does: tell so, and cut the answer short (voice)."""

    @abstractmethod
    async def truncated(self) -> int:
        """Wait for the milliseconds the client says were heard; 0 when it deleted the item (voice)."""

    @abstractmethod
    async def calls(self, *calls: Call, taken_back: bool = False) -> dict[str, Any]:
        """Call tools in one message; the envelope of each by call id, once all have come.

        With `taken_back` the message is cut short, so that no call of it may run; nothing is waited for.
        """

    @abstractmethod
    async def cancels(self, *ids: str) -> None:
        """Take back calls that may be running (Gemini Live)."""

    @abstractmethod
    async def results(self, *ids: str) -> dict[str, Any]:
        """Wait for the envelopes of calls that were made before."""

    @abstractmethod
    async def goes_away(self, seconds: float) -> None:
        """Say that the connection will end soon."""

    @abstractmethod
    async def errs(self, code: str, message: str = "") -> None:
        """Report an error of the provider's own, such as `session_expired` or `server_error`."""

    @abstractmethod
    async def closes(self, code: int = 1000, reason: str = "") -> None:
        """End the connection with a close code (WebSocket), or in mid-stream (HTTP)."""


def cut(text: str, pieces: int) -> list[str]:
    """A text in about so many pieces, none of them empty."""
    length = max(1, -(-len(text) // max(1, pieces)))
    return [text[place : place + length] for place in range(0, len(text), length)]
