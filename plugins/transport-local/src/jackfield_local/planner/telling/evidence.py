"""Records as evidence: the sentences that answer, each with its source; nothing that does not stand there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from jackfield_local.language.sentences import answering, plain, untitled
from jackfield_local.planner.telling.told import Manners, Quoted, Told

UNCERTAIN = 0.2
"""A score below which a record hardly has to do with the question."""

_BODY = ("text", "full_text", "snippet", "summary", "description", "content")
_FULL = ("text", "full_text")
_LONGEST = 3000
_IN_FULL = re.compile(r"\b(?:whole|full|entire|complete|everything)\b", re.IGNORECASE)
_SENTENCES = {"text": 3, "voice": 2}
_EXCERPT = 8
_OTHERS = 3
_HALF_AS_GOOD = 0.5


def is_evidence(items: Sequence[Any]) -> bool:
    """Whether a list holds records that can be cited."""
    return bool(items) and all(
        isinstance(each, Mapping) and "id" in each and ("title" in each or "name" in each) for each in items
    )


def tell_evidence(items: Sequence[Mapping[str, Any]], question: str, manners: Manners) -> Told:
    """The best record's answer, and what else there is."""
    score = items[0].get("score")
    best = items[0]
    if isinstance(score, (int, float)) and score < UNCERTAIN:
        return Told(f"I found nothing certain about that. The nearest is {_cited(best, manners)}.", items)
    whole = _whole(best, question, manners)
    quoted = Quoted(whole, plain(str(best.get("title") or best.get("name"))), "") if whole else None
    quoted = quoted or _quoted(best, question, manners)
    lines = [_answer(best, quoted, manners)]
    # The list is cut where it gets worse, so that places in it stay places among the results.
    near = [*takewhile(lambda each: _near(each, score), items[1:])]
    others = [_cited(each, manners) for each in near[:_OTHERS]]
    if others:
        lines.append(_also(others, len(near), manners))
    # What is shown whole is put in nobody's words.
    return Told(manners.gap.join(lines), items, quoted if quoted.said and not whole else None)


def _near(item: Mapping[str, Any], best: Any) -> bool:
    """Whether a record fits about as well as the best one; without scores nobody knows better."""
    score = item.get("score")
    if not (isinstance(score, (int, float)) and isinstance(best, (int, float))):
        return True
    return score >= best * _HALF_AS_GOOD


def _whole(item: Mapping[str, Any], question: str, manners: Manners) -> str:
    """The text of a record as it stands, where all of it was asked for and can be read."""
    text = next((str(item[key]) for key in _FULL if item.get(key)), "")
    if manners.spoken or not text or not _IN_FULL.search(question):
        return ""
    title = plain(str(item.get("title") or item.get("name")))
    first, _, rest = text.strip().partition("\n")
    shown = rest.strip() if rest.strip() and plain(first) == title else text.strip()
    return (
        shown
        if len(shown) <= _LONGEST
        else f"{shown[:_LONGEST].rsplit(' ', 1)[0]} ...\n\nThere is more of it."
    )


def _quoted(item: Mapping[str, Any], question: str, manners: Manners) -> Quoted:
    title = plain(str(item.get("title") or item.get("name")))
    body = untitled(next((str(item[key]) for key in _BODY if item.get(key)), ""), title)
    said = answering(question, body, _SENTENCES[manners.mode], manners.embed)
    return Quoted(said, title, answering(question, body, _EXCERPT, manners.embed))


def _answer(item: Mapping[str, Any], quoted: Quoted, manners: Manners) -> str:
    said, title = quoted.said, quoted.title
    details = _details(item, manners)
    if manners.spoken:
        return f"{said} That is from {title}." if said else f"I found {title}{details}."
    source = f"{title} [{item['id']}]" + (f", {item['url']}" if item.get("url") else "")
    return f"{said}\n\nSource: {source}" if said else f"I found {source}{details}."


def _details(item: Mapping[str, Any], manners: Manners) -> str:
    """What else a record says in single words, such as a role; links only where they can be read."""
    hidden = {"id", "title", "name", "score", "type", "matched", "source_type", "last_updated", "url", "rank"}
    told = [
        f"{key.replace('_', ' ')} {value}"
        for key, value in item.items()
        if key not in hidden and isinstance(value, str) and value and not (manners.spoken and "://" in value)
    ]
    return f" ({', '.join(told)})" if told else ""


def _cited(item: Mapping[str, Any], manners: Manners) -> str:
    title = plain(str(item.get("title") or item.get("name")))
    if manners.spoken:
        return title
    return f"{title} [{item['id']}]{_details({k: v for k, v in item.items() if k not in _BODY}, manners)}"


def _also(others: Sequence[str], count: int, manners: Manners) -> str:
    if manners.spoken:
        return (
            f"There is also {others[0]}." if count == 1 else f"There are {count} more, such as {others[0]}."
        )
    listed = "\n".join(f"{place}. {each}" for place, each in enumerate(others, start=2))
    more = f"\n({count - len(others)} more)" if count > len(others) else ""
    return f"Also found:\n{listed}{more}"
