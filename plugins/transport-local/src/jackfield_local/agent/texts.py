"""Texts as arguments: what was quoted, handed over, introduced as in the examples, or is left over."""

from __future__ import annotations

import re
from collections.abc import Iterable
from statistics import fmean
from typing import Any

from jackfield_local.agent import codes
from jackfield_local.agent.parameters import CODES, Kind, Parameter, Tool
from jackfield_local.agent.speech import Speech
from jackfield_local.agent.values import time_spans
from jackfield_local.language.addresses import emails, ids, named_texts, quoted, urls
from jackfield_local.language.numbers import amounts
from jackfield_local.language.questions import asks_for_facts
from jackfield_local.language.spans import GAP, Span, blanked
from jackfield_local.language.words import content, spoken_name, stem, stems, words

_MOSTLY, _NEARLY_ALL = 0.6, 0.8
"""So much of a required and of an optional text has to be in the user's words; the rest may differ."""

_THOUGHT_UP = 0.4
"""A text is composed if its examples have less than this of it in the request."""

_POINTING = re.compile(r"\b(?:this|these|here|below|following)\b", re.IGNORECASE)
_RUN = re.compile(rf"[^{GAP}\s,;:.!?]+(?:[ '\u2019-]+[^{GAP}\s,;:.!?]+)*")


def check_text(tool: Tool, parameter: Parameter, hint: Any, speech: Speech) -> str | None:
    """The text that the model wrote, if the user said it; else what was handed over or quoted."""
    if is_handed_over(tool, parameter):
        # The reply to a question for the text is the text.
        return handed_over(speech) or (speech.whole if hint == speech.whole else None)
    text = str(hint or "")
    # "A support ticket" names the tool, and no text.
    own = set(content(f"{spoken_name(tool.id)} {tool.description}"))
    if not (parameter.required and set(content(text)) <= own):
        least = _MOSTLY if parameter.required else _NEARLY_ALL
        composed = parameter.required and is_composed(tool, parameter)
        if (exact := speech.verbatim(text)) or speech.share(text) >= least or composed:
            return exact or text
    found = [each.text for each in quoted(speech.said)] or named_texts(_blanked(tool, speech))
    return found[0] if parameter.required and len(found) == 1 else None


def guess_texts(tool: Tool, speech: Speech, taken: Iterable[Any] = ()) -> dict[str, str]:
    """Texts without a model: what the words before them in the examples introduce, or all that is left."""
    wanted = [
        each
        for each in tool.parameters
        if each.kind is Kind.TEXT and not each.many and not is_handed_over(tool, each)
    ]
    found: dict[str, str] = {}
    for parameter in wanted:
        used = {*map(str, taken), *found.values()}
        runs = [each for each in _left_over(tool, parameter, speech) if each not in used]
        value = next((each for each in runs if introduced(tool, parameter, speech, each)), "")
        needed = [each for each in wanted if each.required and each.name not in found]
        if value or needed == [parameter]:
            found[parameter.name] = value or max(runs, key=len, default="")
    return {name: value for name, value in found.items() if value}


def reply(tool: Tool, parameter: Parameter, speech: Speech) -> str:
    """The value in a reply to a question for a text; nothing where the words are values of other types.

    A name is what is left of a phrase such as "it's for Kim"; a sentence is taken as it was said.
    """
    if is_handed_over(tool, parameter):
        return speech.whole
    typed = untyped(tool, speech) != set(content(speech.said))
    if is_brief(tool, parameter.name) or typed:
        return max(_left_over(tool, parameter, speech), key=len, default="")
    return speech.said


def unexplained(tool: Tool, speech: Speech, values: Iterable[Any]) -> set[str]:
    """The stems of the words that neither the tool's own words nor its values account for."""
    used = {each for value in values for each in stems(str(value))}
    return untyped(tool, speech) - _known(tool) - used


def untyped(tool: Tool, speech: Speech) -> set[str]:
    """The stems of the words that belong to no value with a form of its own."""
    return set(content(_blanked(tool, speech).replace(GAP, " ")))


def introduced(tool: Tool, parameter: Parameter, speech: Speech, value: str) -> bool:
    """Whether a value stands after a word that leads to it in the examples, as "from" does to an origin."""
    shown = [(example.says, example.args.get(parameter.name)) for example in tool.guide.examples]
    leads = {_word_before(says, shown) for says, shown in shown if isinstance(shown, str)} - {""}
    return _word_before(speech.said, value) in leads


def _word_before(text: str, value: str) -> str:
    place = text.lower().find(value.lower()) if value else -1
    return ([*words(text[:place])] or [""])[-1] if place >= 0 else ""


def _left_over(tool: Tool, parameter: Parameter, speech: Speech) -> list[str]:
    """The runs of words that say nothing else: no time, no number, no address, no word of the tool's own."""
    known, brief = _known(tool), is_brief(tool, parameter.name)
    runs: list[str] = []
    for match in _RUN.finditer(_blanked(tool, speech)):
        parts: list[list[str]] = [[]]
        for word in match.group().split():
            # A name ends at a function word; a sentence has them inside.
            if brief and not content(word):
                parts.append([])
            else:
                parts[-1].append(word)
        runs += [kept for part in parts if (kept := _trimmed(part, known))]
    return runs


def _trimmed(run: list[str], known: set[str]) -> str:
    kept = [place for place, word in enumerate(run) if content(word) and stem(words(word)[0]) not in known]
    return " ".join(run[kept[0] : kept[-1] + 1]) if kept else ""


def _blanked(tool: Tool, speech: Speech) -> str:
    """The user's words with a gap for everything that has a type of its own."""
    said = speech.said
    spans = [*time_spans(tool, speech), *(each.span for each in (*emails(said), *urls(said), *ids(said)))]
    kinds = {each.kind for each in tool.parameters}
    if Kind.NUMBER in kinds:
        spans += [each.span for each in amounts(said)]
    for kind in kinds & CODES - {Kind.ZONE}:
        spans += [Span(each.start, each.end) for each in codes.mentions(kind, said)]
    return blanked(said, spans)


def _known(tool: Tool) -> set[str]:
    """The words with which the tool speaks of itself, and those around the values of its examples."""
    around = set(tool.vocabulary)
    for example in tool.guide.examples:
        around |= stems(example.says) - stems(" ".join(map(str, example.args.values())))
    return around


def is_brief(tool: Tool, name: str) -> bool:
    """Whether the guide's examples have names of a word or two for a text, rather than sentences."""
    shown = [example.args.get(name) for example in tool.guide.examples]
    lengths = [len(each.split()) for each in shown if isinstance(each, str)]
    return bool(lengths) and max(lengths) <= 2


def is_handed_over(tool: Tool, parameter: Parameter) -> bool:
    """Whether the guide's examples point at the text, as in "this mail": it follows the request itself."""
    shown = [
        _POINTING.search(example.says) is not None
        for example in tool.guide.examples
        if isinstance(value := example.args.get(parameter.name), str) and value not in example.says
    ]
    return bool(shown) and fmean(shown) > 0.5 and parameter.required


def handed_over(speech: Speech) -> str | None:
    """The text that a message brings with its request: in quotes, from the next line on, or after a colon."""
    found = quoted(speech.said)
    if len(found) == 1:
        return found[0].text
    head, _, rest = speech.whole.partition("\n")
    if rest.strip():
        return rest.strip()
    after = head.partition(": ")[2].strip()
    return after if len(after.split()) > 1 else None


def is_composed(tool: Tool, parameter: Parameter) -> bool:
    """Whether the guide's examples show that the caller thinks the text up, as it does for a command."""
    shares = [len(said & value) / len(value) for said, value in _shown(tool, parameter) if value]
    return bool(shares) and fmean(shares) < _THOUGHT_UP


def is_search(tool: Tool) -> bool:
    """Whether all that a tool needs is a text that takes what is asked, as its examples show by questions."""
    if tool.writes or tool.confirmed or [each.kind for each in tool.required] != [Kind.TEXT]:
        return False
    asked = [asks_for_facts(each.says) for each in tool.guide.examples]
    shown = [(said, value) for said, value in _shown(tool, tool.required[0]) if said]
    if not shown or fmean(asked) * 3 < 1:
        return False
    takes_request = fmean(len(said & value) / len(said) for said, value in shown) >= 0.5
    # A single word, such as a city, is a value and no query.
    return takes_request and fmean(len(value) for _, value in shown) >= 2


def _shown(tool: Tool, parameter: Parameter) -> list[tuple[set[str], set[str]]]:
    """The stems of each example's request, and of the text that this parameter gets from it."""
    return [
        (set(content(example.says)), set(content(value)))
        for example in tool.guide.examples
        if isinstance(value := example.args.get(parameter.name), str)
    ]
