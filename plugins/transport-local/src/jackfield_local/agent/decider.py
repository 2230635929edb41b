"""The model's part of a conversation: it sees the last turns and decides about the next one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jackfield_local.agent.answers import title_of
from jackfield_local.agent.decision import Decision, Turn, answer_schema, read_decision
from jackfield_local.agent.engine import Message, Model, Prefix
from jackfield_local.agent.parameters import Tool
from jackfield_local.agent.prompt import question_line, waiting_line

_MOST_TOKENS = 160
_LONGEST = 600
"""Characters of a message that the model is shown."""

_SHOWN_RECORDS = 5


class ModelDecider:
    """A model with the static prompt of a registry's tools."""

    def __init__(self, model: Model, prefix: Prefix, tools: Sequence[Tool]) -> None:
        self._model = model
        self.prefix = prefix
        self._tools = tools
        self._schema = answer_schema(tools)

    @property
    def ready(self) -> bool:
        """Whether it answers at once, without processing its prompt first."""
        return self._model.is_ready(self.prefix)

    @property
    def progress(self) -> float:
        """How much of the prompt has been processed, from 0 to 1."""
        return self._model.progress(self.prefix)

    async def decide(self, turns: Iterable[Turn], context: str, text: str) -> Decision | None:
        """The model's decision about what the user said; nothing where it wrote none."""
        messages = []
        for turn in turns:
            messages += [Message("user", turn.said[:_LONGEST]), Message("assistant", turn.written[:_LONGEST])]
        messages.append(Message("user", context + text[:_LONGEST]))
        written = await self._model.complete(
            self.prefix, messages, schema=self._schema, max_tokens=_MOST_TOKENS
        )
        return read_decision(written, self._tools)


def context_lines(
    question: str, card: tuple[str, Mapping[str, Any]] | None, records: Sequence[Mapping[str, Any]]
) -> str:
    """What the model has to know besides the words: an open question, an open card, the last results."""
    lines = [question_line(question)] if question else []
    if card is not None:
        lines.append(waiting_line(*card))
    shown = [
        f"{place}. {title_of(each)[:60]} ({each['id']})"
        for place, each in enumerate(records[:_SHOWN_RECORDS], 1)
        if isinstance(each.get("id"), str)
    ]
    return "".join([*lines, f"[Results: {'; '.join(shown)}]\n"] if shown else lines)
