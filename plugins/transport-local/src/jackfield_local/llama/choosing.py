"""The model's choice of a tool, and the planner's weighing with that choice at its head."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import aclosing

from jackfield.transport.protocol import TransportError

from jackfield_local.llama.briefing import NONE
from jackfield_local.llama.engine import Brief, Message, Writer
from jackfield_local.planner.choosing.chooser import CLEAR, Weighed, Weighing
from jackfield_local.planner.choosing.small_talk import Talk
from jackfield_local.planner.heard import Heard
from jackfield_local.planner.reading.tool import Tool
from jackfield_local.planner.remembered import Remembered

MOST_TOKENS = 48
"""A name of 64 characters, and the JSON around it."""

WORD = 0.45
"""What the model's word for a tool counts in the planner's scale: more than likeness, less than an id or a
result that was named, which leave no doubt and which so small a model overlooks."""

AGAINST = 0.2
"""What its word against all tools counts: less, as it also says so of what it has never heard of."""


async def choose(model: Writer, brief: Brief, asked: Sequence[Message], tools: Sequence[Tool]) -> str | None:
    """The tool that the model chooses, or none; `TransportError` when it cannot."""
    schema = {
        "type": "object",
        "properties": {"tool": {"enum": [*(tool.id for tool in tools), NONE]}},
        "required": ["tool"],
        "additionalProperties": False,
    }
    written = ""
    async with aclosing(model.write(brief, asked, most=MOST_TOKENS, schema=schema)) as pieces:
        async for piece in pieces:
            written += piece.text
    try:
        chosen = json.loads(written)["tool"]
    except (ValueError, LookupError, TypeError):
        raise TransportError("server_error", f"the local model wrote no choice: {written[:80]!r}") from None
    return None if chosen == NONE else str(chosen)


class Led:
    """The planner's weighing, in which the model has a say."""

    def __init__(self, chosen: str | None, planner: Weighing) -> None:
        self._chosen = chosen
        self._planner = planner

    def weigh(self, heard: Heard, remembered: Remembered) -> list[Weighed]:
        """The tools, the likeliest first, with the model's word for one of them or against all."""
        weighed = self._planner.weigh(heard, remembered)
        if self._chosen is None:
            return [each._replace(score=each.score - AGAINST) for each in weighed]
        led = [self._meant(each) if each.tool.id == self._chosen else each for each in weighed]
        return sorted(led, key=lambda each: (-each.score, each.tool.id != self._chosen))

    @staticmethod
    def _meant(each: Weighed) -> Weighed:
        return each._replace(score=max(each.score + WORD, CLEAR))

    def small_talk(self, heard: Heard) -> tuple[Talk, float]:
        """As the planner has it."""
        return self._planner.small_talk(heard)

    def examples_alike(self, tool: Tool, heard: Heard) -> list[float]:
        """As the planner has it."""
        return self._planner.examples_alike(tool, heard)
