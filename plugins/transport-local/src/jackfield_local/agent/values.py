"""Single values: whether the user gave them, and in the form that the schema wants."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from jackfield_local.agent import codes
from jackfield_local.agent.parameters import TEMPORAL, Kind, Parameter, Tool
from jackfield_local.agent.speech import Speech
from jackfield_local.language.addresses import emails, quoted, urls
from jackfield_local.language.amounts import Amount, amounts, bare_amount, forms
from jackfield_local.language.durations import duration
from jackfield_local.language.questions import asks_for_facts
from jackfield_local.language.spans import masked
from jackfield_local.language.times import read_when
from jackfield_local.language.words import content, stem, words

_MOSTLY = 0.6
"""So much of a required text has to be in the user's words; the model may bend the others to fit."""

_NEARLY_ALL = 0.8
"""So much of an optional text."""

_HALF = 0.5
_POINTING = re.compile(r"\b(?:this|these|here|below|following)\b", re.IGNORECASE)
_ALIKE = 0.55
"""A word that means a choice is at least so near to it, by sentence embeddings."""


def ground_value(tool: Tool, parameter: Parameter, value: Any, speech: Speech) -> Any:
    """The value if the user gave it, in the schema's form; `None` when the user did not."""
    check = _CHECKS.get(parameter.kind)
    return None if check is None else check(tool, parameter, value, speech)


def ground_numbers(
    tool: Tool, raw: Mapping[str, Any], speech: Speech, known: Collection[str]
) -> dict[str, Any]:
    """The numbers of a call: those of the model that were said, and the only one left for what is missing.

    Parameters that are `known` from earlier turns are not missing.
    """
    wanted = [each for each in tool.parameters if each.kind in (Kind.NUMBER, Kind.DURATION)]
    said = _numbers(tool, speech.said, speech.now)
    before = [value for text in speech.earlier for each in amounts(text) for value in forms(each)]
    found: dict[str, Any] = {}
    for parameter in wanted:
        length = duration(speech.said) if parameter.kind is Kind.DURATION else None
        if length is not None:
            found[parameter.name] = _shaped(parameter, length.length.total_seconds() / parameter.unit_seconds)
            said = [each for each in said if not each.span.overlaps(length.span)]
            continue
        value = raw.get(parameter.name)
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            continue
        spoken = next((each for each in said if value in forms(each)), None)
        if spoken is not None:
            # "Two for two": the same number can be said twice, and meant once each.
            said.remove(spoken)
            found[parameter.name] = _shaped(parameter, value)
        elif value in before:
            found[parameter.name] = _shaped(parameter, value)
    left = [each for each in wanted if each.required and each.name not in found and each.name not in known]
    if not said and (bare := bare_amount(speech.said)) is not None:
        said = [bare]  # A "one" counts something only where it is all that is said.
    if len(left) == 1 and len(said) == 1:
        found[left[0].name] = _shaped(left[0], said[0].value)
    return {name: value for name, value in found.items() if value is not None}


def _numbers(tool: Tool, text: str, now: datetime) -> list[Amount]:
    """The amounts of a text, without those that belong to a date or clock time the tool takes."""
    if any(each.kind in TEMPORAL for each in tool.parameters):
        when = read_when(text, now)
        text = (
            masked(text, [(each, "\x00" * (each.end - each.start)) for each in when.spans]) if when else text
        )
    return amounts(text)


def _shaped(parameter: Parameter, value: float) -> Any:
    if parameter.integral or float(value).is_integer():
        if not float(value).is_integer():
            return None
        return int(value)
    return value


def choice_is_named(tool: Tool, parameter: Parameter, value: Any, speech: Speech) -> bool:
    """Whether the words have the choice itself, or a word by which its description or an example has it."""
    named = {stem(word) for word in words(str(value).replace("_", " "))}
    return bool((named | _clause(parameter, value) | _shown(tool, parameter, value)) & speech.stems)


def choice_is_said(tool: Tool, parameter: Parameter, value: Any, speech: Speech) -> bool:
    """Whether the words name a choice, or have a word that means the same."""
    if choice_is_named(tool, parameter, value, speech):
        return True
    said = [*_telling(tool, speech.said)]
    if not said:
        return False
    others = [str(each).replace("_", " ") for each in parameter.choices]
    near = speech.embed(others) @ speech.embed(said).T
    best = near.max(axis=1)
    place = parameter.choices.index(value) if value in parameter.choices else -1
    return place >= 0 and best[place] >= _ALIKE and best[place] >= best.max() - 0.05


def _clause(parameter: Parameter, value: Any) -> set[str]:
    """The stems of the clause of the description that explains a choice."""
    for clause in re.split(r"[,;:.]", parameter.description):
        if re.search(rf"\b{re.escape(str(value))}\b", clause, re.IGNORECASE):
            return set(content(clause))
    return set()


def _shown(tool: Tool, parameter: Parameter, value: Any) -> set[str]:
    """The stems that only those examples of the guide have in which this value was chosen."""
    own: set[str] = set()
    others = set(content(f"{tool.id.replace('_', ' ')} {tool.description}"))
    for each in tool.parameters:
        others |= set() if each is parameter else set(content(f"{each.spoken} {each.summary}"))
    for example in tool.guide.examples:
        rest = {name: each for name, each in example.args.items() if name != parameter.name}
        if example.args.get(parameter.name) == value:
            own |= set(content(example.says)) - set(content(" ".join(map(str, rest.values()))))
        else:
            others |= set(content(example.says))
    return own - others


def _telling(tool: Tool, text: str) -> Iterator[str]:
    """The words that may mean a value: not those with which the tool speaks of itself, nor numbers."""
    for word in words(text):
        found = content(word)
        if found and not word.isdigit() and found[0] not in tool.vocabulary:
            yield word


def _choice(tool: Tool, parameter: Parameter, value: Any, speech: Speech) -> Any:
    return value if choice_is_said(tool, parameter, value, speech) else None


def _switch(tool: Tool, parameter: Parameter, value: Any, speech: Speech) -> Any:
    """A switch is on if the words name it."""
    about = set(content(tool.description))
    named = set(content(f"{parameter.spoken} {parameter.summary}")) - about
    return True if value and named & {stem(word) for word in words(speech.said)} else None


def _email(_: Tool, __: Parameter, value: Any, speech: Speech) -> str | None:
    text = str(value)
    wanted = text.strip().lower()
    for source in (speech.everything, speech.seen):
        if found := next((each.text for each in emails(source) if each.text.lower() == wanted), None):
            return found
    # A person whose record was shown with an address.
    name = set(words(text.partition("@")[0]))
    for record in speech.records:
        shown = " ".join(str(each) for each in record.values() if isinstance(each, str))
        found_there = emails(shown)
        if name and name <= set(words(shown)) and len(found_there) == 1:
            return found_there[0].text
    return None


def _url(_: Tool, __: Parameter, value: Any, speech: Speech) -> str | None:
    bare = str(value).rsplit("://", maxsplit=1)[-1].rstrip("/").lower()
    for each in [*urls(speech.everything), *urls(speech.seen)]:
        if each.text.split("://")[-1].rstrip("/").lower() == bare:
            return each.text
    return f"https://{bare}" if bare and bare in speech.everything.lower() else None


def _identifier(_: Tool, parameter: Parameter, value: Any, speech: Speech) -> str | None:
    """An identifier that was said or shown; spaces and case are as the pattern wants them."""
    text = str(value)
    for source in (speech.everything, speech.seen):
        if re.search(rf"(?<!\w){re.escape(text)}(?!\w)", source) and _fits(parameter, text):
            return text
    packed = re.sub(r"[\s-]", "", text)
    heard = re.sub(r"[\s-]", "", speech.everything)
    if packed and packed.lower() in heard.lower():
        return next(
            (each for each in (packed, packed.upper(), packed.lower()) if _fits(parameter, each)), None
        )
    return None


def patterned(parameter: Parameter, text: str) -> str | None:
    """What fits the pattern of an identifier in a text."""
    inside = parameter.pattern.removeprefix("^").removesuffix("$")
    if not inside:
        return None
    for form in (text, text.upper(), re.sub(r"(?<=\w)[ -](?=\d)", "", text.upper())):
        try:
            match = re.search(rf"(?<!\w)(?:{inside})(?!\w)", form)
        except re.error:
            return None
        if match:
            return match.group()
    return None


def _fits(parameter: Parameter, value: str) -> bool:
    return not parameter.pattern or re.search(parameter.pattern, value) is not None


def ground_codes(parameters: Sequence[Parameter], raw: Mapping[str, Any], speech: Speech) -> dict[str, str]:
    """Codes of one kind: the model's where a name says so, else the only name that is left."""
    named = codes.mentions(parameters[0].kind, speech.everything)
    found: dict[str, str] = {}
    for parameter in parameters:
        value = str(raw.get(parameter.name, ""))
        value = value.upper() if parameter.kind is not Kind.LANGUAGE else value.lower()
        spoken = next((each for each in named if value in each.codes), None)
        if spoken is not None:
            named.remove(spoken)
            found[parameter.name] = value
    left = [each for each in parameters if each.name not in found and (each.required or each.name in raw)]
    if len(left) == len(named):
        found |= {each.name: mention.codes[0] for each, mention in zip(left, named, strict=True)}
    return found


def _zone(tool: Tool, _: Parameter, value: Any, speech: Speech) -> str | None:
    """A zone whose city was named, or that the model knows for a place; else the user's own."""
    text = str(value)
    if codes.is_zone(text) and (
        codes.zone_is_named(text, speech.everything) or any(_telling(tool, speech.said))
    ):
        return text
    return speech.zone or None


def _text(tool: Tool, parameter: Parameter, value: Any, speech: Speech) -> str | None:
    text = str(value)
    if is_handed_over(tool, parameter):
        return handed_over(speech)
    if parameter.required and set(content(text)) <= set(
        content(f"{tool.id.replace('_', ' ')} {tool.description}")
    ):
        return None  # "A support ticket" names the tool, and no text.
    if (exact := speech.verbatim(text)) is not None:
        return exact
    share = speech.share(text)
    if parameter.required and (share >= _MOSTLY or is_composed(tool, parameter)):
        return text
    return text if share >= _NEARLY_ALL else None


def led_by(tool: Tool, parameter: Parameter) -> set[str]:
    """The words that stand before this value in the guide's examples, such as "from" before an origin."""
    found = set()
    for example in tool.guide.examples:
        value = example.args.get(parameter.name)
        if isinstance(value, str) and (before := word_before(example.says, value)):
            found.add(before)
    return found


def word_before(text: str, value: str) -> str:
    """The word before a value in a text."""
    before, found, _ = text.lower().partition(value.lower())
    return ([*words(before)] or [""])[-1] if found else ""


def quoted_text(speech: Speech) -> str | None:
    """The only text in quotes."""
    found = quoted(speech.said)
    return found[0].text if len(found) == 1 else None


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
    """The text that follows a request: in quotes, after a colon, or from the next line on."""
    for said in (speech.said, *reversed(speech.earlier)):
        head, _, rest = said.partition("\n")
        if rest.strip():
            return rest.strip()
        if ": " in head and len(head.partition(": ")[2].split()) > 1:
            return head.partition(": ")[2].strip()
    return quoted_text(speech)


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
    if len(needed) != 1 or needed[0].kind is not Kind.TEXT or is_composed(tool, needed[0]):
        return False
    asked = sum(asks_for_facts(each.says) for each in examples)
    return asked * 3 >= len(examples) > 0 and takes_the_request(tool, needed[0])


def takes_the_request(tool: Tool, parameter: Parameter) -> bool:
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


_CHECKS: dict[Kind, Callable[[Tool, Parameter, Any, Speech], Any]] = {
    Kind.CHOICE: _choice,
    Kind.SWITCH: _switch,
    Kind.EMAIL: _email,
    Kind.URL: _url,
    Kind.IDENTIFIER: _identifier,
    Kind.ZONE: _zone,
    Kind.TEXT: _text,
}
