"""One conversation of the language model: a decision in JSON, then words."""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from typing import Any

from jackfield.contract.call import ToolCall
from jackfield.transport.events import ToolCalls
from jackfield.transport.protocol import Opening, ToolResult

from jackfield_local.llama.briefing import answering, asked, briefing
from jackfield_local.llama.engine import Engine, Message
from jackfield_local.llama.forms import NONE, decision
from jackfield_local.llama.results import condensed
from jackfield_local.mind import Thought, Words
from jackfield_local.planner.reading.tool import tools_of

_log = logging.getLogger(__name__)

DECISION_TOKENS = 400
ANSWER_TOKENS = 300

TURNS = 6
"""How many exchanges the model is reminded of; every one costs time to read."""


class LlamaDialogue:
    """Keeps what was said in the form in which the model reads it."""

    def __init__(self, opening: Opening, engine: Engine, clock: Callable[[], datetime], zone: str) -> None:
        self._engine = engine
        self._clock = clock
        self._zone = zone
        self._mode = opening.mode
        tools = tools_of(opening)
        self._decides = bool(tools)
        # Without tools it is asked for one thing alone, such as a summary, in the kernel's own words.
        alone: list[Message] = [{"role": "system", "content": opening.instructions}]
        self._prefix = briefing(tools) if tools else alone
        self._form = decision({tool: each["parameters"] for tool, each in opening.declarations.items()})
        self._said: list[Message] = [
            {"role": each.speaker, "content": each.text} for each in opening.history[-2 * TURNS :]
        ]
        self._noted = ""

    async def warm_up(self) -> None:
        """Let the model read what every conversation begins with, before anybody waits for it."""
        async for _ in self._engine.write(self._prefix, most=1):
            break

    async def answer(self, text: str) -> AsyncIterator[Thought]:
        """The user said this."""
        if not self._decides:
            async for words in self._written({"role": "user", "content": text}):
                yield words
            return
        self._say("user", asked(text, self._clock(), self._zone)["content"])
        decided = await self._decided()
        if decided is None:
            async for words in self._written(answering(self._mode)):
                yield words
            return
        tool, arguments = decided
        self._say("assistant", json.dumps({"tool": tool, "arguments": arguments}))
        yield ToolCalls((ToolCall(tool, json.dumps(arguments), f"local-{secrets.token_hex(8)}"),))

    async def go_on(self, results: Sequence[ToolResult]) -> AsyncIterator[Thought]:
        """The calls of the last message are answered."""
        for result in results:
            shown = condensed(result.envelope)
            async for words in self._written(answering(self._mode, result.tool_id, shown), keep=True):
                yield words

    def learn(self, text: str) -> None:
        """Context that the user did not say."""
        self._noted = text
        self._say("user", f"(Note, not said by the user: {text[:1500]})")

    async def respond(self) -> AsyncIterator[Thought]:
        """Speak of what was last learned."""
        noted, self._noted = self._noted, ""
        async for words in self._written(answering(self._mode, "the note above" if noted else None)):
            yield words

    def interrupted(self, heard: str) -> None:
        """The last answer was cut short after these words."""
        if self._said and self._said[-1]["role"] == "assistant":
            self._said[-1] = {"role": "assistant", "content": f"{heard} [interrupted]"}

    async def _decided(self) -> tuple[str, dict[str, Any]] | None:
        written = ""
        messages = [*self._prefix, *self._said]
        async for piece in self._engine.write(messages, most=DECISION_TOKENS, schema=self._form):
            written += piece.text
            if piece.cut:
                _log.warning("a decision ran out of room, and is not acted on")
                return None
        try:
            made = json.loads(written)
        except ValueError:
            _log.warning("a decision could not be read, and is not acted on")
            return None
        return None if made["tool"] == NONE else (made["tool"], made["arguments"])

    async def _written(self, request: Message, *, keep: bool = False) -> AsyncIterator[Words]:
        """An answer in words, remembered as far as it came."""
        messages = [*self._prefix, *self._said, request]
        if keep:
            self._said.append(request)
        answer = ""
        try:
            async for piece in self._engine.write(messages, most=ANSWER_TOKENS):
                text = f"{piece.text} ..." if piece.cut else piece.text
                answer += text
                yield Words(text)
        finally:
            self._say("assistant", answer.strip() or "...")

    def _say(self, role: str, text: str) -> None:
        self._said.append({"role": role, "content": text})
        del self._said[: -3 * TURNS]
