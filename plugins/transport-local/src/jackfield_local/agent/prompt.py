"""The language model's prompt, the schema of its answer, and the decision in that answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import Any, NamedTuple

from jackfield_language.datetimes import TimeExpression, read_time
from jackfield_language.numbers import amounts, duration, forms
from jackfield_language.words import content, stem, words

from jackfield_local.agent.llama import LlamaModel, Prefix, PromptMessage
from jackfield_local.agent.results import ask_for
from jackfield_local.agent.texts import is_handed_over, is_search
from jackfield_local.agent.tools import CODES, TEMPORAL, Tool, ToolParameter, ValueType, first_sentence

SAY = "say"
CANNOT = "cannot"
HELP = "help"
_LONGEST = 160  # Maximum length of one value; a longer text is taken from the user's own words.
_LONGEST_SENTENCE = 140
_LONGEST_CONTEXT = 600
_LONGEST_MESSAGE = 600  # Maximum characters of a message that the model sees.
_MOST_MEMBERS = 6
_MOST_TOKENS = 160


class Exchange(NamedTuple):
    """A message from the user, and the reply as the model would have written it."""

    said: str
    written: str


@dataclass(frozen=True)
class Decision:
    """The decision about a message; `tool` is set for a call, `text` for an answer in words."""

    tool: Tool | None = None
    args: Mapping[str, Any] | None = None  # The model's hints; None if the router decided.
    text: str = ""
    refused: bool = False  # Whether `text` names something that no tool can do.
    helps: bool = False  # Whether the user wants to know what the agent can do.

    def about(self, tool: Tool) -> Decision:
        """Return the decision of the same decider for another tool."""
        return self if self.tool is tool else Decision(tool, None if self.args is None else {})


class ModelDecider:
    """A model with the static prompt of a registry's tools."""

    def __init__(self, model: LlamaModel, prefix: Prefix, tools: Sequence[Tool]) -> None:
        self._model = model
        self.prefix = prefix
        self._tools = tools
        self._schema = answer_schema(tools)

    @property
    def ready(self) -> bool:
        """True if the model answers at once, without processing its prompt first."""
        return self._model.is_ready(self.prefix)

    @property
    def progress(self) -> float:
        """How much of the prompt has been processed, from 0 to 1."""
        return self._model.progress(self.prefix)

    async def decide(self, turns: Iterable[Exchange], context: str, text: str) -> Decision | None:
        """Return the model's decision about a message; None if its answer contains none."""
        shown = [[text[:_LONGEST_MESSAGE] for text in turn] for turn in turns]
        messages = [message for turn in shown for message in as_messages(*turn)]
        messages.append(PromptMessage("user", context + text[:_LONGEST_MESSAGE]))
        written = await self._model.complete(
            self.prefix, messages, schema=self._schema, max_tokens=_MOST_TOKENS
        )
        return read_decision(written, self._tools)


def answer_schema(tools: Sequence[Tool]) -> dict[str, Any]:
    """Return the JSON Schema of an answer: a branch per tool, keyed by its id, and branches for words.

    Every argument is optional here, so that the model is never forced to invent one.
    """
    branches = [_branch(tool.id, _object(tool.written)) for tool in tools]
    text = {"type": "string", "minLength": 1, "maxLength": _LONGEST_SENTENCE}
    flag = {"type": "boolean"}
    return {"anyOf": [*branches, _branch(CANNOT, text), _branch(HELP, flag), _branch(SAY, text)]}


def read_decision(written: str, tools: Sequence[Tool]) -> Decision | None:
    """Read the decision in the model's answer; None if it has none."""
    try:
        ((key, value),) = json.loads(written).items()
    except (ValueError, AttributeError):
        return None
    if key in (SAY, CANNOT):
        return Decision(args={}, text=str(value).strip(), refused=key == CANNOT)
    if key == HELP:
        return Decision(args={}, helps=True)
    tool = next((each for each in tools if each.id == key), None)
    return Decision(tool, value) if tool is not None and isinstance(value, dict) else None


def written_call(tool_id: str, args: Mapping[str, Any]) -> str:
    """Return a call as the model writes it."""
    return json.dumps({tool_id: dict(args)}, ensure_ascii=False)


def written_words(text: str) -> str:
    """Return words as the model writes them."""
    return json.dumps({SAY: text}, ensure_ascii=False)


def context_line(label: str, text: str, longest: int = _LONGEST_CONTEXT) -> str:
    """Return a line with context for the model that the user does not say, such as the open question."""
    return f"[{label}: {' '.join(text.split())[:longest]}]\n"


def _branch(key: str, value: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {key: value}, "required": [key], "additionalProperties": False}


def _object(parameters: Sequence[ToolParameter]) -> dict[str, Any]:
    properties = {each.name: _value(each) for each in parameters}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _value(parameter: ToolParameter) -> dict[str, Any]:
    is_short = parameter.type in TEMPORAL or parameter.type in CODES
    one: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 60 if is_short else _LONGEST}
    if parameter.type is ValueType.CHOICE:
        one = {"enum": parameter.choices}
    elif parameter.type is ValueType.SWITCH:
        one = {"type": "boolean"}
    elif parameter.type in (ValueType.NUMBER, ValueType.DURATION):
        one = {"type": "number"}
    return {"type": "array", "items": one, "maxItems": _MOST_MEMBERS} if parameter.many else one


# The static part of the prompt: byte-identical for every session of a registry.

BUDGET = 5_500  # Tokens of the static part, which leaves room for the conversation.
_CHARACTERS = 3.4  # Characters per token of such text; a low estimate.
_LONGEST_EXAMPLE = 220
_LONGEST_PURPOSE = 240
_LONGEST_SUMMARY = 110
_INCOMPLETE = 3  # How many tools get an example of a request without values: those that need the most values.
_RULES = """\
You choose the tool for the user's last message and write one JSON object.
A call: {"tool_id": {arguments}}. Give only arguments that the user said, or that "it" or "she" refer to.
Copy dates, times and names as said. Leave out everything else; never invent a value.
Call the tool even if something it needs was not said yet.
If the user wants something done that no tool does: {"cannot": "what no tool does"}.
If the user asks what you can do: {"help": true}.
For greetings, thanks, small talk: {"say": "one short sentence"}.

Tools:
"""
_TALK = (
    ("hi there, how are you?", SAY, "Hello! What can I do for you?"),
    ("order a pizza with extra cheese", CANNOT, "order food"),
    ("cancel my appointment on Tuesday", CANNOT, "cancel appointments"),
    ("what can you do?", HELP, True),
    ("play some jazz", CANNOT, "play music"),
    ("never mind, forget it", SAY, "All right."),
    ("take the meeting with Sam off my list", CANNOT, "remove meetings"),
    ("thanks, that helped", SAY, "You're welcome."),
)
_SOME_DAY = datetime(2026, 3, 2, 9, 30)  # noqa: DTZ001 - only the position of a date matters, not its value


def static_prefix(tools: Sequence[Tool]) -> tuple[Prefix, tuple[Tool, ...]]:
    """Return the prefix for these tools and the tools in it, as many as the budget allows."""
    tools = [each for each in tools if takes_said_values(each)]
    for examples, summaries in ((2, True), (1, True), (1, False), (0, False)):
        prefix = _prefix(tools, examples, summaries=summaries)
        if _tokens(prefix) <= BUDGET:
            return prefix, tuple(tools)
    kept = list(tools)
    while kept and _tokens(prefix := _prefix(kept, 0, summaries=False)) > BUDGET:
        kept.pop()
    return prefix, tuple(kept)


def _tokens(prefix: Prefix) -> float:
    return sum(len(each.content) / _CHARACTERS + 5 for each in prefix)


def _prefix(tools: Sequence[Tool], examples: int, *, summaries: bool) -> Prefix:
    listed = "\n".join(_line(tool, summaries=summaries) for tool in tools)
    return (PromptMessage("system", _RULES + listed), *_pairs(tools, examples))


def _line(tool: Tool, *, summaries: bool) -> str:
    shown = "; ".join(_described(each, summaries=summaries) for each in tool.written)
    purpose = tool.description if len(tool.description) <= _LONGEST_PURPOSE else f"{tool.purpose}."
    return f"- {tool.id}: {purpose} ({shown})" if shown else f"- {tool.id}: {purpose}"


def _described(parameter: ToolParameter, *, summaries: bool) -> str:
    what = "|".join(map(str, parameter.choices)) or parameter.type.value
    shown = f"{parameter.name}{'' if parameter.required else '?'}: {what}{'[]' if parameter.many else ''}"
    told = parameter.summary
    if not parameter.required and parameter.type is not ValueType.CHOICE:
        told = re.split(r"[;:,(]", told, maxsplit=1)[0].strip()
    return f"{shown}, {told[:_LONGEST_SUMMARY]}" if summaries and told else shown


def _pairs(tools: Sequence[Tool], most: int) -> Iterator[PromptMessage]:
    """Yield examples in rounds, one per tool, so that the budget treats all tools alike."""
    shown = [
        [
            Exchange(each.says, written_call(tool.id, as_said(tool, each.says, each.args)))
            for each in tool.examples
            if len(each.says) <= _LONGEST_EXAMPLE
        ][:most]
        for tool in tools
    ]
    talk = [
        Exchange(said, json.dumps({branch: text}))
        for said, branch, text in _TALK
        if not (branch == CANNOT and _does(tools, str(text)))
    ]
    rounds = zip_longest(*shown, talk[: len(talk) // 2], talk[len(talk) // 2 :])
    pairs = [each for row in rounds for each in row if each is not None]
    for pair in [*pairs, *(_continued(tools) if most else ())]:
        yield from as_messages(*pair)


def as_messages(said: str, written: str) -> tuple[PromptMessage, PromptMessage]:
    """Return an exchange as two messages of the prompt."""
    return PromptMessage("user", said), PromptMessage("assistant", written)


def _continued(tools: Sequence[Tool]) -> Iterator[Exchange]:
    """Yield examples of requests without values, of changing a card, and of answering a question."""
    for tool in sorted(tools, key=lambda each: -len(each.required))[:_INCOMPLETE]:
        deed = re.split("[,;:]", tool.purpose)[0]
        yield Exchange(f"I need to {deed[:1].lower()}{deed[1:]}", written_call(tool.id, {}))
    if (search := next(filter(is_search, tools), None)) is not None:
        about = {search.required[0].name: "number of Ann Lee"}
        answer = context_line("You answered", "Ann Lee leads the project.")
        yield Exchange(f"{answer}what is her number?", written_call(search.id, about))
    timed = _first_required(tools, ValueType.DATE_TIME, ValueType.TIME)
    if timed is not None:
        tool, parameter = timed
        card = context_line("Waiting for approval", written_call(tool.id, tool.examples[0].args))
        later = {parameter.name: "half an hour later"}
        yield Exchange(f"{card}make it half an hour later", written_call(tool.id, later))
    named = _first_required([each for each in tools if len(each.required) > 1], ValueType.TEXT)
    if named is not None:
        tool, parameter = named
        value = tool.examples[-1].args.get(parameter.name)
        if isinstance(value, str):
            asked = context_line("You asked", ask_for(parameter))
            yield Exchange(f"{asked}{value}", written_call(tool.id, {parameter.name: value}))


def _first_required(tools: Iterable[Tool], *types: ValueType) -> tuple[Tool, ToolParameter] | None:
    """Return the first required parameter of one of these types, in a tool that has examples."""
    found = ((tool, each) for tool in tools if tool.examples for each in tool.required if each.type in types)
    return next(found, None)


def takes_said_values(tool: Tool) -> bool:
    """Return whether users say all numbers that a tool requires; in some tools' examples, they do not."""
    for parameter in tool.required:
        name = parameter.name
        if parameter.type in (ValueType.NUMBER, ValueType.DURATION):
            shown = [each for each in tool.examples if name in each.args]
            said = sum(_is_said(parameter, each.args[name], each.says) for each in shown)
            if said * 2 < len(shown):
                return False
    return True


def _does(tools: Sequence[Tool], deed: str) -> bool:
    """Return whether a tool has the verb of an action, so that an example that refuses it would be wrong."""
    verb = stem(deed.split(maxsplit=1)[0])
    return any(verb in map(stem, words(f"{tool.id.replace('_', ' ')} {tool.description}")) for tool in tools)


def as_said(tool: Tool, says: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of an example as the model should write them: times as said, nothing unsaid."""
    when = read_time(says, _SOME_DAY)
    found: dict[str, Any] = {}
    for parameter in tool.written:
        value = args.get(parameter.name)
        if value is None or (parameter.type is ValueType.TEXT and is_handed_over(tool, parameter)):
            continue
        if parameter.type in TEMPORAL:
            phrase = _phrase(parameter.type, says, when)
            # The end of a time span is computed from the words that give its beginning.
            if phrase and not (parameter.ends and phrase in found.values()):
                found[parameter.name] = phrase
        elif parameter.required or _is_said(parameter, value, says):
            found[parameter.name] = first_sentence(value) if isinstance(value, str) else value
    return found


def _phrase(value_type: ValueType, says: str, when: TimeExpression | None) -> str:
    """Return the words for a time, or only for its day or its clock time."""
    spans = [*when.spans] if when is not None else []
    clock = when.clock_span if when is not None else None
    if value_type is ValueType.TIME:
        spans = [clock] if clock is not None else []
    elif value_type is ValueType.DATE:
        spans = [each for each in spans if each != clock] or spans
    start, end = (min(each.start for each in spans), max(each.end for each in spans)) if spans else (0, 0)
    return says[start:end].strip(" ,.")


def _is_said(parameter: ToolParameter, value: Any, says: str) -> bool:
    """Return whether the words of an example give a value."""
    match parameter.type:
        case ValueType.NUMBER | ValueType.DURATION:
            return duration(says) is not None or any(value in forms(each) for each in amounts(says))
        case ValueType.CHOICE if not parameter.many:
            return bool(value != parameter.schema.get("default"))
        case ValueType.SWITCH:
            return bool(value)
        case ValueType.ZONE:
            return str(value).rpartition("/")[2].replace("_", " ").lower() in says.lower()
    members = value if isinstance(value, list) else [value]
    said = set(content(says))
    return all(each and said.issuperset(content(str(each))) for each in members)
