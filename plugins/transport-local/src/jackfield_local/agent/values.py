"""Assigns the values in the user's words to parameters, by their types.

A hint is the value that the model wrote for a parameter. It selects among the values in the user's words, and
is never passed on by itself; without a model, the guide's examples select.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jsonschema_rs
from jackfield.datetimes import is_zone
from jackfield_language.datetimes import read_time
from jackfield_language.numbers import ORDINALS, amounts, duration
from jackfield_language.text import Span, blanked
from jackfield_language.words import content, stems, words

from jackfield_local.agent.mentions import Mention, is_used_in_named_country, mentions, zone_of_place
from jackfield_local.agent.message import UserMessage
from jackfield_local.agent.tools import CODES, TEMPORAL, Tool, ToolParameter, ValueType

_LONGEST_TOKEN, _MOST_WORDS = 64, 4
_ALIKE = 0.55  # Minimum similarity of sentence embeddings between a word and a choice with the same meaning.
_SHARED = (
    (ValueType.NUMBER, ValueType.DURATION),
    (ValueType.CURRENCY,),
    (ValueType.LANGUAGE,),
    (ValueType.TERRITORY,),
)
"""Types of which a message often has several values, so that each has to be assigned to its parameter."""


def assign_values(
    tool: Tool, hints: Mapping[str, Any], message: UserMessage, base: Mapping[str, Any]
) -> dict[str, Any]:
    """Assign numbers and codes to the parameters of a tool; `base` has the arguments of earlier turns."""
    found: dict[str, Any] = {}
    for types in _SHARED:
        alike = [each for each in tool.parameters if each.type in types and not each.many]
        # A value fills in what is missing; if nothing is missing, it replaces the previous value.
        if any(each.required and each.name not in base for each in alike):
            alike = [each for each in alike if each.name not in base or each.name in hints]
        found |= _assigned(tool, alike, hints, message) if alike else {}
    return found


def _assigned(
    tool: Tool, parameters: Sequence[ToolParameter], hints: Mapping[str, Any], message: UserMessage
) -> dict[str, Any]:
    """Assign values of one type: by a hint, by a name or example word next to them, or as the only one."""
    text = blanked(message.text, time_spans(tool, message))
    left = mentions(parameters[0].type, text)
    earlier = [mention for said in message.earlier for mention in mentions(parameters[0].type, said)]
    found: dict[str, Any] = {}
    for parameter in parameters:
        hint = hints.get(parameter.name)
        length = duration(message.text) if parameter.type is ValueType.DURATION else None
        meant = [each for each in left if _reading(each, hint) is not None]
        meant = meant or [each for each in left if _is_beside(tool, parameter, text, each)]
        if length is not None:
            found[parameter.name] = length.length.total_seconds() / parameter.unit_seconds
        elif meant and (len(meant) == 1 or _reading(meant[0], hint) is not None):
            # "Two for two": the same number can be said twice, with two meanings.
            left.remove(meant[0])
            found[parameter.name] = _reading(meant[0], hint) or _usual(tool, parameter, meant[0])
        elif any(_reading(each, hint) is not None for each in earlier) or (
            parameter.type is ValueType.CURRENCY and is_used_in_named_country(str(hint), text)
        ):
            found[parameter.name] = hint
    by_order = parameters[0].type in CODES  # Numbers have no usual order; currencies do.
    rest = [each for each in parameters if each.name not in found]
    rest = [each for each in rest if each.required or each.name in hints or (by_order and not hints)]
    if len(rest) == len(left) and (by_order or len(rest) == 1):
        found |= {each.name: _usual(tool, each, mention) for each, mention in zip(rest, left, strict=True)}
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in found.items()
        if value is not None
    }


def _reading(mention: Mention, hint: Any) -> Any:
    """Return the reading of a value that equals the model's hint, ignoring case; None if none does."""
    written = str(hint).lower()
    return next((each for each in mention.readings if each == hint or str(each).lower() == written), None)


def _usual(tool: Tool, parameter: ToolParameter, mention: Mention) -> Any:
    """Return the reading that the examples show: of a currency, or of a percentage as a fraction."""
    values = [value for example in tool.examples for value in example.args.values()]
    for example in tool.examples:
        value = example.args.get(parameter.name)
        for shown in mentions(parameter.type, example.says):
            if value in shown.readings[1:] and parameter.type is ValueType.NUMBER:
                return mention.readings[-1]
    return next((each for each in mention.readings if each in values), mention.readings[0])


def _is_beside(tool: Tool, parameter: ToolParameter, text: str, mention: Mention) -> bool:
    """Return whether a value is next to the parameter's name, or follows the same word as in the examples."""
    start = mention.span.start
    named = set(content(f"{parameter.spoken} {parameter.summary}"))
    beside = [*words(text[:start])[-1:], *words(text[start:])[1:2]]
    return bool(named & set(content(" ".join(beside)))) or word_before(text, start) in leads(tool, parameter)


def leads(tool: Tool, parameter: ToolParameter) -> set[str]:
    """Return the words that precede a parameter's value in the examples, as "from" precedes an origin."""
    found = set()
    for example in tool.examples:
        value = example.args.get(parameter.name)
        starts = [
            each.span.start
            for each in mentions(parameter.type, example.says)
            if _reading(each, value) is not None
        ]
        if parameter.type is ValueType.TEXT and isinstance(value, str) and value:
            starts = [example.says.lower().find(value.lower())]
        found |= {word_before(example.says, start) for start in starts if start >= 0}
    return found - {""}


def word_before(text: str, start: int) -> str:
    """Return the word before a place in a text, or "#" for any number; empty if there is none."""
    if any(each.span.start < start <= each.span.end + 1 for each in amounts(text)):
        return "#"
    return next(reversed(words(text[:start])), "")


def time_spans(tool: Tool, message: UserMessage) -> list[Span]:
    """Return where the words contain a time or duration that the tool accepts."""
    types = {each.type for each in tool.parameters}
    when = read_time(message.text, message.now) if types & TEMPORAL else None
    spans = [*when.spans] if when is not None else []
    length = duration(message.text) if types & (TEMPORAL | {ValueType.DURATION}) else None
    return [*spans, length.span] if length is not None else spans


def find_value(tool: Tool, parameter: ToolParameter, hint: Any, message: UserMessage) -> Any:
    """Find the value of one parameter; None if the words do not give it."""
    finder = _FINDERS.get(parameter.type)
    return None if finder is None else finder(tool, parameter, hint, message)


def find_all(parameter: ToolParameter, message: UserMessage) -> list[Any]:
    """Find possible members of a list."""
    if parameter.type is ValueType.CHOICE:
        return named_choices(parameter, message.text)
    found = [each.readings[0] for each in mentions(parameter.type, message.text)]
    if parameter.type is ValueType.IDENTIFIER and not found:
        return [*filter(None, [_pointed_at(message)])]
    return found


def named_choices(parameter: ToolParameter, text: str) -> list[Any]:
    """Return the choices whose words are all in a text, but none without letters or digits."""
    said = stems(text)
    named = [(each, stems(str(each).replace("_", " "))) for each in parameter.choices]
    return [each for each, name in named if name and name <= said]


def _choice(tool: Tool, parameter: ToolParameter, hint: Any, message: UserMessage) -> Any:
    # An optional value must be in this message; what was said before is not meant again.
    said = message.stems if parameter.required else stems(message.text)
    explained = [each for each in parameter.choices if _telling_words(parameter, each) & said]
    if hint is not None and hint in explained:
        return hint
    named = named_choices(parameter, message.text)
    if named or not (parameter.required or hint is not None):
        return named[0] if len(named) == 1 else None
    meant = explained if len(explained) == 1 else explained + _similar_choices(tool, parameter, message)
    if hint in meant or len(meant) == 1:
        return hint if hint in meant else meant[0]
    # Users never say some choices, such as the reason for a farewell: use the nearest example's.
    shown = [each for each in tool.examples if each.args.get(parameter.name) in parameter.choices]
    is_said = any(stems(str(each.args[parameter.name])) <= stems(each.says) for each in shown)
    if is_said or not shown or not parameter.required:
        return None
    near = message.embed([each.says for each in shown]) @ message.embed([message.text])[0]
    return shown[int(near.argmax())].args[parameter.name]


def _telling_words(parameter: ToolParameter, choice: Any) -> set[str]:
    """Return the stems of a choice's name, and of the clause in the description that is about it."""
    clauses = re.split(r"[,;:.]", parameter.description)
    is_about = re.compile(rf"\b{re.escape(str(choice))}\b", re.IGNORECASE).search
    return stems(str(choice).replace("_", " ")).union(content(next(filter(is_about, clauses), "")))


def _similar_choices(tool: Tool, parameter: ToolParameter, message: UserMessage) -> list[Any]:
    """Return the choices that mean the same as a word of the message."""
    said = [*_telling(tool, message.text)]
    if not said:
        return []
    choices = [str(each).replace("_", " ") for each in parameter.choices]
    near = (message.embed(choices) @ message.embed(said).T).max(axis=1)
    least = max(_ALIKE, near.max() - 0.05)
    return [each for each, similarity in zip(parameter.choices, near, strict=True) if similarity >= least]


def _telling(tool: Tool, text: str) -> Iterator[str]:
    """Yield the words that may mean a value: no numbers, and none of the tool's own words."""
    for word in words(text):
        found = content(word)
        if found and not word.isdigit() and found[0] not in tool.vocabulary:
            yield word


def _switch(tool: Tool, parameter: ToolParameter, hint: Any, message: UserMessage) -> bool | None:
    """Return True if the whole name was said, or if the model agrees and a word about it was said."""
    named = set(content(f"{parameter.spoken} {parameter.summary}")) - set(content(tool.description))
    said = stems(message.text)
    return True if stems(parameter.spoken) <= said or (hint and named & said) else None


def _address(_: Tool, parameter: ToolParameter, hint: Any, message: UserMessage) -> str | None:
    """Find an e-mail or web address that was said or shown, or the address of a person who was shown."""
    if hint is None:
        return next((str(each.readings[0]) for each in mentions(parameter.type, message.text)), None)
    wanted = _without_scheme(str(hint))
    for source in (message.everything, message.seen):
        for mention in mentions(parameter.type, source):
            if _without_scheme(mention.readings[0]) in wanted:
                return str(mention.readings[0])
    if parameter.type is ValueType.URL:
        return f"https://{wanted}" if wanted and wanted in message.everything.lower().split() else None
    name = set(words(wanted.partition("@")[0]))
    shown = [" ".join(map(str, each.values())) for each in message.records]
    persons = [mentions(ValueType.EMAIL, each) for each in shown if name and name <= set(words(each))]
    return next((str(found[0].readings[0]) for found in persons if len(found) == 1), None)


def _without_scheme(address: str) -> str:
    return address.strip().rpartition("://")[2].rstrip("/").lower()


def _identifier(_: Tool, parameter: ToolParameter, hint: Any, message: UserMessage) -> str | None:
    """Find an identifier that was said or shown; spaces and case are adapted to the pattern."""
    wanted = re.sub(r"[\s-]", "", str(hint or "")).lower()
    for source in (message.everything, message.seen) if wanted else ():
        for said in _joined_words(source):
            if said.replace("-", "").lower() == wanted:
                fitting = [each for each in (said, said.upper(), said.lower()) if _fits(parameter, each)]
                if fitting:
                    return fitting[0]
    said_forms = [form for said in _joined_words(message.text) for form in (said, said.upper())]
    patterned = (each for each in said_forms if parameter.pattern and _fits(parameter, each))
    shaped = (str(each.readings[0]) for each in mentions(ValueType.IDENTIFIER, message.text))
    found = next(patterned, None) or next(shaped, None)
    return found if found or wanted else _pointed_at(message)


def _joined_words(text: str) -> Iterator[str]:
    """Yield the words of a text, then two, three and four consecutive words joined into one."""
    heard = re.findall(r"[\w./:#-]*\w", text)
    for length in range(1, _MOST_WORDS + 1):
        for start in range(len(heard) - length + 1):
            yield "".join(heard[start : start + length])[:_LONGEST_TOKEN]


def _pointed_at(message: UserMessage) -> str | None:
    """Return the identifier of a shown record that the words select by its number or title."""
    shown = [each for each in message.records if isinstance(each.get("id"), str)]
    counted = [ORDINALS.get(each, 0) for each in re.findall(r"\bthe (\w+)", message.text.lower())]
    place = next(filter(None, counted), 0)
    if 0 < place <= len(shown):
        return str(shown[place - 1]["id"])
    titles = [(stems(str(each.get("title") or each.get("name") or "")), each["id"]) for each in shown]
    named = [found for title, found in titles if title and title <= message.stems]
    return str(named[0]) if len(named) == 1 else None


def _fits(parameter: ToolParameter, value: str) -> bool:
    """Return whether a value matches the pattern of a parameter, with a matcher that no pattern can stall."""
    schema = {"type": "string", "pattern": parameter.pattern} if parameter.pattern else {}
    try:
        return jsonschema_rs.is_valid(schema, value)
    except ValueError:
        return False


def _zone(tool: Tool, parameter: ToolParameter, hint: Any, message: UserMessage) -> str | None:
    """Return the zone of a named place, or the zone that the model knows for it, else the user's own."""
    if (named := zone_of_place(message.text, source=parameter.starts)) is not None:
        return named
    text = str(hint or "")
    is_named = stems(text.rpartition("/")[2].replace("_", " ")) <= message.stems
    known = is_zone(text) and (is_named or any(_telling(tool, message.text)))
    return text if known else message.zone or None


_FINDERS: dict[ValueType, Callable[[Tool, ToolParameter, Any, UserMessage], Any]] = {
    ValueType.CHOICE: _choice,
    ValueType.SWITCH: _switch,
    ValueType.EMAIL: _address,
    ValueType.URL: _address,
    ValueType.IDENTIFIER: _identifier,
    ValueType.ZONE: _zone,
}
