"""Finds values with a recognisable form in the user's words: numbers, choices, addresses, identifiers.

A hint is what the model wrote for a parameter. It selects among the values in the user's words, and is
never passed on by itself; without a model, the examples of the guide select.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import jsonschema_rs

from jackfield_local.agent import codes
from jackfield_local.agent.message import UserMessage
from jackfield_local.agent.tools import TEMPORAL, Tool, ToolParameter, ValueType
from jackfield_local.language.datetimes import read_time
from jackfield_local.language.numbers import ORDINALS, Amount, amounts, bare_amount, duration, forms
from jackfield_local.language.text import Span, blanked, content, emails, ids, stems, urls, words
from jackfield_local.settings import is_zone

_LONGEST_TOKEN, _MOST_WORDS = 64, 4
_ALIKE = 0.55
"""Minimum similarity of sentence embeddings between a word and a choice with the same meaning."""


def find_numbers(
    tool: Tool, hints: Mapping[str, Any], message: UserMessage, known: Collection[str] = ()
) -> dict[str, Any]:
    """Find numbers and durations: hinted, next to their name, or the only ones left.

    Parameters that are `known` from earlier turns are not missing.
    """
    wanted = [
        each
        for each in tool.parameters
        if each.type in (ValueType.NUMBER, ValueType.DURATION) and not each.many
    ]
    text = blanked(message.text, time_spans(tool, message))
    left = amounts(text) if wanted else []
    before = [value for earlier in message.earlier for each in amounts(earlier) for value in forms(each)]
    found: dict[str, float] = {}
    for parameter in wanted:
        hint = hints.get(parameter.name)
        length = duration(message.text) if parameter.type is ValueType.DURATION else None
        others = [each for each in wanted if each is not parameter]
        hinted = [each for each in left if hint in forms(each)]
        # The 10 of "10 km" is for the parameter that mentions kilometres.
        hinted = [each for each in hinted if not any(_is_named(other, text, each) for other in others)]
        meant = hinted or [each for each in left if _is_named(parameter, text, each)]
        if length is not None:
            found[parameter.name] = length.length.total_seconds() / parameter.unit_seconds
        elif meant and (hint in forms(meant[0]) or len(meant) == 1):
            # "Two for two": the same number can be said twice, with two meanings.
            left.remove(meant[0])
            found[parameter.name] = hint if hint in forms(meant[0]) else _form(tool, parameter, meant[0])
        elif hint in before:
            found[parameter.name] = hint
    rest = [each for each in wanted if each.required and each.name not in found and each.name not in known]
    if not left and (bare := bare_amount(message.text)) is not None:
        left = [bare]  # "One" is a number only if nothing else is said.
    if len(rest) == len(left) == 1:
        found[rest[0].name] = _form(tool, rest[0], left[0])
    integral = {each.name for each in wanted if each.integral}
    return {
        name: int(value) if float(value).is_integer() else value
        for name, value in found.items()
        if name not in integral or float(value).is_integer()
    }


def _is_named(parameter: ToolParameter, text: str, amount: Amount) -> bool:
    """Whether a word of the parameter's name or description is next to a number."""
    beside = [*words(text[: amount.span.start])[-1:], *words(text[amount.span.start :])[1:2]]
    named = set(content(f"{parameter.spoken} {parameter.summary}"))
    return any(set(content(each)) & named for each in beside)


def _form(tool: Tool, parameter: ToolParameter, amount: Amount) -> float:
    """Return a number in the form of the examples: a percentage may be a fraction."""
    shown = [(example.says, example.args.get(parameter.name)) for example in tool.examples]
    as_fraction = any(
        value in forms(each)[1:] for says, value in shown for each in amounts(says) if each.percent
    )
    return forms(amount)[-1] if as_fraction else amount.value


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
    if parameter.type is ValueType.EMAIL:
        return [each.text for each in emails(message.text)]
    if parameter.type is ValueType.IDENTIFIER:
        return [each.text for each in ids(message.text)] or [*filter(None, [_pointed_at(message)])]
    return [each for each in parameter.choices if is_choice_in(each, stems(message.text))]


def is_choice_in(choice: Any, said: set[str]) -> bool:
    """Whether the stems contain all of a choice; one without letters or digits never matches."""
    named = stems(str(choice).replace("_", " "))
    return bool(named) and named <= said


def _choice(tool: Tool, parameter: ToolParameter, hint: Any, message: UserMessage) -> Any:
    if hint in parameter.choices and _means(tool, parameter, hint, message):
        return hint
    named = [each for each in parameter.choices if is_choice_in(each, stems(message.text))]
    if named or not (parameter.required or hint is not None):
        return named[0] if len(named) == 1 else None
    for is_meant in (_is_explained, _means):
        meant = [each for each in parameter.choices if is_meant(tool, parameter, each, message)]
        if len(meant) == 1:
            return meant[0]
    if not parameter.required:
        return None
    # Users never say some choices, such as the reason for a farewell: use the nearest example's.
    shown = [each for each in tool.examples if each.args.get(parameter.name) in parameter.choices]
    if not shown or any(stems(str(each.args[parameter.name])) <= stems(each.says) for each in shown):
        return None
    near = message.embed([each.says for each in shown]) @ message.embed([message.text])[0]
    return shown[int(near.argmax())].args[parameter.name]


def _is_explained(_: Tool, parameter: ToolParameter, value: Any, message: UserMessage) -> bool:
    """Whether the words contain one from the name of a choice, or from the clause that describes it."""
    named = stems(str(value).replace("_", " "))
    for clause in re.split(r"[,;:.]", parameter.description):
        if re.search(rf"\b{re.escape(str(value))}\b", clause, re.IGNORECASE):
            named |= set(content(clause))
            break
    return bool(named & message.stems)


def _means(tool: Tool, parameter: ToolParameter, value: Any, message: UserMessage) -> bool:
    """Whether the words name or explain a choice, or contain a word with the same meaning."""
    if _is_explained(tool, parameter, value, message):
        return True
    said = [*_telling(tool, message.text)]
    if not said:
        return False
    choices = [str(each).replace("_", " ") for each in parameter.choices]
    near = (message.embed(choices) @ message.embed(said).T).max(axis=1)
    place = parameter.choices.index(value)
    return bool(near[place] >= _ALIKE and near[place] >= near.max() - 0.05)


def _telling(tool: Tool, text: str) -> Iterator[str]:
    """Yield the words that may mean a value: no numbers, and none of the tool's own words."""
    for word in words(text):
        found = content(word)
        if found and not word.isdigit() and found[0] not in tool.vocabulary:
            yield word


def _switch(tool: Tool, parameter: ToolParameter, hint: Any, message: UserMessage) -> bool | None:
    """True if the words contain its whole name, or a word of its description and the model agrees."""
    named = set(content(f"{parameter.spoken} {parameter.summary}")) - set(content(tool.description))
    said = stems(message.text)
    return True if stems(parameter.spoken) <= said or (hint and named & said) else None


def _email(_: Tool, __: ToolParameter, hint: Any, message: UserMessage) -> str | None:
    if hint is None:
        return next((each.text for each in emails(message.text)), None)
    wanted = str(hint).strip().lower()
    known = [each.text for each in (*emails(message.everything), *emails(message.seen))]
    # Or the address of a person whose record was shown with only one.
    name = set(words(wanted.partition("@")[0]))
    shown = [" ".join(map(str, each.values())) for each in message.records]
    persons = [emails(each) for each in shown if name and name <= set(words(each))]
    matching = [each for each in known if each.lower() in wanted]
    matching += [found[0].text for found in persons if len(found) == 1]
    return next(iter(matching), None)


def _url(_: Tool, __: ToolParameter, hint: Any, message: UserMessage) -> str | None:
    if hint is None:
        return next((each.text for each in urls(message.text)), None)
    bare = _without_scheme(str(hint))
    for each in (*urls(message.text), *urls(message.everything), *urls(message.seen)):
        if _without_scheme(each.text) in bare:
            return each.text
    return f"https://{bare}" if bare and " " not in bare and bare in message.everything.lower() else None


def _without_scheme(url: str) -> str:
    return url.rpartition("://")[2].rstrip("/").lower()


def _identifier(_: Tool, parameter: ToolParameter, hint: Any, message: UserMessage) -> str | None:
    """Find an identifier that was said or shown; spaces and case are adapted to the pattern."""
    text = re.sub(r"[\s-]", "", str(hint or ""))[:_LONGEST_TOKEN]
    spaced = r"[\s-]?".join(map(re.escape, text))
    for source in (message.everything, message.seen):
        match = re.search(rf"(?<!\w){spaced}(?!\w)", source, re.IGNORECASE) if text else None
        written = (match.group(), text, text.upper(), text.lower()) if match else ()
        if fitting := [each for each in written if _fits(parameter, each)]:
            return fitting[0]
    said = _patterned(parameter, message.text) or next((each.text for each in ids(message.text)), None)
    return said if said or hint is not None else _pointed_at(message)


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


def _patterned(parameter: ToolParameter, text: str) -> str | None:
    """Return the text that fits the pattern of an identifier: a word, or a few separate words."""
    if not parameter.pattern:
        return None
    heard = re.findall(r"[\w./:#-]*\w", text)
    for length in range(1, _MOST_WORDS + 1):
        for start in range(len(heard) - length + 1):
            token = "".join(heard[start : start + length])[:_LONGEST_TOKEN]
            for form in (token, token.upper()):
                if _fits(parameter, form):
                    return form
    return None


def _fits(parameter: ToolParameter, value: str) -> bool:
    """Whether a value matches the pattern of a parameter, with a matcher that no pattern can stall."""
    schema = {"type": "string", "pattern": parameter.pattern} if parameter.pattern else {}
    try:
        return jsonschema_rs.is_valid(schema, value)
    except ValueError:
        return False


def _zone(tool: Tool, _: ToolParameter, hint: Any, message: UserMessage) -> str | None:
    """Return the zone of a named place, or the one that the model knows for it; else the user's own."""
    if (named := codes.zone_of_place(message.text)) is not None:
        return named
    text = str(hint or "")
    known = is_zone(text) and (
        codes.is_zone_named(text, message.everything) or any(_telling(tool, message.text))
    )
    return text if known else message.zone or None


_FINDERS: dict[ValueType, Callable[[Tool, ToolParameter, Any, UserMessage], Any]] = {
    ValueType.CHOICE: _choice,
    ValueType.SWITCH: _switch,
    ValueType.EMAIL: _email,
    ValueType.URL: _url,
    ValueType.IDENTIFIER: _identifier,
    ValueType.ZONE: _zone,
}
