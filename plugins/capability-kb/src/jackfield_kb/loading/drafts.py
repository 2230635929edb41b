"""From what a document says of itself to a record: its own words first, then the options, then a guess."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from typing import Any

from jackfield_capability_types.knowledge import NAMESPACES, TYPES, Record

from jackfield_kb.loading import naming
from jackfield_kb.loading.problems import UnreadableError

FIELDS = (
    "id",
    "title",
    "text",
    "type",
    "namespace",
    "owner",
    "tags",
    "url",
    "source_type",
    "last_updated",
    "metadata",
)
"""What a document can say of its record; what else it says becomes metadata."""

_TITLE = 200
_DEPTH = 32


@dataclass(frozen=True, slots=True)
class Draft:
    """What a reader found: what was stated, and what can be guessed where nothing was."""

    stated: Mapping[str, Any] = field(default_factory=dict)
    """By the names of `FIELDS`, and anything else."""

    title: str = ""
    text: str = ""
    type: str | None = None
    url: str | None = None
    source_type: str | None = None
    updated: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    line: int | None = None
    note: str = ""
    """What the person who loads it should know, though it is no error."""

    exact: bool = False
    """Whether a stated id is taken as it stands, whatever the type."""

    stem: str | None = None
    """What its id is made of when none is stated; None takes the file's path."""


@dataclass(frozen=True, slots=True)
class Options:
    """What holds for documents that say nothing else."""

    namespace: str | None = None
    owner: str | None = None
    type: str | None = None
    tags: tuple[str, ...] = ()
    """Added to those a document has."""


@dataclass(frozen=True, slots=True)
class Made:
    """A record, and how it came to be what it is."""

    record: Record
    line: int | None
    given_id: bool
    """Whether its id is the document's own, and not made from its name."""

    given_namespace: bool
    """Whether the document or the options say whose it is."""


def make(draft: Draft, options: Options, stem: str, modified: datetime) -> Made:
    """The record of a draft; `UnreadableError` for a statement that makes no sense."""
    stated = draft.stated
    text = _said("text", stated, draft.text)
    guess = draft.title or _first_words(text) or naming.spoken(stem)
    type_, id_ = _kind(stated, draft, options)
    namespace, owner = _whose(stated, options)
    record = Record(
        id=id_ or f"{type_}:{draft.stem or stem}",
        title=_said("title", stated, guess),
        text=text,
        type=type_,
        namespace=namespace,
        owner=owner,
        tags=tuple(dict.fromkeys((*_tags(stated.get("tags")), *options.tags))),
        url=_url(stated.get("url")) or draft.url,
        source_type=_said("source_type", stated, draft.source_type or "document"),
        last_updated=_moment(stated.get("last_updated", draft.updated or modified)),
        metadata=_metadata(stated, draft),
    )
    whose = (stated.get("namespace"), stated.get("owner"), options.namespace, options.owner)
    return Made(record, draft.line, given_id=id_ is not None, given_namespace=any(whose))


def _kind(stated: Mapping[str, Any], draft: Draft, options: Options) -> tuple[str, str | None]:
    """The type, and the id when one is stated; each may tell the other."""
    id_ = _words("id", stated.get("id"))
    head, colon, _ = (id_ or "").partition(":")
    type_ = _words("type", stated.get("type"))
    named = head if colon and head in TYPES else None
    chosen = type_ or named or draft.type or options.type or "doc"
    if chosen not in TYPES:
        raise UnreadableError(f"its type {chosen!r} is none we know", f"say one of {', '.join(TYPES)}")
    if draft.exact:
        return chosen, id_
    if named and named != chosen:
        raise UnreadableError(f"its id {id_!r} and its type {chosen!r} disagree", "change one of them")
    return chosen, id_ if id_ is None or colon else f"{chosen}:{id_}"


def _whose(stated: Mapping[str, Any], options: Options) -> tuple[str, str | None]:
    namespace = _words("namespace", stated.get("namespace"))
    owner = _words("owner", stated.get("owner"))
    if namespace is None:
        namespace = "personal" if owner else options.namespace or ("personal" if options.owner else "studio")
    if namespace not in NAMESPACES:
        raise UnreadableError(
            f"its namespace {namespace!r} is none we know", f"say one of {', '.join(NAMESPACES)}"
        )
    if namespace != "personal":
        if owner:
            raise UnreadableError(
                f"it has the owner {owner!r} and the namespace {namespace!r}",
                "leave the owner out, or say `namespace: personal`",
            )
        return namespace, None
    owner = owner or options.owner
    if not owner:
        raise UnreadableError(
            "it is personal and names no owner", "say `owner: USER`, or load it with --owner USER"
        )
    return namespace, owner


def _metadata(stated: Mapping[str, Any], draft: Draft) -> dict[str, Any]:
    given = stated.get("metadata")
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        raise UnreadableError(
            "its metadata is no table of names and values", "write it as `name: value` pairs"
        )
    others = {name: value for name, value in stated.items() if name not in FIELDS and value not in (None, "")}
    metadata = {str(name): _plain(value) for name, value in {**draft.metadata, **others, **given}.items()}
    if "linkedin" in others:
        metadata["linkedin"] = _linkedin(others["linkedin"])
    return metadata


def _linkedin(value: Any) -> str:
    profile = naming.linkedin(value) if isinstance(value, str) else None
    if profile is None:
        raise UnreadableError(
            f"its linkedin {value!r} is no address on linkedin.com",
            "write the whole address, e.g. https://www.linkedin.com/in/NAME",
        )
    return profile


def _plain(value: Any, depth: int = 0) -> Any:
    """A value as JSON can hold it."""
    if depth > _DEPTH:
        raise UnreadableError(f"its metadata is nested deeper than {_DEPTH} levels", "make it flatter")
    match value:
        case None | bool() | int() | str():
            return value
        case float() if math.isfinite(value):
            return value
        case date() | time():
            return value.isoformat()
        case Mapping():
            return {str(name): _plain(member, depth + 1) for name, member in value.items()}
        case list() | tuple() | set():
            return [_plain(member, depth + 1) for member in value]
    raise UnreadableError(
        f"its metadata holds {str(value)[:40]!r}, which JSON cannot hold", "write it as a text"
    )


def _words(name: str, value: Any) -> str | None:
    """A stated text; numbers count as text, because YAML takes `id: 12` for one."""
    if value is None or value == "":
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, int | float | date) and not isinstance(value, bool):
        return str(value)
    raise UnreadableError(f"its {name} is no text", f'put it into quotation marks, e.g. {name}: "..."')


def _said(name: str, stated: Mapping[str, Any], otherwise: str) -> str:
    """What a document says, be it an empty text, or what is taken when it says nothing."""
    value = stated.get(name)
    return value if isinstance(value, str) else _words(name, value) or otherwise


def _tags(value: Any) -> tuple[str, ...]:
    """Tags as a list, or as one text with commas."""
    if value is None:
        return ()
    if isinstance(value, str):
        return tuple(tag for part in value.split(",") if (tag := part.strip()))
    if isinstance(value, list):
        return tuple(word for member in value if (word := _words("tags", member)))
    raise UnreadableError("its tags are no list of words", "write them as `tags: [one, two]`")


def _url(value: Any) -> str | None:
    url = _words("url", value)
    if url is not None and not naming.is_safe(url):
        raise UnreadableError(
            f"its url {url[:80]!r} is no address of the web or of mail",
            "begin it with https://, http:// or mailto:",
        )
    return url


def _moment(value: Any) -> datetime | None:
    """A stated time; without a zone it is UTC, and a date is the beginning of its day."""
    if isinstance(value, str) and value:
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            raise UnreadableError(
                f"its last_updated {value[:40]!r} is no date",
                "write it as 2026-10-31 or 2026-10-31T09:30:00+01:00",
            ) from None
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime.combine(value, time(), UTC)
    if value is None or value == "":
        return None
    raise UnreadableError(
        "its last_updated is no date", "write it as 2026-10-31 or 2026-10-31T09:30:00+01:00"
    )


def _first_words(text: str) -> str:
    from textwrap import shorten

    return shorten(text[: _TITLE * 4], 80, placeholder=" ...") if text.strip() else ""
