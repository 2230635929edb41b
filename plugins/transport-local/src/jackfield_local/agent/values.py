"""Values whose form tells what they are, found in the user's words: numbers, codes, choices, addresses.

A hint is what the model wrote for a parameter. It chooses among the values that the words give, and is never
passed on by itself; without a model the examples of the guide choose.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

import jsonschema_rs

from jackfield_local.agent import codes
from jackfield_local.agent.parameters import TEMPORAL, Kind, Parameter, Tool
from jackfield_local.agent.speech import Speech
from jackfield_local.language.addresses import emails, ids, urls
from jackfield_local.language.durations import duration
from jackfield_local.language.numbers import ORDINALS, Amount, amounts, bare_amount, forms
from jackfield_local.language.spans import Span, blanked
from jackfield_local.language.times import read_when
from jackfield_local.language.words import content, stems, words
from jackfield_local.zone import is_zone

_LONGEST_TOKEN, _MOST_WORDS = 64, 4
_ALIKE = 0.55
"""A word that means a choice is at least so near to it, by sentence embeddings."""


def find_numbers(
    tool: Tool, hints: Mapping[str, Any], speech: Speech, known: Collection[str] = ()
) -> dict[str, Any]:
    """Numbers and lengths of time: hinted at, named beside them, or the only ones that are left.

    Parameters that are `known` from earlier turns are not missing.
    """
    wanted = [each for each in tool.parameters if each.kind in (Kind.NUMBER, Kind.DURATION) and not each.many]
    said = blanked(speech.said, time_spans(tool, speech))
    left = amounts(said) if wanted else []
    before = [value for text in speech.earlier for each in amounts(text) for value in forms(each)]
    found: dict[str, Any] = {}
    for parameter in wanted:
        hint = hints.get(parameter.name)
        length = duration(speech.said) if parameter.kind is Kind.DURATION else None
        others = [each for each in wanted if each is not parameter]
        beside = [each for each in left if _stands_beside(parameter, said, each)]
        meant = [each for each in left if hint in forms(each) and not _is_for(others, said, each)] or beside
        if length is not None:
            found[parameter.name] = length.length.total_seconds() / parameter.unit_seconds
        elif meant and (hint in forms(meant[0]) or len(meant) == 1):
            # "Two for two": the same number can be said twice, and meant once each.
            left.remove(meant[0])
            found[parameter.name] = hint if hint in forms(meant[0]) else _form(tool, parameter, meant[0])
        elif hint in before:
            found[parameter.name] = hint
    rest = [each for each in wanted if each.required and each.name not in found and each.name not in known]
    if not left and (bare := bare_amount(speech.said)) is not None:
        left = [bare]  # A "one" counts something only where it is all that is said.
    if len(rest) == len(left) == 1:
        found[rest[0].name] = _form(tool, rest[0], left[0])
    shaped = {name: _shaped(tool.parameter(name), value) for name, value in found.items()}
    return {name: value for name, value in shaped.items() if value is not None}


def _stands_beside(parameter: Parameter, text: str, amount: Amount) -> bool:
    """Whether a word of the parameter's name or description stands next to a number."""
    beside = [*words(text[: amount.span.start])[-1:], *words(text[amount.span.start :])[1:2]]
    told = set(content(f"{parameter.spoken} {parameter.summary}"))
    return any(set(content(each)) & told for each in beside)


def _is_for(parameters: Sequence[Parameter], text: str, amount: Amount) -> bool:
    """Whether a number stands beside the name of one of these, as the 10 of "10 km" does."""
    return any(_stands_beside(each, text, amount) for each in parameters)


def _form(tool: Tool, parameter: Parameter, amount: Amount) -> float:
    """A percentage as a fraction where the schema or an example has it so."""
    shown = [(example.says, example.args.get(parameter.name)) for example in tool.guide.examples]
    as_fraction = any(
        value in forms(each)[1:] for says, value in shown for each in amounts(says) if each.percent
    )
    return forms(amount)[-1] if as_fraction else amount.value


def _shaped(parameter: Parameter | None, value: float) -> Any:
    if float(value).is_integer():
        return int(value)
    return None if parameter is not None and parameter.integral else value


def time_spans(tool: Tool, speech: Speech) -> list[Span]:
    """Where the words speak of a time or of a length of time that the tool takes."""
    kinds = {each.kind for each in tool.parameters}
    when = read_when(speech.said, speech.now) if kinds & TEMPORAL else None
    spans = [*when.spans] if when is not None else []
    length = duration(speech.said) if kinds & (TEMPORAL | {Kind.DURATION}) else None
    return [*spans, length.span] if length is not None else spans


def find_codes(
    parameters: Sequence[Parameter], tool: Tool, hints: Mapping[str, Any], speech: Speech
) -> dict[str, str]:
    """Codes of one kind: hinted at and named; the others as the guide's examples show which stands where."""
    kind = parameters[0].kind
    text = speech.everything if hints else speech.said
    named = codes.mentions(kind, text)
    found: dict[str, str] = {}
    for parameter in parameters:
        hint = str(hints.get(parameter.name, ""))
        hint = hint.lower() if kind is Kind.LANGUAGE else hint.upper()
        if (spoken := next((each for each in named if hint in each.codes), None)) is not None:
            named.remove(spoken)
            found[parameter.name] = hint
        elif kind is Kind.CURRENCY and hint and codes.is_of_named_place(hint, text):
            found[parameter.name] = hint
    left = [each for each in parameters if each.name not in found]
    left = [each for each in left if each.required or not hints or each.name in hints]
    signs = {each.name: _code_signs(tool, each) for each in left}
    named = named[: len(left)]

    def fit(order: Sequence[Parameter]) -> int:
        pairs = zip(order, named, strict=True)
        return sum(bool(_signs(text, mention.start) & signs[each.name]) for each, mention in pairs)

    best = max(permutations(left, len(named)), key=fit)
    if len(named) == len(left) or (not hints and fit(best) == len(named)):
        pairs = zip(best, named, strict=True)
        chosen = {each.name: _code(tool, each, mention.codes) for each, mention in pairs}
        found |= {name: code for name, code in chosen.items() if code is not None}
    return found


def _code(tool: Tool, parameter: Parameter, named: Sequence[str]) -> str | None:
    """What a name means in the guide's examples, or usually."""
    shown = [value for example in tool.guide.examples for value in example.args.values()]
    return next((each for each in named if each in shown), codes.usual(parameter.kind, named))


def _code_signs(tool: Tool, parameter: Parameter) -> set[str]:
    """What stands before a code in the examples."""
    return {
        sign
        for example in tool.guide.examples
        for mention in codes.mentions(parameter.kind, example.says)
        if example.args.get(parameter.name) in mention.codes
        for sign in _signs(example.says, mention.start)
    }


def _signs(text: str, start: int) -> set[str]:
    """The word before a place in a text, or a mark for any number."""
    after_number = any(each.span.start < start <= each.span.end for each in amounts(text))
    return {"#"} if after_number else {*words(text[:start])[-1:]}


def find_value(tool: Tool, parameter: Parameter, hint: Any, speech: Speech) -> Any:
    """The value of one parameter; nothing where the words do not give it."""
    finder = _FINDERS.get(parameter.kind)
    return None if finder is None else finder(tool, parameter, hint, speech)


def find_all(parameter: Parameter, speech: Speech) -> list[Any]:
    """What may be members of a list."""
    if parameter.kind is Kind.EMAIL:
        return [each.text for each in emails(speech.said)]
    if parameter.kind is Kind.IDENTIFIER:
        return [each.text for each in ids(speech.said)] or [*filter(None, [_pointed_at(speech)])]
    return [each for each in parameter.choices if choice_is_named(each, speech)]


def choice_is_named(choice: Any, speech: Speech) -> bool:
    """Whether the last words have every word of a choice."""
    return choice_is_in(choice, stems(speech.said))


def choice_is_in(choice: Any, said: set[str]) -> bool:
    """Whether some stems have those of a choice; one without letters or digits is never named."""
    named = stems(str(choice).replace("_", " "))
    return bool(named) and named <= said


def _choice(tool: Tool, parameter: Parameter, hint: Any, speech: Speech) -> Any:
    if hint in parameter.choices and _means(tool, parameter, hint, speech):
        return hint
    named = [each for each in parameter.choices if choice_is_named(each, speech)]
    if named or not (parameter.required or hint is not None):
        return named[0] if len(named) == 1 else None
    for is_meant in (_is_explained, _means):
        meant = [each for each in parameter.choices if is_meant(tool, parameter, each, speech)]
        if len(meant) == 1:
            return meant[0]
    return _as_in_examples(tool, parameter, speech) if parameter.required else None


def _as_in_examples(tool: Tool, parameter: Parameter, speech: Speech) -> Any:
    """A choice that users never say, such as the reason of a farewell: that of the nearest example."""
    shown = [each for each in tool.guide.examples if each.args.get(parameter.name) in parameter.choices]
    if not shown or any(stems(str(each.args[parameter.name])) <= stems(each.says) for each in shown):
        return None
    near = speech.embed([each.says for each in shown]) @ speech.embed([speech.said])[0]
    return shown[int(near.argmax())].args[parameter.name]


def _is_explained(_: Tool, parameter: Parameter, value: Any, speech: Speech) -> bool:
    """Whether the words have one of the name of a choice, or of the clause that describes it."""
    named = stems(str(value).replace("_", " "))
    for clause in re.split(r"[,;:.]", parameter.description):
        if re.search(rf"\b{re.escape(str(value))}\b", clause, re.IGNORECASE):
            named |= set(content(clause))
            break
    return bool(named & speech.stems)


def _means(tool: Tool, parameter: Parameter, value: Any, speech: Speech) -> bool:
    """Whether the words name or explain a choice, or have a word that means the same."""
    if _is_explained(tool, parameter, value, speech):
        return True
    said = [*telling(tool, speech.said)]
    if not said:
        return False
    choices = [str(each).replace("_", " ") for each in parameter.choices]
    near = (speech.embed(choices) @ speech.embed(said).T).max(axis=1)
    place = parameter.choices.index(value)
    return bool(near[place] >= _ALIKE and near[place] >= near.max() - 0.05)


def telling(tool: Tool, text: str) -> Iterator[str]:
    """The words that may mean a value: not those with which the tool speaks of itself, nor numbers."""
    for word in words(text):
        found = content(word)
        if found and not word.isdigit() and found[0] not in tool.vocabulary:
            yield word


def _switch(tool: Tool, parameter: Parameter, hint: Any, speech: Speech) -> bool | None:
    """On if the words have all of its name, or a word of its description where the model says so."""
    named = set(content(f"{parameter.spoken} {parameter.summary}")) - set(content(tool.description))
    said = stems(speech.said)
    return True if stems(parameter.spoken) <= said or (hint and named & said) else None


def _email(_: Tool, __: Parameter, hint: Any, speech: Speech) -> str | None:
    if hint is None:
        return next((each.text for each in emails(speech.said)), None)
    wanted = str(hint).strip().lower()
    known = [each.text for each in (*emails(speech.everything), *emails(speech.seen))]
    # Or that of a person whose record was shown with one address.
    name = set(words(wanted.partition("@")[0]))
    shown = [" ".join(map(str, each.values())) for each in speech.records]
    persons = [emails(each) for each in shown if name and name <= set(words(each))]
    matching = [each for each in known if each.lower() in wanted]
    matching += [found[0].text for found in persons if len(found) == 1]
    return next(iter(matching), None)


def _url(_: Tool, __: Parameter, hint: Any, speech: Speech) -> str | None:
    if hint is None:
        return next((each.text for each in urls(speech.said)), None)
    bare = _without_scheme(str(hint))
    for each in (*urls(speech.said), *urls(speech.everything), *urls(speech.seen)):
        if _without_scheme(each.text) in bare:
            return each.text
    return f"https://{bare}" if bare and " " not in bare and bare in speech.everything.lower() else None


def _without_scheme(url: str) -> str:
    return url.rpartition("://")[2].rstrip("/").lower()


def _identifier(_: Tool, parameter: Parameter, hint: Any, speech: Speech) -> str | None:
    """An identifier that was said or shown; spaces and case are as the pattern wants them."""
    text = re.sub(r"[\s-]", "", str(hint or ""))[:_LONGEST_TOKEN]
    spaced = r"[\s-]?".join(map(re.escape, text))
    for source in (speech.everything, speech.seen):
        match = re.search(rf"(?<!\w){spaced}(?!\w)", source, re.IGNORECASE) if text else None
        forms_ = (match.group(), text, text.upper(), text.lower()) if match else ()
        if fitting := [each for each in forms_ if _fits(parameter, each)]:
            return fitting[0]
    said = patterned(parameter, speech.said) or next((each.text for each in ids(speech.said)), None)
    return said if said or hint is not None else _pointed_at(speech)


def _pointed_at(speech: Speech) -> str | None:
    """The identifier of a shown record that the words count out or call by its title."""
    shown = [each for each in speech.records if isinstance(each.get("id"), str)]
    counted = [ORDINALS.get(each, 0) for each in re.findall(r"\bthe (\w+)", speech.said.lower())]
    place = next(filter(None, counted), 0)
    if 0 < place <= len(shown):
        return str(shown[place - 1]["id"])
    titles = [(stems(str(each.get("title") or each.get("name") or "")), each["id"]) for each in shown]
    named = [found for title, found in titles if title and title <= speech.stems]
    return str(named[0]) if len(named) == 1 else None


def patterned(parameter: Parameter, text: str) -> str | None:
    """What fits the pattern of an identifier in a text: a word, or a few that are written apart."""
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


def _fits(parameter: Parameter, value: str) -> bool:
    """Whether a value has the form of a parameter, by a matcher that no pattern can stall."""
    schema = {"type": "string", "pattern": parameter.pattern} if parameter.pattern else {}
    try:
        return jsonschema_rs.is_valid(schema, value)
    except ValueError:
        return False


def _zone(tool: Tool, _: Parameter, hint: Any, speech: Speech) -> str | None:
    """The zone of a place that was named, or that the model knows for one; else the user's own."""
    if (named := codes.zone_of_place(speech.said)) is not None:
        return named
    text = str(hint or "")
    known = is_zone(text) and (
        codes.zone_is_named(text, speech.everything) or any(telling(tool, speech.said))
    )
    return text if known else speech.zone or None


_FINDERS: dict[Kind, Callable[[Tool, Parameter, Any, Speech], Any]] = {
    Kind.CHOICE: _choice,
    Kind.SWITCH: _switch,
    Kind.EMAIL: _email,
    Kind.URL: _url,
    Kind.IDENTIFIER: _identifier,
    Kind.ZONE: _zone,
}
