"""The model's decision: what it is shown of a conversation, the schema of its answer, and how it is read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from jackfield_local.agent.engine import Message, Model, Prefix
from jackfield_local.agent.parameters import CODES, TEMPORAL, Kind, Parameter, Tool

SAY = "say"
CANNOT = "cannot"
HELP = "help"
_LONGEST = 160
"""Characters of one value; a text that the user handed over is taken from the user's own words."""

_LONGEST_SENTENCE = 140
_LONGEST_CARD = 600
_LONGEST_MESSAGE = 600
"""Characters of a message that the model is shown."""

_MOST_MEMBERS = 6
_MOST_TOKENS = 160


class Turn(NamedTuple):
    """What the user said, and what the model would have written in reply."""

    said: str
    written: str


@dataclass(frozen=True)
class Decision:
    """What the model decided; `tool` is set for a call, `text` for words."""

    tool: Tool | None = None
    args: Mapping[str, Any] | None = None
    text: str = ""
    refused: bool = False
    """Whether `text` names something that no tool can do."""
    helps: bool = False
    """Whether the user wants to know what the agent can do."""


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
        messages = [
            Message(role, content[:_LONGEST_MESSAGE])
            for turn in turns
            for role, content in zip(("user", "assistant"), turn, strict=True)
        ]
        messages.append(Message("user", context + text[:_LONGEST_MESSAGE]))
        written = await self._model.complete(
            self.prefix, messages, schema=self._schema, max_tokens=_MOST_TOKENS
        )
        return read_decision(written, self._tools)


def answer_schema(tools: Sequence[Tool]) -> dict[str, Any]:
    """The JSON Schema of an answer: a branch per tool, keyed by its id, and branches for words.

    Every argument is optional here, so that the model is never forced to invent one.
    """
    branches = [_branch(tool.id, _object(tool.parameters)) for tool in tools]
    words = {"type": "string", "minLength": 1, "maxLength": _LONGEST_SENTENCE}
    listed = {"type": "boolean"}
    return {"anyOf": [*branches, _branch(CANNOT, words), _branch(HELP, listed), _branch(SAY, words)]}


def read_decision(written: str, tools: Sequence[Tool]) -> Decision | None:
    """The decision in the model's answer; nothing when it is not one."""
    try:
        ((key, value),) = json.loads(written).items()
    except (ValueError, AttributeError):
        return None
    if key in (SAY, CANNOT):
        return Decision(text=str(value).strip(), refused=key == CANNOT)
    if key == HELP:
        return Decision(helps=True)
    tool = next((each for each in tools if each.id == key), None)
    return Decision(tool, value) if tool is not None and isinstance(value, dict) else None


def written_call(tool_id: str, args: Mapping[str, Any]) -> str:
    """A call as the model writes it."""
    return json.dumps({tool_id: dict(args)}, ensure_ascii=False)


def written_words(text: str) -> str:
    """Words as the model writes them."""
    return json.dumps({SAY: text}, ensure_ascii=False)


def waiting_line(tool_id: str, args: Mapping[str, Any]) -> str:
    """Tells the model which call waits for the user's approval."""
    return f"[Waiting for approval: {written_call(tool_id, args)[:_LONGEST_CARD]}]\n"


def question_line(question: str) -> str:
    """Tells the model what the user was asked for."""
    return f"[You asked: {question}]\n"


def is_written(parameter: Parameter) -> bool:
    """Whether the model writes this argument; records are passed on by our own code."""
    return parameter.kind is not Kind.RECORDS


def _branch(key: str, value: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {key: value}, "required": [key], "additionalProperties": False}


def _object(parameters: Sequence[Parameter]) -> dict[str, Any]:
    properties = {each.name: _value(each) for each in parameters if is_written(each)}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _value(parameter: Parameter) -> dict[str, Any]:
    one = _member(parameter)
    return {"type": "array", "items": one, "maxItems": _MOST_MEMBERS} if parameter.many else one


def _member(parameter: Parameter) -> dict[str, Any]:
    match parameter.kind:
        case Kind.CHOICE:
            return {"enum": parameter.choices}
        case Kind.SWITCH:
            return {"type": "boolean"}
        case Kind.NUMBER | Kind.DURATION:
            return {"type": "number"}
        case kind if kind in TEMPORAL or kind in CODES:
            return {"type": "string", "minLength": 1, "maxLength": 60}
    return {"type": "string", "minLength": 1, "maxLength": _LONGEST}
