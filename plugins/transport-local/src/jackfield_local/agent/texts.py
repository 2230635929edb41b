"""Finds text arguments: quoted, handed over, introduced as in the examples, or left over."""

from __future__ import annotations

import re
from collections.abc import Iterable
from statistics import fmean
from typing import Any

from jackfield_language.questions import asks_for_facts, command, refers_back
from jackfield_language.text import GAP, blanked, named_texts, quoted
from jackfield_language.words import content, spoken_name, stem, stems, words

from jackfield_local.agent.mentions import mentions
from jackfield_local.agent.message import UserMessage
from jackfield_local.agent.tools import Tool, ToolParameter, ValueType
from jackfield_local.agent.values import leads, time_spans, word_before

_MOSTLY, _NEARLY_ALL = 0.6, 0.8
"""Minimum share of a required and of an optional text that must be in the user's words."""

_COMPOSED_SHARE = 0.4
"""A text counts as composed if the requests in the examples contain less than this share of it."""

_POINTING = re.compile(r"\b(?:this|these|here|below|following)\b", re.IGNORECASE)
_RUN = re.compile(rf"[^{GAP}\s,;:.!?]+(?:[ '\u2019-]+[^{GAP}\s,;:.!?]+)*")


def check_text(tool: Tool, parameter: ToolParameter, hint: Any, message: UserMessage) -> str | None:
    """Return the text that the model wrote if the user said it, else a text handed over or quoted."""
    if is_handed_over(tool, parameter):
        # The reply to a question for the text is the text.
        return handed_over(message) or (message.full_text if hint == message.full_text else None)
    text = str(hint or "")
    # "A support ticket" names the tool, not a text.
    own = set(content(f"{spoken_name(tool.id)} {tool.description}"))
    if not (parameter.required and set(content(text)) <= own):
        least = _MOSTLY if parameter.required else _NEARLY_ALL
        composed = parameter.required and is_composed(tool, parameter)
        exact = message.verbatim(text)
        referred = text and refers_back(message.text) and message.is_shown(text)
        if exact or message.share(text) >= least or composed or referred:
            return exact or text
    found = quoted(message.text) or named_texts(_blanked(tool, message))
    return found[0] if parameter.required and len(found) == 1 else None


def guess_texts(tool: Tool, message: UserMessage, taken: Iterable[Any] = ()) -> dict[str, str]:
    """Guess texts without a model: what follows the same words as in the examples, or all that is left."""
    wanted = [
        each
        for each in tool.parameters
        if each.type is ValueType.TEXT and not each.many and not is_handed_over(tool, each)
    ]
    found: dict[str, str] = {}
    for parameter in wanted:
        used = {*map(str, taken), *found.values()}
        runs = [each for each in _left_over(tool, parameter, message) if each not in used]
        value = next((each for each in runs if introduced(tool, parameter, message, each)), "")
        needed = [each for each in wanted if each.required and each.name not in found]
        if value or needed == [parameter]:
            found[parameter.name] = value or max(runs, key=len, default="")
    return {name: value for name, value in found.items() if value}


def reply(tool: Tool, parameter: ToolParameter, message: UserMessage) -> str:
    """Return the text in a reply to a question for it; empty if the words are values of other types.

    A name is what is left of a phrase such as "it's for Kim"; a sentence is taken as it was said.
    """
    if is_handed_over(tool, parameter):
        return message.full_text
    typed = untyped(tool, message) != set(content(message.text))
    if is_brief(tool, parameter.name) or typed:
        return max(_left_over(tool, parameter, message), key=len, default="")
    return message.text


def unexplained(tool: Tool, message: UserMessage, values: Iterable[Any]) -> set[str]:
    """Return the stems of the words that are neither the tool's own words nor part of its values."""
    used = {each for value in values for each in stems(str(value))}
    return untyped(tool, message) - _known(tool) - used


def untyped(tool: Tool, message: UserMessage) -> set[str]:
    """Return the stems of the words that do not belong to a value with a recognisable form."""
    return set(content(_blanked(tool, message).replace(GAP, " ")))


def introduced(tool: Tool, parameter: ToolParameter, message: UserMessage, value: str) -> bool:
    """Return whether a value follows the same word as in the examples, as "from" precedes an origin."""
    place = message.text.lower().find(value.lower())
    return place >= 0 and word_before(message.text, place) in leads(tool, parameter)


def _left_over(tool: Tool, parameter: ToolParameter, message: UserMessage) -> list[str]:
    """Return the runs of words that are not a time, number, address or the tool's own words."""
    known, brief = _known(tool) | {command(message.text)}, is_brief(tool, parameter.name)
    runs: list[str] = []
    for match in _RUN.finditer(_blanked(tool, message)):
        parts: list[list[str]] = [[]]
        for word in match.group().split():
            # A name ends at a function word; a sentence contains such words.
            if brief and words(word) and not content(word):
                parts.append([])
            else:
                parts[-1].append(word)
        runs += [kept for part in parts if (kept := _trimmed(part, known))]
    return runs


def _trimmed(run: list[str], known: set[str]) -> str:
    kept = [place for place, word in enumerate(run) if content(word) and stem(words(word)[0]) not in known]
    return " ".join(run[kept[0] : kept[-1] + 1]) if kept else ""


def _blanked(tool: Tool, message: UserMessage) -> str:
    """Return the user's words with a gap for every value of another type."""
    types = {each.type for each in tool.parameters} | {ValueType.EMAIL, ValueType.URL, ValueType.IDENTIFIER}
    found = [each.span for kind in types - {ValueType.DURATION} for each in mentions(kind, message.text)]
    return blanked(message.text, [*time_spans(tool, message), *found])


def _known(tool: Tool) -> set[str]:
    """Return the tool's own words, and those around the values of its examples."""
    around = set(tool.vocabulary)
    for example in tool.examples:
        around |= stems(example.says) - stems(" ".join(map(str, example.args.values())))
    return around


def is_brief(tool: Tool, name: str) -> bool:
    """Return whether the text in the examples is a name of one or two words rather than a sentence."""
    shown = [example.args.get(name) for example in tool.examples]
    lengths = [len(each.split()) for each in shown if isinstance(each, str)]
    return bool(lengths) and max(lengths) <= 2


def is_handed_over(tool: Tool, parameter: ToolParameter) -> bool:
    """Return whether the examples point at the text, as in "this mail": it follows the request itself."""
    shown = [
        _POINTING.search(example.says) is not None
        for example in tool.examples
        if isinstance(value := example.args.get(parameter.name), str) and value not in example.says
    ]
    return bool(shown) and fmean(shown) > 0.5 and parameter.required


def handed_over(message: UserMessage) -> str | None:
    """Return the text that comes with a request: in quotes, from the next line on, or after a colon."""
    found = quoted(message.text)
    if len(found) == 1:
        return found[0]
    head, _, rest = message.full_text.partition("\n")
    if rest.strip():
        return rest.strip()
    after = head.partition(": ")[2].strip()
    return after if len(after.split()) > 1 else None


def is_composed(tool: Tool, parameter: ToolParameter) -> bool:
    """Return whether the examples show that the caller composes the text, such as a shell command."""
    shares = [len(said & value) / len(value) for said, value in _shown(tool, parameter) if value]
    return bool(shares) and fmean(shares) < _COMPOSED_SHARE


def is_search(tool: Tool) -> bool:
    """Return whether a tool needs only the text of a question, according to its examples."""
    if tool.writes or tool.confirmed or [each.type for each in tool.required] != [ValueType.TEXT]:
        return False
    asked = [asks_for_facts(each.says) for each in tool.examples]
    shown = [(said, value) for said, value in _shown(tool, tool.required[0]) if said]
    if not shown or fmean(asked) * 3 < 1:
        return False
    takes_request = fmean(len(said & value) / len(said) for said, value in shown) >= 0.5
    # A single word, such as a city, is a value and not a query.
    return takes_request and fmean(len(value) for _, value in shown) >= 2


def _shown(tool: Tool, parameter: ToolParameter) -> list[tuple[set[str], set[str]]]:
    """Return the stems of each example's request, and of this parameter's text in it."""
    return [
        (set(content(example.says)), set(content(value)))
        for example in tool.examples
        if isinstance(value := example.args.get(parameter.name), str)
    ]
