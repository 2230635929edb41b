"""Describes results in words, using only their data, and combines several searches for one question."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

import numpy as np
from jackfield.speech import plain
from jackfield_language.datetimes import readable, span
from jackfield_language.questions import answer_forms, asks_for_facts, is_own
from jackfield_language.text import sentences, shortened, untitled
from jackfield_language.words import content, name_words, spoken_name, stems

from jackfield_local.agent.message import Embed
from jackfield_local.agent.tools import CODES, Tool, ToolParameter, ValueType
from jackfield_local.agent.values import named_choices

_EVIDENCE = 12  # Number of records that are searched for the sentence that answers a question.
_WORDS, _RANK, _KIND = 0.5, 0.5, 0.3
"""How much the question's words, the record's rank in the search, and a value of the kind asked for add
to a sentence's score."""

_GOOD, _GOOD_SPOKEN = 0.6, 0.8
"""Minimum score of a further sentence in the answer, as a share of the first sentence's score."""

_UNSURE, _UNRELATED = "I found nothing that clearly answers this. The closest is: ", 0.34
"""The warning before an answer, and the share of the question's words up to which a record gets it."""

_KNOWN = 0.8  # The weight of a record's member compared with a sentence, unless the member is the best.
_MOST_SENTENCES = 60
_SENTENCES, _SENTENCES_SPOKEN = 3, 2
_LISTED, _LISTED_SPOKEN = 10, 3
_LONGEST_LINE = 200
_LONGEST_PASSAGE = 1200
_WORDED = ("say", "text")  # The members with the result in words, for people.
_MACHINES = frozenset(
    ("id", "ids", "uid", "uuid", "hash", "etag", "token", "cursor", "epoch", "score", "iso", "ms")
)
_TITLES = ("title", "name", "subject", "label")
_ABOUT = (*_TITLES, "type", "kind", "category")
_CUT = ("\u2026", "...")

Record = Mapping[str, Any]


@dataclass(frozen=True)
class ResponseStyle:
    """The style of the answers in a session."""

    spoken: bool
    zone: tzinfo
    embed: Embed


def describe_result(
    data: Any, question: str, style: ResponseStyle, args: Mapping[str, Any] | None = None
) -> str:
    """Describe the result of a call with these arguments in words."""
    if isinstance(data, Mapping):
        told = _object(data, question, style, [_line(each, style) for each in (args or {}).values()])
    elif isinstance(data, list):
        told = _list("", data, question, style)
    else:
        told = _line(data, style)
    return told.strip() or "Done."


def describe_failure(error: Mapping[str, Any], style: ResponseStyle) -> str:
    """Describe an error: what happened and what to do."""
    text = readable(str(error.get("message") or "The call failed.").strip(), style.zone)
    told = text if text.endswith((".", "!", "?")) else f"{text}."
    if error.get("partialSideEffects"):
        told += " It is not known whether it took effect."
    return f"{told} {error['suggestion']}" if error.get("suggestion") else told


def ask_for(parameter: ToolParameter, unusable: str = "") -> str:
    """Ask for one value, in the words of its description."""
    if unusable:
        return f"What is the {parameter.type.value} of {unusable}?"
    told = re.sub(r"\bthe user('s)?\b", lambda match: "your" if match.group(1) else "you", parameter.summary)
    told = re.split(r", |: ", told, maxsplit=1)[0]
    if parameter.type in CODES:
        told = re.sub(r"^.*?\bcode of\s+", "", told)
    if not re.match(r"(?:how|when|where|who|whom|whose|which|what|whether|the|an?)\b", told, re.IGNORECASE):
        told = f"the {parameter.spoken} ({told})" if told else f"the {parameter.spoken}"
    low, high = parameter.schema.get("minimum"), parameter.schema.get("maximum")
    options = f" (from {low} to {high})" if low is not None and high is not None else ""
    if parameter.choices:
        options = f" ({', '.join(map(str, parameter.choices))})"
    return f"Please tell me {told[:1].lower()}{told[1:]}{options}."


def records_in(data: Any) -> tuple[Record, ...]:
    """Return the records of a result, which the user can refer to afterwards."""
    if isinstance(data, Mapping):
        data = next((value for value in data.values() if _is_records(value)), [data] if "id" in data else [])
    return tuple(data[:_LISTED]) if _is_records(data) else ()


def describe_values(args: Mapping[str, Any], style: ResponseStyle) -> str:
    """Return all arguments in readable form, for the user's consent."""
    return ", ".join(f"{spoken_name(name)}: {_line(value, style)}" for name, value in args.items())


def title_of(record: Record) -> str:
    """Return the title of a record."""
    return next((plain(str(record[key])) for key in _TITLES if record.get(key)), "")


def score_of(record: Record) -> float:
    """Return the score that the search gave a record; 0 if it gave none."""
    score = record.get("score")
    return float(score) if isinstance(score, int | float) else 0.0


def is_cut_off(record: Record) -> bool:
    """Return whether a record has only part of its text."""
    return _body(record).strip().startswith(_CUT) or _body(record).strip().endswith(_CUT)


def _is_records(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, Mapping) for each in value)


def _object(data: Record, question: str, style: ResponseStyle, given: Collection[str]) -> str:
    body = next((str(data[key]) for key in _WORDED if isinstance(data.get(key), str)), "") or _body(data, 2)
    parts = [readable(shortened(body, _LONGEST_PASSAGE), style.zone)]
    if len(sentences(body)) > 2 and asks_for_facts(question):
        parts = [_evidence([data], question, style)]
    for key, value in data.items():
        if _is_records(value):
            parts.append(_list(key, value, question, style))
        elif parts[0] and isinstance(value, list):
            added = [each for each in value if isinstance(each, str) and " " in each]
            parts.append(_line(added, style))  # Sentences that a tool adds for the reader.
    told = (" " if style.spoken else "\n\n").join(filter(None, parts))
    if told or (told := _sentence(data, style, given)):
        return told
    empty = [spoken_name(key) for key, value in data.items() if value == []]
    return f"Nothing was found: no {', '.join(empty)}." if empty else ""


def _list(key: str, items: Sequence[Any], question: str, style: ResponseStyle) -> str:
    if not items:
        return "Nothing was found."
    if _is_records(items) and all(_body(each) and title_of(each) for each in items):
        if asks_for_facts(question) or style.spoken or len(items) == 1 or any(map(score_of, items)):
            return _evidence(items, question, style)
        texts = [f"{title_of(each)}: {shortened(_body(each), _LONGEST_PASSAGE)}" for each in items[:_LISTED]]
        return "\n".join(f"{place}. {text}" for place, text in enumerate(texts, 1))
    most = _LISTED_SPOKEN if style.spoken else _LISTED
    lines = [line for each in items[:most] if (line := _line(each, style))]
    more = max(0, len(items) - most)
    label = f"{spoken_name(key).capitalize()}:" if key else ""
    if style.spoken:
        return f"{label} {'; '.join(lines)}{f', and {more} more' if more else ''}.".strip()
    numbered = [f"{place}. {line}" for place, line in enumerate(lines, 1)]
    return "\n".join(filter(None, (label, *numbered, f"({more} more)" if more else "")))


def _body(record: Record, least: int = 4) -> str:
    """Return the longest text of a record, if it has more than a few words."""
    texts = [value for key, value in record.items() if isinstance(value, str) and key not in _TITLES]
    longest = max(texts, key=len, default="")
    return longest if len(longest.split()) > least else ""


def _evidence(items: Sequence[Record], question: str, style: ResponseStyle) -> str:
    """Return the sentences that answer a question, with their source, and the other titles."""
    if len(items) == 1 and not asks_for_facts(question) and not style.spoken:
        return f"{shortened(_body(items[0]), _LONGEST_PASSAGE)}{_source(items[0], style)}"
    best = best_sentences(question, items, style)
    if best is None:
        return "; ".join(title_of(each) for each in items[:_LISTED])
    record, told = best
    answer = f"{_hedge(question, record, style)}{' '.join(told)}{_source(record, style)}"
    others = [f"- {title_of(each)}{_mark(each)}" for each in items[:_LISTED] if each is not record]
    return answer if style.spoken or not others else "\n".join((answer, "\nAlso found:", *others))


def _hedge(question: str, record: Record, style: ResponseStyle) -> str:
    """Return a warning if a record has few of the question's words: a search always finds something."""
    asked = set(content(question.partition(" (")[0]))
    known = stems(" ".join([*(str(each) for each in record.values()), *_facts(record, style)]))
    return _UNSURE if asked and len(asked & known) <= len(asked) * _UNRELATED else ""


def _source(record: Record, style: ResponseStyle) -> str:
    named = title_of(record) or str(record.get("path") or record.get("url") or "")
    if not named:
        return ""
    return f" That is from {named}." if style.spoken else f"\n\nSource: {named}{_mark(record)}"


def _mark(record: Record) -> str:
    return f" [{record['id']}]" if isinstance(record.get("id"), str) else ""


def best_sentences(
    question: str, records: Sequence[Record], style: ResponseStyle
) -> tuple[Record, list[str]] | None:
    """Return the record that answers a question best, and its best sentences in order."""
    records = records[:_EVIDENCE]
    found = [
        (place, sentence)
        for place, record in enumerate(records)
        for each in (*_facts(record, style), *_whole_sentences(_body(record), title_of(record)))
        if len(sentence := plain(each)) > 2 and not sentence.endswith("?")
    ]
    if not found:
        return None
    # What a pronoun refers to selects the record; the user's own words select the sentence in it.
    said = question.partition(" (")[0]
    score = style.embed([sentence for _, sentence in found]) @ style.embed([said or " "])[0]
    best = max(map(score_of, records))
    asked = set(content(question))
    forms = answer_forms(question)
    for row, (place, sentence) in enumerate(found):
        about = set(content(" ".join([sentence, *(str(records[place].get(key, "")) for key in _ABOUT)])))
        score[row] += _WORDS * len(asked & about) / max(1, len(asked))
        score[row] += _RANK * (score_of(records[place]) / best if best else 1 - place / len(records))
        score[row] += _KIND * any(form.search(sentence) for form in forms)
    first = int(np.argmax(score))
    record = records[found[first][0]]
    least = (_GOOD_SPOKEN if style.spoken else _GOOD) * score[first]
    # A member that has little to do with the question would only distract.
    facts = _facts(record, style)
    weights = [_KNOWN * score[row] if found[row][1] in facts else score[row] for row in range(len(found))]
    rivals = [
        row for row in np.argsort(weights)[::-1] if found[row][0] == found[first][0] and weights[row] >= least
    ]
    kept = sorted({first, *rivals[: _SENTENCES_SPOKEN if style.spoken else _SENTENCES]})
    return record, [found[row][1] for row in kept]


def _facts(record: Record, style: ResponseStyle) -> list[str]:
    """Return the members of a record's own objects as sentences, such as "Phones: +1-555-0114."."""
    inside = [value for value in record.values() if isinstance(value, Mapping)]
    return [
        f"{name.capitalize()}: {text}."
        for each in inside
        for name, text in _members(each, style)
        if "://" not in text
    ]


def _whole_sentences(body: str, title: str) -> list[str]:
    """Return the sentences of a text; sentences that the search cut off only if there are no others."""
    found = sentences(untitled(body.removeprefix("\u2026"), title))[:_MOST_SENTENCES]
    begins = 1 if body.startswith("\u2026") and found and found[0][:1].islower() else 0
    ends = len(found) - 1 if body.endswith(_CUT) else len(found)
    return found[begins:ends] or found


def _line(value: Any, style: ResponseStyle) -> str:
    """Return a value on one line."""
    if isinstance(value, Mapping):
        title = title_of(value)
        start, end = value.get("start"), value.get("end")
        if isinstance(start, str) and isinstance(end, str):
            value = {key: each for key, each in value.items() if key not in ("start", "end")}
            title = ", ".join(filter(None, (title, span(start, end, style.zone))))
        rest = [f"{name}: {text}" for name, text in _members(value, style) if name not in _TITLES]
        return " - ".join(filter(None, (title, ", ".join(rest))))[:_LONGEST_LINE]
    if isinstance(value, list):
        return "; ".join(filter(None, (_line(each, style) for each in value[:_LISTED])))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else readable(str(value), style.zone)


def _members(data: Record, style: ResponseStyle) -> list[tuple[str, str]]:
    """Return an object's names and values, without those that only machines read."""
    known = ((key, _line(value, style)) for key, value in data.items() if not _MACHINES & {*name_words(key)})
    return [(spoken_name(key), text) for key, text in known if text]


def _sentence(data: Record, style: ResponseStyle, given: Collection[str]) -> str:
    """Return an object as a sentence, without values that only repeat the call's arguments."""
    if title_of(data) and not style.spoken and re.fullmatch("[a-z]+", status := str(data.get("status"))):
        return f"{status.capitalize()}: {_line({**data, 'status': ''}, style)}."
    members = _members(data, style)
    new = [(name, text) for name, text in members if text not in given or name in _TITLES] or members
    told = [{"yes": name, "no": f"not {name}"}.get(text) or f"the {name} is {text}" for name, text in new]
    text = " and ".join(filter(None, (", ".join(told[:-1]), *told[-1:]))).rstrip(".")
    return f"{text[:1].upper()}{text[1:]}." if text else ""


# Several searches for one question, and fetching the whole text of the best result.


def searches(tool: Tool, args: Mapping[str, Any], question: str, most: int) -> list[dict[str, Any]]:
    """Return the arguments of all searches for a question: the usual one, narrower ones and other places.

    A choice parameter with a default is a place to search; the answer may be in another place.
    """
    narrower, elsewhere = [], []
    for parameter in tool.parameters:
        if parameter.type is not ValueType.CHOICE or parameter.many or parameter.name in args:
            continue
        if "default" not in parameter.schema:
            narrower += [{**args, parameter.name: each} for each in named_choices(parameter, question)]
            continue
        # "My own" things are in the place that the description calls the user's.
        own = [each for each in re.split(r"[,;:.]", parameter.description) if "user" in stems(each)]
        places = [each for each in parameter.choices if each != parameter.schema["default"]]
        places.sort(key=lambda each: (str(each) in " ".join(own)) != is_own(question))
        elsewhere += [{**args, parameter.name: each} for each in places]
    return [dict(args), *narrower, *elsewhere][:most]


def merged(searched: Sequence[Mapping[str, Any]], results: Sequence[Any], question: str) -> Any:
    """Merge the data of several searches: every record once, with the score of its best search.

    A search that was narrowed to something that the question names counts as much as the best search: its
    scores are raised.
    """
    best = [max(map(score_of, records_in(data)), default=0.0) for data in results]
    records: dict[str, Mapping[str, Any]] = {}
    for args, data, own in zip(searched, results, best, strict=True):
        chosen = [each for each in args.values() if isinstance(each, str) and each != question]
        narrowed = any(stems(each.replace("_", " ")) <= stems(question) for each in chosen)
        raised = max(best) / own if own and narrowed else 1.0
        for record in records_in(data):
            key, score = str(record.get("id", len(records))), score_of(record) * raised
            if key not in records or score_of(records[key]) < score:
                records[key] = {**record, "score": score}
    first = next((data for data in results if isinstance(data, Mapping)), {})
    key = next((name for name, value in first.items() if isinstance(value, list)), "results")
    return {**first, key: sorted(records.values(), key=score_of, reverse=True)}


def fetch_record(
    tools: Iterable[Tool], search: Tool, record: Mapping[str, Any]
) -> tuple[Tool, dict[str, Any]] | None:
    """Return the call that fetches a whole record, with a tool that accepts the ids of the search."""
    for tool in tools:
        needed = tool.required
        if tool.writes or tool.confirmed:
            continue
        if len(needed) == 1 and needed[0].type is ValueType.IDENTIFIER and search.id in needed[0].description:
            found = record.get("id")
            return (tool, {needed[0].name: [found] if needed[0].many else found}) if found else None
    return None
