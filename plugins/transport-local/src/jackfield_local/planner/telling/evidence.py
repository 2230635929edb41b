"""Records as evidence: the sentences that answer, each with its source; nothing that does not stand there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jackfield_local.planner.telling.sentences import answering, plain
from jackfield_local.planner.telling.told import Manners, Quoted, Told

UNCERTAIN = 0.2
"""A score below which a record hardly has to do with the question."""

_BODY = ("text", "full_text", "snippet", "summary", "description", "content")
_SENTENCES = {"text": 3, "voice": 2}
_EXCERPT = 8
_OTHERS = 4


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
        near = _cited(best, manners)
        return Told(f"I found nothing certain about that. The nearest is {near}.", items)
    quoted = _quoted(best, question, manners)
    lines = [_answer(best, quoted, manners)]
    others = [_cited(each, manners) for each in items[1 : _OTHERS + 1]]
    if others:
        lines.append(_also(others, len(items) - 1, manners))
    return Told(("\n\n" if not manners.spoken else " ").join(lines), items, quoted if quoted.said else None)


def _quoted(item: Mapping[str, Any], question: str, manners: Manners) -> Quoted:
    body = next((str(item[key]) for key in _BODY if item.get(key)), "")
    said = answering(question, body, _SENTENCES[manners.mode], manners.embed)
    excerpt = answering(question, body, _EXCERPT, manners.embed)
    return Quoted(said, plain(str(item.get("title") or item.get("name"))), excerpt)


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
