"""A fetched response and the kinds of content that can be read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

_PDF = b"%PDF-"
_BEGINNING = 1024


class Kind(StrEnum):
    """How bytes become text."""

    HTML = "html"
    TEXT = "text"
    PDF = "pdf"
    UNSAID = "unsaid"
    """The server does not say; the bytes have to."""


_KINDS = {
    "": Kind.UNSAID,
    "application/octet-stream": Kind.UNSAID,
    "binary/octet-stream": Kind.UNSAID,
    "text/html": Kind.HTML,
    "application/xhtml+xml": Kind.HTML,
    "application/pdf": Kind.PDF,
    "application/x-pdf": Kind.PDF,
    "application/json": Kind.TEXT,
    "application/x-ndjson": Kind.TEXT,
    "application/xml": Kind.TEXT,
    "application/javascript": Kind.TEXT,
    "application/yaml": Kind.TEXT,
    "application/toml": Kind.TEXT,
}


def kind_of(content_type: str) -> Kind | None:
    """How to read what a server calls so; nothing when it cannot be read."""
    name = media_type(content_type)
    if name.startswith("text/") or name.endswith(("+json", "+xml")):
        return _KINDS.get(name, Kind.TEXT)
    return _KINDS.get(name)


def media_type(content_type: str) -> str:
    """The name without what is said beside it."""
    return content_type.partition(";")[0].strip().lower()


def look(content: bytes) -> Kind | None:
    """What bytes are that nobody has named; nothing when they are no text."""
    beginning = content[:_BEGINNING]
    if beginning.startswith(_PDF):
        return Kind.PDF
    start = beginning.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype html", b"<html", b"<head", b"<body")):
        return Kind.HTML
    marked = beginning.startswith((b"\xff\xfe", b"\xfe\xff"))
    return Kind.TEXT if marked or b"\0" not in beginning else None


@dataclass(frozen=True, slots=True)
class Answer:
    """The bytes of a page, and what is known about them."""

    url: str
    content_type: str
    kind: Kind
    content: bytes
    cut: bool
