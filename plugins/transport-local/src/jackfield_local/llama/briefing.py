"""What the model is told: short, the same for every session with these tools, so that it is read once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from jackfield.contract.context import Mode

from jackfield_local.llama.engine import Message
from jackfield_local.llama.forms import NONE
from jackfield_local.planner.reading.tool import Parameter, Tool

EXAMPLES = 2
"""How many examples of each guide are shown."""

_TASK = f"""\
You are a helpful assistant with tools. For every message of the user, first decide: write JSON with the one tool that serves it \
and its arguments, or {{"tool": "{NONE}"}} for greetings, thanks, small talk, or when something that the tool needs was not said. \
Take arguments from what the user said; invent nothing. Times are ISO 8601 with the offset of the user's zone.

Tools:
"""

_ANSWERING = {
    "text": "Now answer the user in one to four sentences of Markdown.",
    "voice": "Now answer the user aloud: one or two short sentences, no Markdown, no addresses.",
}
_FROM_RESULT = "Say only what stands in the result, and name the titles it comes from; if it does not hold the answer, say so."
_WITHOUT = "No tool was used. Claim nothing that you cannot know; if something is missing to use a tool, ask for it."


def briefing(tools: Sequence[Tool]) -> list[Message]:
    """The messages every conversation begins with."""
    told = _TASK + "\n".join(_described(tool) for tool in tools)
    shown = [example for tool in tools for example in _shown(tool)]
    thanks = [_user("Thanks, that was all."), _assistant(json.dumps({"tool": NONE}))]
    return [{"role": "system", "content": told}, *shown, *thanks]


def asked(text: str, now: datetime, zone: str) -> Message:
    """What the user said, with the time at which it was said."""
    return _user(f"{text}\n(It is {now:%A, %Y-%m-%dT%H:%M%z}, {zone or now.tzname()}.)")


def answering(mode: Mode, tool_id: str | None = None, result: str = "") -> Message:
    """The request to answer in words, after a tool or without one."""
    if tool_id is None:
        return _user(f"{_WITHOUT} {_ANSWERING[mode]}")
    return _user(f"Result of {tool_id}: {result}\n{_FROM_RESULT} {_ANSWERING[mode]}")


def _described(tool: Tool) -> str:
    return f"- {tool.id}({', '.join(_arguments(tool.parameters))}): {tool.purpose}."


def _arguments(parameters: Sequence[Parameter]) -> Iterator[str]:
    for each in parameters:
        choices: Any = each.schema.get("enum")
        kind = "|".join(map(str, choices)) if choices else str(each.schema.get("format", ""))
        yield f"{each.name}{'' if each.required else '?'}{f': {kind}' if kind else ''}"


def _shown(tool: Tool) -> Iterator[Message]:
    for example in tool.guide.examples[:EXAMPLES]:
        yield _user(example.says)
        yield _assistant(json.dumps({"tool": tool.id, "arguments": example.args}))


def _user(text: str) -> Message:
    return {"role": "user", "content": text}


def _assistant(text: str) -> Message:
    return {"role": "assistant", "content": text}
