"""Results in words, from their data alone: the sentence that answers, lists as lists, errors."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

import numpy as np
from jackfield_embeddings import Vectors

from jackfield_local.agent.parameters import CODES, Parameter
from jackfield_local.agent.speech import Embed
from jackfield_local.language.moments import readable, span
from jackfield_local.language.questions import asks_for_facts, is_question
from jackfield_local.language.sentences import (
    MOST_SENTENCES,
    list_items,
    plain,
    plain_item,
    sentences,
    untitled,
)
from jackfield_local.language.words import content, name_words, spoken_name, words

_EVIDENCE = 12
"""So many records are searched for the sentence that answers."""

_WORDS, _FITS, _RANK = 0.5, 0.15, 0.3
"""What a sentence gains beside its likeness: by the question's words, by a number or a name where one is
asked for, and by the rank of its record in the search."""

_GOOD, _AS_GOOD = 0.6, 0.8
"""A second sentence is told that is at least so good as the first; what is heard has to be better."""

_LISTED = 10
_SPOKEN_LISTED = 3
_HEARD = 40
"""Words of an answer that can be listened to, from which on one sentence has to do."""

_LONGEST_LINE = 200
_PASSAGE = 1200
"""Characters of a long text that are shown."""

_MACHINES = frozenset(
    ("id", "ids", "uid", "uuid", "hash", "etag", "token", "cursor", "epoch", "score", "iso", "ms")
)
_KINDS = ("type", "kind", "category")
_TITLES = ("title", "name", "subject", "label")
_ASKED_FOR = (
    (
        re.compile(r"\b(?:how (?:much|many|long|old|often|far)|what time|when)\b", re.IGNORECASE),
        re.compile(r"\d"),
    ),
    (re.compile(r"\bwho(?:m|se)?\b", re.IGNORECASE), re.compile(r"(?<=[\w,;] )[A-Z]\w+")),
)
"""A question for a number is answered by a sentence with a number, one for a person by one with a name."""


@dataclass(frozen=True)
class Manner:
    """How answers are given in a session."""

    spoken: bool
    zone: tzinfo
    embed: Embed

    @property
    def gap(self) -> str:
        """What separates two parts of an answer."""
        return " " if self.spoken else "\n\n"


def tell_result(data: Any, question: str, manner: Manner) -> str:
    """A result in words."""
    if isinstance(data, Mapping):
        told = _object(data, question, manner)
    elif isinstance(data, list):
        told = _list("", data, question, manner)
    else:
        told = "" if data is None else readable(str(data), manner.zone)
    return told.strip() or "Done."


def tell_failure(error: Mapping[str, Any]) -> str:
    """What happened and what to do."""
    text = str(error.get("message") or "The call failed.").strip()
    told = text if text.endswith((".", "!", "?")) else f"{text}."
    if error.get("partialSideEffects"):
        told += " It is not known whether it took effect."
    return f"{told} {error['suggestion']}" if error.get("suggestion") else told


def ask_for(parameter: Parameter, unusable: str = "") -> str:
    """A request for one value, from its description."""
    if unusable:
        return f"What is the {parameter.kind.value} of {unusable}?"
    told = re.sub(r"\bthe user('s)?\b", lambda match: "your" if match.group(1) else "you", parameter.summary)
    told = re.split(r", |: ", told, maxsplit=1)[0]
    if parameter.kind in CODES:
        told = re.sub(r"^.*?\bcode of\s+", "", told)
    if not re.match(r"(?:how|when|where|who|whom|whose|which|what|whether|the|an?)\b", told, re.IGNORECASE):
        told = f"the {parameter.spoken} ({told})" if told else f"the {parameter.spoken}"
    return f"Please tell me {told[:1].lower()}{told[1:]}{_options(parameter)}."


def records_in(data: Any) -> tuple[Mapping[str, Any], ...]:
    """The records of a result, to which the user can refer afterwards."""
    if isinstance(data, Mapping):
        data = next((value for value in data.values() if _is_records(value)), [data] if "id" in data else [])
    return tuple(data[:_LISTED]) if _is_records(data) else ()


def describe_values(args: Mapping[str, Any], manner: Manner) -> str:
    """All arguments as a person reads them: what is agreed to has to be seen."""
    return ", ".join(f"{spoken_name(name)}: {_line_of(value, manner)}" for name, value in args.items())


def title_of(record: Mapping[str, Any]) -> str:
    """What a record is called."""
    return next((plain(str(record[key])) for key in _TITLES if record.get(key)), "")


def _options(parameter: Parameter) -> str:
    if parameter.choices:
        return f" ({', '.join(map(str, parameter.choices))})"
    low, high = parameter.schema.get("minimum"), parameter.schema.get("maximum")
    return f" (from {low} to {high})" if low is not None and high is not None else ""


def _is_records(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, Mapping) for each in value)


def _object(data: Mapping[str, Any], question: str, manner: Manner) -> str:
    if isinstance(data.get("say"), str) and data["say"].strip():
        return str(data["say"])
    own = data.get("text")
    if isinstance(own, str) and own.strip() and len(own.split()) <= 2:
        rest = _values({key: value for key, value in data.items() if key != "text"}, manner)
        return f"{own} ({rest.rstrip('.')})." if rest and not manner.spoken else own
    parts = []
    lists = {key: value for key, value in data.items() if _is_records(value)}
    empty = [key for key, value in data.items() if value == []]
    passage = _passage(data, question, manner)
    if passage:
        parts.append(passage)
    parts += [_list(key, value, question, manner) for key, value in lists.items()]
    if not parts:
        plain_values = {key: value for key, value in data.items() if key not in empty}
        parts.append(_values(plain_values, manner))
        if not parts[0] and empty:
            return f"Nothing was found: no {', '.join(spoken_name(key) for key in empty)}."
    else:
        parts += [_line_of(data[key], manner) for key in data if _is_remark(key, data[key])]
    return manner.gap.join(filter(None, parts))


def _is_remark(key: str, value: Any) -> bool:
    """Sentences that a tool adds to its result for the reader."""
    of_text = (
        isinstance(value, list) and value and all(isinstance(each, str) and " " in each for each in value)
    )
    return bool(of_text) and key not in _TITLES


def _passage(data: Mapping[str, Any], question: str, manner: Manner) -> str:
    """The long text of a result, or the sentence of it that answers; empty when it has none."""
    texts = {key: value for key, value in data.items() if isinstance(value, str) and len(value.split()) > 2}
    texts = {key: value for key, value in texts.items() if key not in _TITLES}
    if not texts:
        return ""
    body = max(texts.values(), key=len)
    if len(sentences(body)) > 2 and asks_for_facts(question):
        return _evidence([{**data, "text": body}], question, manner)
    return readable(
        body if len(body) <= _PASSAGE else f"{body[:_PASSAGE].rsplit(' ', 1)[0]} ...", manner.zone
    )


def _shortened(text: str) -> str:
    return text if len(text) <= _PASSAGE else f"{text[:_PASSAGE].rsplit(' ', 1)[0]} ..."


def _list(key: str, items: Sequence[Any], question: str, manner: Manner) -> str:
    if not items:
        return "Nothing was found."
    if _is_records(list(items)) and all(_body(each) and title_of(each) for each in items):
        return _evidence(items, question, manner)
    most = _SPOKEN_LISTED if manner.spoken else _LISTED
    lines = [line for each in items[:most] if (line := _line_of(each, manner))]
    more = len(items) - most
    label = spoken_name(key).capitalize() if key else ""
    if manner.spoken:
        told = "; ".join(lines) + (f", and {more} more" if more > 0 else "")
        return f"{label}: {told}." if label else f"{told}."
    listed = "\n".join(f"{place}. {line}" for place, line in enumerate(lines, 1))
    return "\n".join(
        filter(None, (f"{label}:" if label else "", listed, f"({more} more)" if more > 0 else ""))
    )


def _body(record: Mapping[str, Any]) -> str:
    """The text of a record that is evidence: its longest one of several words."""
    texts = [str(value) for key, value in record.items() if isinstance(value, str) and key not in _TITLES]
    longest = max(texts, key=len, default="")
    return longest if len(longest.split()) > 4 else ""


def _evidence(items: Sequence[Mapping[str, Any]], question: str, manner: Manner) -> str:
    if len(items) == 1 and not asks_for_facts(question) and not manner.spoken:
        return f"{_shortened(_body(items[0]))}{_source(title_of(items[0]), items[0], manner)}"
    best = best_sentences(question, items[:_EVIDENCE], manner)
    if not best:
        return "; ".join(title_of(each) for each in items[:_LISTED])
    place = best[0][0]
    told = "\n".join(_steps(_body(items[place]), best, manner)) or " ".join(sentence for _, sentence in best)
    answer = f"{told}{_source(title_of(items[place]), items[place], manner)}"
    others = [each for number, each in enumerate(items[:_LISTED]) if number != place]
    if manner.spoken or not others:
        return answer
    listed = "\n".join(f"- {title_of(each)}{_mark(each)}" for each in others)
    return f"{answer}\n\nAlso found:\n{listed}"


def _steps(body: str, best: Sequence[tuple[int, str]], manner: Manner) -> list[str]:
    """The whole list that a sentence is an item of; nothing where it is none, or would have to be heard."""
    lines = [] if manner.spoken else [plain_item(each) for each in list_items(body)]
    return lines[:_LISTED] if any(sentence in line for _, sentence in best for line in lines) else []


def best_record(
    question: str, records: Sequence[Mapping[str, Any]], manner: Manner
) -> Mapping[str, Any] | None:
    """The record from which a question is answered."""
    best = best_sentences(question, records[:_EVIDENCE], manner)
    return records[best[0][0]] if best else None


def is_cut_off(record: Mapping[str, Any]) -> bool:
    """Whether the text of a record is only a part of it."""
    return _body(record).rstrip().endswith(("\u2026", "...")) or _body(record).startswith("\u2026")


def _source(title: str, record: Mapping[str, Any], manner: Manner) -> str:
    named = title or str(record.get("path") or record.get("url") or "")
    if not named:
        return ""
    return f" That is from {named}." if manner.spoken else f"\n\nSource: {named}{_mark(record)}"


def _mark(record: Mapping[str, Any]) -> str:
    return f" [{record['id']}]" if isinstance(record.get("id"), str) else ""


def best_sentences(
    question: str, items: Sequence[Mapping[str, Any]], manner: Manner
) -> list[tuple[int, str]]:
    """The sentences of one record that answer a question best, in their order, each with its place."""
    found = [
        (place, sentence)
        for place, item in enumerate(items)
        for each in _whole_sentences(_body(item), title_of(item))[:MOST_SENTENCES]
        if len(sentence := plain(each)) > 2 and not _asks_the_same(sentence, question)
    ]
    if not found:
        return []
    near = manner.embed([sentence for _, sentence in found]) @ manner.embed([question or " "])[0]
    wanted = [shape for sign, shape in _ASKED_FOR if sign.search(question)]
    fits = np.array([all(shape.search(sentence) is not None for shape in wanted) for _, sentence in found])
    known = _shared_words(question, found, items)
    score = near + _WORDS * known + (_FITS * fits if wanted else 0.0) + _RANK * _ranks(found, items)
    first = int(np.argmax(score))
    same = [number for number, (place, _) in enumerate(found) if place == found[first][0]]
    kept = sorted(sorted(same, key=lambda number: -score[number])[:2])
    least = (_AS_GOOD if manner.spoken else _GOOD) * score[first]
    kept = [number for number in kept if score[number] >= least] or [first]
    heard = sum(len(found[number][1].split()) for number in kept)
    return [found[number] for number in kept] if heard <= _HEARD or not manner.spoken else [found[first]]


def _whole_sentences(body: str, title: str) -> list[str]:
    """The sentences of a text, without those that a search has cut through unless there are no others."""
    found = sentences(untitled(body.removeprefix("\u2026"), title))
    begins = 1 if body.startswith("\u2026") and found and found[0][:1].islower() else 0
    ends = len(found) - 1 if body.endswith(("\u2026", "...")) else len(found)
    return found[begins:ends] or found


def _asks_the_same(sentence: str, question: str) -> bool:
    """Whether a sentence only repeats a question, as a list of questions to ask does."""
    asked = " ".join(words(question))
    return sentence.endswith("?") or (is_question(question) and asked in " ".join(words(sentence)))


def _shared_words(
    question: str, found: Sequence[tuple[int, str]], items: Sequence[Mapping[str, Any]]
) -> Vectors:
    """How much of a question each sentence has, with its record's title and kind; rare words count more."""
    asked = sorted(set(content(question)))
    about = [set(content(" ".join(str(each.get(key, "")) for key in (*_TITLES, *_KINDS)))) for each in items]
    texts = [set(content(sentence)) | about[place] for place, sentence in found]
    rarity = {word: 1 / (1 + sum(word in text for text in texts)) for word in asked}
    total = sum(rarity.values()) or 1.0
    shares = [sum(rarity[word] for word in asked if word in text) / total for text in texts]
    return np.array(shares, np.float32)


def score_of(record: Mapping[str, Any]) -> float:
    """How well the search thinks that a record fits; 0 where it does not say."""
    score = record.get("score")
    return float(score) if isinstance(score, int | float) else 0.0


def _ranks(found: Sequence[tuple[int, str]], items: Sequence[Mapping[str, Any]]) -> Vectors:
    """How well the search itself thinks that the record of each sentence fits, from 0 to 1."""
    scores = [score_of(each) for each in items]
    if max(scores) > 0:
        share = [each / max(scores) for each in scores]
    else:
        share = [1 - place / len(items) for place in range(len(items))]
    return np.array([share[place] for place, _ in found], np.float32)


def _line_of(value: Any, manner: Manner) -> str:
    if isinstance(value, Mapping):
        title = title_of(value)
        start, end = value.get("start"), value.get("end")
        if isinstance(start, str) and isinstance(end, str):
            value = {key: each for key, each in value.items() if key not in ("start", "end")}
            title = ", ".join(filter(None, (title, span(start, end, manner.zone))))
        rest = _values({key: each for key, each in value.items() if key not in _TITLES}, manner)
        return " - ".join(filter(None, (title, rest.rstrip("."))))[:_LONGEST_LINE]
    if isinstance(value, list):
        return "; ".join(filter(None, (_line_of(each, manner) for each in value[:_LISTED])))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else readable(str(value), manner.zone)


def _values(data: Mapping[str, Any], manner: Manner) -> str:
    """The members of an object that people read, as "name: value"."""
    told = [
        f"{spoken_name(key)}: {text}"
        for key, value in data.items()
        if not _MACHINES & set(name_words(key)) and (text := _line_of(value, manner))
    ]
    text = ", ".join(told).rstrip(".")
    return f"{text[:1].upper()}{text[1:]}." if text else ""
