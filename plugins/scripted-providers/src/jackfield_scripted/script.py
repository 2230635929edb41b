"""Scripts: what a scripted model can do on any protocol, and scripts written as YAML."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Script = Callable[["ScriptedModel"], Awaitable[None]]
"""Plays the model in one connection; once it returns, the model stays silent."""

Step = Mapping[str, Any]
"""One step of a script written as data: a method of `ScriptedModel` and its arguments."""


class ScriptError(ValueError):
    """A script that cannot be played; the message names the step."""


class UnsupportedStepError(Exception):
    """A step of a script for which the protocol has no message."""


@dataclass(frozen=True, slots=True)
class UserInput:
    """What the user sent: text, or a number of milliseconds of speech."""

    text: str = ""
    audio_ms: int = 0


@dataclass(frozen=True, slots=True)
class Refusal:
    """A connection or request that the server rejects before a script runs."""

    status: int
    code: str = ""
    message: str = ""
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A tool call that the scripted model makes."""

    tool: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    """Values, or the literal text, which may be malformed."""

    id: str | None = None
    """Without one, the model makes a stable id."""


class ScriptedModel(ABC):
    """What a script can do and see; each connection has its own."""

    @property
    @abstractmethod
    def instructions(self) -> str:
        """The system instructions that the client sent."""

    @property
    @abstractmethod
    def tools(self) -> Mapping[str, Any]:
        """The tool declarations that the client sent, by their name on the wire."""

    @property
    @abstractmethod
    def received(self) -> list[Mapping[str, Any]]:
        """Every message from the client, as it arrived."""

    @abstractmethod
    async def hears(self) -> UserInput:
        """Wait until the user has sent something and a response is due."""

    @abstractmethod
    async def hears_speech(self, transcript: str, *, after_ms: int = 200) -> UserInput:
        """Wait for `after_ms` of audio, treat it as one utterance and transcribe it as given (voice)."""

    @abstractmethod
    async def says(self, text: str, *, pieces: int = 3) -> None:
        """Send a complete response; in voice with about 60 ms of audio per word."""

    @abstractmethod
    async def speaks(self, text: str, *, ms: int) -> None:
        """Start a response with `ms` of audio, sent faster than it plays, and leave it open (voice)."""

    @abstractmethod
    async def ends_speaking(self) -> None:
        """Complete the response that `speaks` started (voice)."""

    @abstractmethod
    async def is_interrupted(self) -> None:
        """Report that the user speaks over the model, and cut the response short (voice)."""

    @abstractmethod
    async def truncated(self) -> int:
        """Wait for the played milliseconds that the client reports; 0 if it deleted the item (voice)."""

    @abstractmethod
    async def calls(self, *calls: ScriptedCall, incomplete: bool = False) -> dict[str, Any]:
        """Call tools in one message; wait for all results and return the envelopes by call id.

        With `incomplete`, the message is cut short: none of its calls may run, and no results are awaited.
        """

    @abstractmethod
    async def cancels(self, *ids: str) -> None:
        """Cancel calls that may be running (Gemini Live)."""

    @abstractmethod
    async def results(self, *ids: str) -> dict[str, Any]:
        """Wait for the envelopes of calls that were made before."""

    @abstractmethod
    async def goes_away(self, seconds: float) -> None:
        """Announce that the connection will end soon."""

    @abstractmethod
    async def fails(self, code: str, message: str = "") -> None:
        """Report a provider error, such as `session_expired` or `server_error`."""

    @abstractmethod
    async def closes(self, code: int = 1000, reason: str = "") -> None:
        """Close the connection with a close code (WebSocket), or in the middle of the body (HTTP)."""


def split_text(text: str, pieces: int) -> list[str]:
    """Split a text into about that many pieces, none of them empty."""
    length = max(1, -(-len(text) // max(1, pieces)))
    return [text[start : start + length] for start in range(0, len(text), length)]


def script_from_yaml(text: str) -> Script:
    """Make a script from a YAML list of steps."""
    import yaml

    try:
        steps = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ScriptError(f"the script is not valid YAML: {error}") from None
    if not isinstance(steps, list):
        raise ScriptError("a script is a list of steps, such as `- says: Hello.`")
    return script_from_steps(steps)


def script_from_steps(steps: Sequence[Step]) -> Script:
    """Make a script from steps such as `{"hears": None}` and `{"calls": [{"kb_get": {...}}]}`.

    The key is a method of `ScriptedModel`; the value holds its arguments: none, one, a list, or a mapping.
    """
    parsed = [_parse_step(number, step) for number, step in enumerate(steps, 1)]

    async def play(model: ScriptedModel) -> None:
        for method, positional, named in parsed:
            await getattr(model, method)(*positional, **named)

    return play


def _parse_step(number: int, step: Any) -> tuple[str, Sequence[Any], Mapping[str, Any]]:
    """Return a method and its arguments; raise `ScriptError` before anything is played."""
    name = str(next(iter(step), "")) if isinstance(step, Mapping) and len(step) == 1 else ""
    method = None if name.startswith("_") else getattr(ScriptedModel, name, None)
    if not callable(method):
        raise ScriptError(f"step {number}: {step!r} is not one method of ScriptedModel with its arguments")
    given = step[name]
    if name == "calls":
        if not isinstance(given, list):
            raise ScriptError(f"step {number}: calls takes a list, such as `- calls: [{{kb_get: {{}}}}]`")
        return name, [_parse_call(number, each) for each in given], {}
    positional: Sequence[Any] = ()
    named: Mapping[str, Any] = {}
    if isinstance(given, Mapping):
        named = given
    elif given is not None:
        positional = given if isinstance(given, list) else [given]
    try:
        inspect.signature(method).bind(None, *positional, **named)
    except TypeError as error:
        raise ScriptError(f"step {number}: {name}: {error}") from None
    return name, positional, named


def _parse_call(number: int, given: Any) -> ScriptedCall:
    """Parse `{"kb_get": {...}}`, or `{"tool": "kb_get", "arguments": ..., "id": ...}`."""
    if isinstance(given, Mapping) and "tool" in given:
        return ScriptedCall(given["tool"], given.get("arguments", {}), given.get("id"))
    if not isinstance(given, Mapping) or len(given) != 1:
        raise ScriptError(f"step {number}: {given!r} is not a tool with its arguments")
    ((tool, arguments),) = given.items()
    return ScriptedCall(tool, arguments)
