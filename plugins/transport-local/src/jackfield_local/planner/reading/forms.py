"""What has to be written exactly: a path, a command, a pattern, a text as it stands in a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum


class Form(Enum):
    """How an exact value looks, by which it is told from prose."""

    PATH = "a path"
    COMMAND = "a command"
    GLOB = "a pattern of paths"
    REGEX = "a pattern of text"
    VERBATIM = "a text, character by character"


_LAST_WORDS = {
    **dict.fromkeys(
        ("path", "paths", "file", "files", "filename", "filepath", "folder", "directory", "dir", "cwd"),
        Form.PATH,
    ),
    **dict.fromkeys(("command", "commands", "cmd"), Form.COMMAND),
    **dict.fromkeys(("glob", "globs"), Form.GLOB),
    **dict.fromkeys(("regex", "regexp"), Form.REGEX),
    **dict.fromkeys(("content", "contents", "replacement"), Form.VERBATIM),
}
_PATTERNS = frozenset(("pattern", "patterns"))
_BEFORE_AND_AFTER = frozenset(("old", "new", "exact", "verbatim"))
_TEXTS = frozenset(("text", "string", "str", "content", "line", "lines", "value", "code"))
_OF_PATHS = re.compile(r"\b(?:glob|paths?|files?|folders?)\b|\*", re.IGNORECASE)
_OF_TEXT = re.compile(r"\bregular expressions?\b|\bregex", re.IGNORECASE)
_DESCRIBED = (
    (
        re.compile(r"(?:the |a )?(?:(?:relative|absolute|full) )?(?:path|file ?name)\b", re.IGNORECASE),
        Form.PATH,
    ),
    (re.compile(r"(?:the |a )?name of (?:the|a) (?:file|folder|directory)\b", re.IGNORECASE), Form.PATH),
    (re.compile(r"(?:the |a )?(?:shell|bash) (?:command|script)\b", re.IGNORECASE), Form.COMMAND),
    (re.compile(r"(?:the |a )?regular expression\b", re.IGNORECASE), Form.REGEX),
    (re.compile(r"(?:the |a )?glob\b", re.IGNORECASE), Form.GLOB),
    (re.compile(r"[^.]*\bexactly as (?:it|they) (?:is|are|stands?)\b", re.IGNORECASE), Form.VERBATIM),
)


def form_of(parts: Sequence[str], described: str) -> Form | None:
    """The form of a text argument, by the words of its name and its description; nothing for prose."""
    if not parts:
        return None
    if parts[-1] in _PATTERNS:
        # What is matched against text is looked for first, as its description may also speak of files.
        return Form.GLOB if _OF_PATHS.search(described) and not _OF_TEXT.search(described) else Form.REGEX
    if parts[-1] in _TEXTS and _BEFORE_AND_AFTER & set(parts[:-1]):
        return Form.VERBATIM
    named = _LAST_WORDS.get(parts[-1])
    return named or next((form for sign, form in _DESCRIBED if sign.match(described)), None)
