"""Turns a draft into a record: stated fields first, then the options, then guesses. Also exports records."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from typing import Any

from jackfield_capability_types.knowledge import NAMESPACES, TYPES, Record

from jackfield_kb.loader import slugs
from jackfield_kb.loader.documents import UnreadableFileError

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
"""The fields that a document can state; other fields become metadata."""

_TITLE = 200
_DEPTH = 32


@dataclass(frozen=True, slots=True)
class RecordDraft:
    """The result of a format reader: stated fields, and guesses for the others."""

    stated: Mapping[str, Any] = field(default_factory=dict)
    """The stated fields by name; names outside `FIELDS` are allowed."""

    title: str = ""
    text: str = ""
    type: str | None = None
    url: str | None = None
    source_type: str | None = None
    updated: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    line: int | None = None
    note: str = ""
    """A note for the user that is not an error."""

    exact: bool = False
    """True if a stated id is used unchanged, regardless of the type."""

    stem: str | None = None
    """The base of a generated id; None uses the path of the file."""


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """Defaults for documents that do not state these fields."""

    namespace: str | None = None
    owner: str | None = None
    type: str | None = None
    tags: tuple[str, ...] = ()
    """Tags added to those of the document."""


@dataclass(frozen=True, slots=True)
class LoadedRecord:
    """A record, and which of its fields were stated."""

    record: Record
    line: int | None
    given_id: bool
    """True if the document states the id."""

    given_namespace: bool
    """True if the document or the options state a namespace or owner."""


def make(draft: RecordDraft, options: LoadOptions, stem: str, modified: datetime) -> LoadedRecord:
    """Build the record of a draft; raises `UnreadableFileError` for an invalid field."""
    stated = draft.stated
    text = _said("text", stated, draft.text)
    guess = draft.title or _first_words(text) or slugs.spoken(stem)
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
    return LoadedRecord(record, draft.line, given_id=id_ is not None, given_namespace=any(whose))


def _kind(stated: Mapping[str, Any], draft: RecordDraft, options: LoadOptions) -> tuple[str, str | None]:
    """Return the type and the stated id; a stated id can determine the type."""
    id_ = _words("id", stated.get("id"))
    head, colon, _ = (id_ or "").partition(":")
    type_ = _words("type", stated.get("type"))
    named = head if colon and head in TYPES else None
    chosen = type_ or named or draft.type or options.type or "doc"
    if chosen not in TYPES:
        raise UnreadableFileError(f"its type {chosen!r} is unknown", f"use one of {', '.join(TYPES)}")
    if draft.exact:
        return chosen, id_
    if named and named != chosen:
        raise UnreadableFileError(f"its id {id_!r} and its type {chosen!r} disagree", "change one of them")
    return chosen, id_ if id_ is None or colon else f"{chosen}:{id_}"


def _whose(stated: Mapping[str, Any], options: LoadOptions) -> tuple[str, str | None]:
    namespace = _words("namespace", stated.get("namespace"))
    owner = _words("owner", stated.get("owner"))
    if namespace is None:
        namespace = "personal" if owner else options.namespace or ("personal" if options.owner else "studio")
    if namespace not in NAMESPACES:
        raise UnreadableFileError(
            f"its namespace {namespace!r} is unknown", f"use one of {', '.join(NAMESPACES)}"
        )
    if namespace != "personal":
        if owner:
            raise UnreadableFileError(
                f"it has the owner {owner!r} but the namespace {namespace!r}",
                "remove the owner, or set `namespace: personal`",
            )
        return namespace, None
    owner = owner or options.owner
    if not owner:
        raise UnreadableFileError(
            "it is personal but has no owner", "set `owner: USER`, or load it with --owner USER"
        )
    return namespace, owner


def _metadata(stated: Mapping[str, Any], draft: RecordDraft) -> dict[str, Any]:
    given = stated.get("metadata")
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        raise UnreadableFileError("its metadata is not a mapping", "write it as `name: value` pairs")
    others = {name: value for name, value in stated.items() if name not in FIELDS and value not in (None, "")}
    metadata = {str(name): _plain(value) for name, value in {**draft.metadata, **others, **given}.items()}
    if "linkedin" in others:
        metadata["linkedin"] = _linkedin(others["linkedin"])
    return metadata


def _linkedin(value: Any) -> str:
    profile = slugs.linkedin(value) if isinstance(value, str) else None
    if profile is None:
        raise UnreadableFileError(
            f"its linkedin {value!r} is not an address on linkedin.com",
            "write the full address, e.g. https://www.linkedin.com/in/NAME",
        )
    return profile


def _plain(value: Any, depth: int = 0) -> Any:
    """Convert a value to plain JSON values."""
    if depth > _DEPTH:
        raise UnreadableFileError(f"its metadata is nested deeper than {_DEPTH} levels", "flatten it")
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
    raise UnreadableFileError(
        f"its metadata contains {str(value)[:40]!r}, which is not JSON", "write it as text"
    )


def _words(name: str, value: Any) -> str | None:
    """Return a stated value as text; numbers are accepted, because YAML parses `id: 12` as a number."""
    if value is None or value == "":
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, int | float | date) and not isinstance(value, bool):
        return str(value)
    raise UnreadableFileError(f"its {name} is not text", f'put it in quotation marks, e.g. {name}: "..."')


def _said(name: str, stated: Mapping[str, Any], otherwise: str) -> str:
    """Return the stated text, even if it is empty, or else the default."""
    value = stated.get(name)
    return value if isinstance(value, str) else _words(name, value) or otherwise


def _tags(value: Any) -> tuple[str, ...]:
    """Parse tags from a list or a comma-separated text."""
    if value is None:
        return ()
    if isinstance(value, str):
        return tuple(tag for part in value.split(",") if (tag := part.strip()))
    if isinstance(value, list):
        return tuple(word for member in value if (word := _words("tags", member)))
    raise UnreadableFileError("its tags are not a list of words", "write them as `tags: [one, two]`")


def _url(value: Any) -> str | None:
    url = _words("url", value)
    if url is not None and not slugs.is_safe(url):
        raise UnreadableFileError(
            f"its url {url[:80]!r} is not a web or mail address",
            "start it with https://, http:// or mailto:",
        )
    return url


def _moment(value: Any) -> datetime | None:
    """Parse a stated time; the default time zone is UTC, and a date alone means the start of that day."""
    if isinstance(value, str) and value:
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            raise UnreadableFileError(
                f"its last_updated {value[:40]!r} is not a date",
                "write it as 2026-10-31 or 2026-10-31T09:30:00+01:00",
            ) from None
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime.combine(value, time(), UTC)
    if value is None or value == "":
        return None
    raise UnreadableFileError(
        "its last_updated is not a date", "write it as 2026-10-31 or 2026-10-31T09:30:00+01:00"
    )


def _first_words(text: str) -> str:
    from textwrap import shorten

    return shorten(text[: _TITLE * 4], 80, placeholder=" ...") if text.strip() else ""


def as_json(record: Record) -> dict[str, Any]:
    """Return a record as JSON values with every field, so that loading it involves no guesses."""
    fields = {name: getattr(record, name) for name in FIELDS}
    moment = record.last_updated
    return fields | {
        "tags": list(record.tags),
        "last_updated": None if moment is None else moment.isoformat(),
        "metadata": dict(record.metadata),
    }


def to_line(record: Record) -> str:
    """Return a record as one line of JSON."""
    return json.dumps(as_json(record), ensure_ascii=False) + "\n"
