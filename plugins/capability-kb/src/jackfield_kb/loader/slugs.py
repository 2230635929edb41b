"""Slugs for ids and titles, and checks of links."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from pathlib import PurePath
from shlex import quote
from urllib.parse import urlsplit

_LONGEST = 200


def slug(text: str) -> str:
    """Return the words of a text in lower case, in any script, joined by hyphens."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return re.sub(r"[\W_]+", "-", folded).strip("-")[:_LONGEST].strip("-")


def path_slug(relative: PurePath) -> str:
    """Return the slug of a relative path without its suffix: `handbook/holiday-policy`."""
    parts = [slug(part) for part in relative.with_suffix("").parts]
    return "/".join(part or mark(str(relative)) for part in parts)[-_LONGEST:].strip("/")


def mark(text: str) -> str:
    """Return a short stable hash of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:8]


def spoken(stem: str) -> str:
    """Return a title from a slug: `handbook/holiday-policy` becomes `Holiday policy`."""
    words = stem.rpartition("/")[2].replace("-", " ").strip()
    return words[:1].upper() + words[1:]


def legible(path: PurePath) -> str:
    """Return a path for messages; invalid UTF-8 is replaced."""
    return str(path).encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def in_a_command(path: PurePath) -> str:
    """Return the name of a file, quoted for a shell."""
    return quote(legible(PurePath(path.name)))


_SCHEMES = ("http", "https", "mailto")
_LINKEDIN = "linkedin.com"


def is_safe(url: str) -> bool:
    """Return whether a link can only open a web page or an e-mail."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    if parts.scheme.lower() not in _SCHEMES or any(character.isspace() for character in url):
        return False
    return bool(parts.netloc) if parts.scheme.lower() != "mailto" else bool(parts.path)


def linkedin(text: str) -> str | None:
    """Return a LinkedIn address with its scheme; None for any other text."""
    text = text.strip()
    url = text if "://" in text else f"https://{text}"
    try:
        host = (urlsplit(url).hostname or "").lower()
    except ValueError:
        return None
    if is_safe(url) and (host == _LINKEDIN or host.endswith(f".{_LINKEDIN}")):
        return url
    return None
