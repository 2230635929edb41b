"""Texts as arguments: what was quoted, handed over, introduced as in the examples, or is left over."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from jackfield_local.agent import codes
from jackfield_local.agent.parameters import CODES, Kind, Parameter, Tool
from jackfield_local.agent.speech import Speech
from jackfield_local.agent.values import time_spans
from jackfield_local.language.addresses import emails, ids, named_texts, quoted, urls
from jackfield_local.language.numbers import amounts
from jackfield_local.language.questions import asks_for_facts
from jackfield_local.language.spans import GAP, Span, blanked
from jackfield_local.language.words import content, stem, stems, words

_MOSTLY = 0.6
"""So much of a required text has to be in the user's words; the model may bend the others to fit."""

_NEARLY_ALL = 0.8
"""So much of an optional text."""

_HALF = 0.5
_POINTING = re.compile(r"\b(?:this|these|here|below|following)\b", re.IGNORECASE)
_RUN = re.compile(rf"[^{GAP}\s,;:.!?]+(?:[ '\u2019-]+[^{GAP}\s,;:.!?]+)*")


def check_text(tool: Tool, parameter: Parameter, hint: Any, speech: Speech) -> str | None:
    """The text that the model wrote, if the user said it; else what was handed over or quoted."""
    if is_handed_over(tool, parameter):
        # The reply to a question for the text is the text.
        return handed_over(speech) or (speech.whole if hint == speech.whole else None)
    if hint is not None:
        text = str(hint)
        # "A support ticket" names the tool, and no text.
        own = set(content(f"{tool.id.replace('_', ' ')} {tool.description}"))
        names_tool = parameter.required and set(content(text)) <= own
        if not names_tool and (exact := speech.verbatim(text)) is not None:
            return exact
        share = 0.0 if names_tool else speech.share(text)
        if parameter.required and (share >= _MOSTLY or (not names_tool and is_composed(tool, parameter))):
            return text
        if share >= _NEARLY_ALL:
            return text
    found = [each.text for each in quoted(speech.said)] or named_texts(_blanked(tool, speech))
    return found[0] if parameter.required and len(found) == 1 else None


def is_mostly_said(text: str, speech: Speech) -> bool:
    """Whether a text consists of the user's words, or was handed over by the user."""
    return speech.share(text) >= _MOSTLY or text in speech.whole


def guess_texts(tool: Tool, speech: Speech, taken: Iterable[Any] = ()) -> dict[str, str]:
    """Texts without a model: what the words before them in the examples introduce, or all that is left."""
    wanted = [
        each
        for each in tool.parameters
        if each.kind is Kind.TEXT and not each.many and not is_handed_over(tool, each)
    ]
    needed = [each for each in wanted if each.required]
    found: dict[str, str] = {}
    for parameter in wanted:
        runs = [each for each in _left_over(tool, parameter, speech) if each not in found.values()]
        runs = [each for each in runs if each not in taken]
        leads = _led_by(tool, parameter)
        value = next((each for each in runs if word_before(speech.said, each) in leads), "")
        if not value and [each for each in needed if each.name not in found] == [parameter]:
            value = max(runs, key=len, default="")
        if value:
            found[parameter.name] = value
    return found


def reply(tool: Tool, parameter: Parameter, speech: Speech) -> str:
    """The value in a reply to a question for a text; nothing where the words are values of other types.

    A name is what is left of a phrase such as "it's for Kim"; a sentence is taken as it was said.
    """
    if is_handed_over(tool, parameter):
        return speech.whole
    runs = _left_over(tool, parameter, speech)
    typed = untyped(tool, speech) != set(content(speech.said))
    if is_brief(tool, parameter.name) or typed:
        return max(runs, key=len, default="")
    return speech.said


def unexplained(tool: Tool, speech: Speech, values: Iterable[Any]) -> set[str]:
    """The stems of the words that neither the tool's own words nor its values account for."""
    used = {each for value in values for each in stems(str(value))}
    return untyped(tool, speech) - _known(tool) - used


def untyped(tool: Tool, speech: Speech) -> set[str]:
    """The stems of the words that belong to no value with a form of its own."""
    return set(content(_blanked(tool, speech).replace(GAP, " ")))


def introduced(tool: Tool, parameter: Parameter, speech: Speech, value: str) -> bool:
    """Whether a value stands after a word that leads to it in the examples."""
    return word_before(speech.said, value) in _led_by(tool, parameter)


def _led_by(tool: Tool, parameter: Parameter) -> set[str]:
    """The words that stand before this value in the guide's examples, such as "from" before an origin."""
    shown = [(example.says, example.args.get(parameter.name)) for example in tool.guide.examples]
    return {word_before(says, value) for says, value in shown if isinstance(value, str)} - {""}


def word_before(text: str, value: str) -> str:
    """The word before a value in a text."""
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


def is_brief(tool: Tool, name: str) -> bool:
    """Whether the guide's examples have names of a word or two for a text, rather than sentences."""
    shown = [example.args.get(name) for example in tool.guide.examples]
    lengths = [len(each.split()) for each in shown if isinstance(each, str)]
    return bool(lengths) and max(lengths) <= 2


def _known(tool: Tool) -> set[str]:
    """The words with which the tool speaks of itself, and those around the values of its examples."""
    around = set(tool.vocabulary)
    for example in tool.guide.examples:
        around |= stems(example.says) - {
            each for value in example.args.values() for each in stems(str(value))
        }
    return around


def is_handed_over(tool: Tool, parameter: Parameter) -> bool:
    """Whether the guide's examples point at the text, as in "this mail": it follows the request itself."""
    shown = [
        example.says
        for example in tool.guide.examples
        if isinstance(value := example.args.get(parameter.name), str) and value not in example.says
    ]
    pointed = [says for says in shown if _POINTING.search(says)]
    return bool(shown) and len(pointed) * 2 > len(shown) and parameter.required


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
    shares = []
    for example in tool.guide.examples:
        value = example.args.get(parameter.name)
        if isinstance(value, str) and (found := content(value)):
            said = set(content(example.says))
            shares.append(sum(each in said for each in found) / len(found))
    return bool(shares) and sum(shares) / len(shares) < 0.4


def is_search(tool: Tool) -> bool:
    """Whether all that a tool needs is a text that takes what is asked, as its examples show by questions."""
    needed, examples = tool.required, tool.guide.examples
    if tool.writes or tool.confirmed:
        return False
    if len(needed) != 1 or needed[0].kind is not Kind.TEXT or is_composed(tool, needed[0]):
        return False
    asked = sum(asks_for_facts(each.says) for each in examples)
    return asked * 3 >= len(examples) > 0 and _takes_the_request(tool, needed[0])


def _takes_the_request(tool: Tool, parameter: Parameter) -> bool:
    """Whether the guide's examples put most of what is said into a text, as into the query of a search."""
    shares, lengths = [], []
    for example in tool.guide.examples:
        value = example.args.get(parameter.name)
        if isinstance(value, str) and (said := content(example.says)):
            found = set(content(value))
            lengths.append(len(found))
            shares.append(sum(each in found for each in said) / len(said))
    # A single word, such as a city, is a value and no query.
    return bool(shares) and sum(shares) / len(shares) >= _HALF and sum(lengths) / len(lengths) >= 2
