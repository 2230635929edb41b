"""A fetched response and the kinds of content that can be read."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

_PDF = b"%PDF-"
_BEGINNING = 1024


class ContentKind(StrEnum):
    """The kind of a response body, which decides how it is read."""

    HTML = "html"
    TEXT = "text"
    PDF = "pdf"
    UNSAID = "unsaid"
    """The server gives no type, so the first bytes decide."""


_KINDS = {
    "": ContentKind.UNSAID,
    "application/octet-stream": ContentKind.UNSAID,
    "binary/octet-stream": ContentKind.UNSAID,
    "text/html": ContentKind.HTML,
    "application/xhtml+xml": ContentKind.HTML,
    "application/pdf": ContentKind.PDF,
    "application/x-pdf": ContentKind.PDF,
    "application/json": ContentKind.TEXT,
    "application/x-ndjson": ContentKind.TEXT,
    "application/xml": ContentKind.TEXT,
    "application/javascript": ContentKind.TEXT,
    "application/yaml": ContentKind.TEXT,
    "application/toml": ContentKind.TEXT,
}


def content_kind(content_type: str) -> ContentKind | None:
    """Return the kind for a Content-Type header; None if it cannot be read as text."""
    name = media_type(content_type)
    if name.startswith("text/") or name.endswith(("+json", "+xml")):
        return _KINDS.get(name, ContentKind.TEXT)
    return _KINDS.get(name)


def media_type(content_type: str) -> str:
    """Return the media type without its parameters."""
    return content_type.partition(";")[0].strip().lower()


def look(content: bytes) -> ContentKind | None:
    """Guess the kind of a body from its first bytes; None if it is not text."""
    beginning = content[:_BEGINNING]
    if beginning.startswith(_PDF):
        return ContentKind.PDF
    start = beginning.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype html", b"<html", b"<head", b"<body")):
        return ContentKind.HTML
    marked = beginning.startswith((b"\xff\xfe", b"\xfe\xff"))
    return ContentKind.TEXT if marked or b"\0" not in beginning else None


@dataclass(frozen=True, slots=True)
class FetchedResponse:
    """The body of a response before it is read."""

    url: str
    content_type: str
    kind: ContentKind
    content: bytes
    cut: bool
