"""One answer, put together from the pieces it comes in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import orjson
from jackfield.transport.events import Usage


@dataclass(slots=True)
class CallInPieces:
    """A tool call as far as it has come."""

    name: str = ""
    arguments: str = ""
    id: str | None = None
    index: int | None = None
    extra: Any = None
    """What a compatible server wants to see again, such as the signature of a thought."""

    def complete(self) -> bool:
        """Whether the arguments could be all there are."""
        return is_json(self.arguments)


@dataclass(slots=True)
class Reply:
    """Takes chunks in; afterwards says what the message was."""

    text: str = ""
    calls: list[CallInPieces] = field(default_factory=list)
    finish: str | None = None
    usage: Usage | None = None

    def take(self, chunk: Any) -> str:
        """One chunk; the text that is new in it."""
        if usage := getattr(chunk, "usage", None):
            self.usage = Usage(usage.prompt_tokens or 0, usage.completion_tokens or 0)
        new = ""
        for choice in (getattr(chunk, "choices", None) or ())[:1]:
            self.finish = getattr(choice, "finish_reason", None) or self.finish
            delta = getattr(choice, "delta", None)
            if delta is None:
                continue
            for part in getattr(delta, "tool_calls", None) or ():
                self._add(part)
            new = getattr(delta, "content", None) or getattr(delta, "refusal", None) or ""
        self.text += new
        return new

    def _add(self, part: Any) -> None:
        function = getattr(part, "function", None)
        name = getattr(function, "name", None) or ""
        call = self._meant(getattr(part, "index", None), getattr(part, "id", None) or None, name)
        call.name = call.name or name
        call.id = call.id or getattr(part, "id", None) or None
        call.extra = getattr(part, "extra_content", None) or call.extra
        arguments = getattr(function, "arguments", None)
        if isinstance(arguments, str):
            call.arguments += arguments
        elif arguments:
            # Some servers send the arguments as an object, whole.
            call.arguments = orjson.dumps(arguments).decode()

    def _meant(self, index: Any, call_id: str | None, name: str) -> CallInPieces:
        """The call that a piece belongs to, or a new one.

        The index tells, where it is there and right. Servers leave it out, or send 0 for every call; then
        an id that is new begins a call, and so does a name after a call that has all its arguments.
        """
        known = self._known(index, call_id)
        if known is not None and not _begins_another(known, call_id, name):
            return known
        call = CallInPieces(index=index if isinstance(index, int) else None)
        self.calls.append(call)
        return call

    def _known(self, index: Any, call_id: str | None) -> CallInPieces | None:
        if call_id:
            for call in self.calls:
                if call.id == call_id:
                    return call
        if isinstance(index, int):
            return next((call for call in reversed(self.calls) if call.index == index), None)
        return self.calls[-1] if self.calls else None


def _begins_another(call: CallInPieces, call_id: str | None, name: str) -> bool:
    if call_id and call.id and call_id != call.id:
        return True
    same = bool(call_id) and call_id == call.id
    return bool(name and call.name) and not same and (name != call.name or call.complete())


def is_json(text: str) -> bool:
    """Whether a text is one JSON value."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True
