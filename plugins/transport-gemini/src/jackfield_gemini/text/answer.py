"""One answer of the model, put together from the pieces it is streamed in."""

from __future__ import annotations

from collections.abc import Iterator

import orjson
from google.genai.types import (
    Content,
    FunctionCall,
    GenerateContentResponse,
    Part,
)
from jackfield.contract.call import ToolCall
from jackfield.transport.events import Event, TextDelta, Usage
from jackfield_schemas.names import ToolNames

_WORDS = {"text", "thought"}


class StreamedAnswer:
    """What has come of an answer so far, and how it ended."""

    def __init__(self) -> None:
        self.blocked = ""
        """Why the question itself was refused."""
        self.finish = ""
        """Why the answer ended; empty while it has not."""
        self.calls: list[FunctionCall] = []
        self._parts: list[Part] = []
        self._usage: Usage | None = None

    def add(self, chunk: GenerateContentResponse) -> Iterator[Event]:
        """Take the next piece in; what of it is for the user comes out."""
        if chunk.prompt_feedback and chunk.prompt_feedback.block_reason:
            self.blocked = str(chunk.prompt_feedback.block_reason.value)
        if used := chunk.usage_metadata:
            taken = (used.prompt_token_count or 0) + (used.tool_use_prompt_token_count or 0)
            given = (used.candidates_token_count or 0) + (used.thoughts_token_count or 0)
            self._usage = Usage(taken, given)
        candidate = chunk.candidates[0] if chunk.candidates else None
        if candidate is None:
            return
        for part in (candidate.content and candidate.content.parts) or ():
            self._keep(part)
            if part.function_call:
                self.calls.append(part.function_call)
            elif part.text and not part.thought:
                yield TextDelta(part.text)
        if candidate.finish_reason:
            self.finish = str(candidate.finish_reason.value)

    def usage(self) -> Iterator[Event]:
        """The tokens; every piece counts them from the start, so the last count is the one."""
        if self._usage:
            yield self._usage

    def tool_calls(self, names: ToolNames) -> tuple[ToolCall, ...]:
        """The calls, in the kernel's words."""
        return tuple(
            ToolCall(names.tool_id(call.name or ""), orjson.dumps(call.args or {}), call.id or None)
            for call in self.calls
        )

    @property
    def said(self) -> bool:
        """Whether the user has read something of it."""
        return any(part.text and not part.thought for part in self._parts)

    def content(self, *, whole: bool) -> Content | None:
        """It, for the history: with its calls, or as what was said of an answer that was cut short.

        Parts go back as they came, because a model recognises its own thoughts by the signatures on them.
        """
        parts = self._parts if whole else [part for part in self._parts if not part.function_call]
        return Content(role="model", parts=parts) if parts else None

    def _keep(self, part: Part) -> None:
        last = self._parts[-1] if self._parts else None
        if last is not None and _joins(last) and _joins(part) and bool(last.thought) == bool(part.thought):
            # Words that carry no signature may be put together, or a long talk would be sent in crumbs.
            self._parts[-1] = last.model_copy(update={"text": (last.text or "") + (part.text or "")})
        else:
            self._parts.append(part)


def _joins(part: Part) -> bool:
    return part.text is not None and part.model_dump(exclude_none=True).keys() <= _WORDS
