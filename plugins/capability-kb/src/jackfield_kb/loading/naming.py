"""Ids and titles that are made from the names of files."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from pathlib import PurePath
from shlex import quote

_LONGEST = 200


def slug(text: str) -> str:
    """Letters and digits of any script in small letters, joined by hyphens."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return re.sub(r"[\W_]+", "-", folded).strip("-")[:_LONGEST].strip("-")


def path_slug(relative: PurePath) -> str:
    """The path of a file below its root, without its ending: `handbook/holiday-policy`."""
    parts = [slug(part) for part in relative.with_suffix("").parts]
    return "/".join(part or mark(str(relative)) for part in parts)[-_LONGEST:].strip("/")


def mark(text: str) -> str:
    """A few characters that stand for a longer text, the same wherever they are made."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:8]


def spoken(stem: str) -> str:
    """A title from a slug: `handbook/holiday-policy` becomes `Holiday policy`."""
    words = stem.rpartition("/")[2].replace("-", " ").strip()
    return words[:1].upper() + words[1:]


def legible(path: PurePath) -> str:
    """A path for people; a name that is no UTF-8 is shown as far as it can be read."""
    return str(path).encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def in_a_command(path: PurePath) -> str:
    """The name of a file as one would type it into a shell."""
    return quote(legible(PurePath(path.name)))
