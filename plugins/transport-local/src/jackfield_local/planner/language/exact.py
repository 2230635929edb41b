"""Words that are no prose: paths, patterns and commands, as people put them into a sentence."""

from __future__ import annotations

import re

from jackfield_local.language.addresses import Piece
from jackfield_local.language.spans import Span

LONGEST_COMMAND = 4000
"""Characters beyond which nothing is taken for a command."""

_TOKEN = re.compile(r"\S+")
_ENDED = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,7}")
_NAME = re.compile(r"(?:[\w~@+-][\w.~@+-]*)?\.[A-Za-z][\w-]{0,15}")
_BELOW = re.compile(r"[\w.~@+-]*(?:[/\\][\w.~@+-]*)+")
_PROSE = frozenset(
    ("e.g", "i.e", "a.m", "p.m", "and/or", "he/she", "his/her", "either/or", "yes/no", "n/a", "w/o")
)
_SITES = (".com", ".org", ".net")
_WILD = re.compile(r"\*|\[[^\]]+\]|\{[^}]*,[^}]*\}|\w\?\.")
_EXPRESSION = re.compile(r"\.[*+]|\\[a-zA-Z.(]|^\^|\w\$$|\][*+]")
_AROUND = "\"'`“”\u2018\u2019«»,;:!?"
_LANGUAGES = {
    "python": "py", "markdown": "md", "javascript": "js", "typescript": "ts", "rust": "rs", "text": "txt",
    "json": "json", "yaml": "yaml", "toml": "toml", "html": "html", "css": "css", "csv": "csv",
    "java": "java",
}  # fmt: skip
_OF_LANGUAGE = re.compile(rf"\b({'|'.join(_LANGUAGES)})[- ]files?\b", re.IGNORECASE)
_RUN = re.compile(
    r"\b(?:run|execute)\b(?:\s+(?:this|the|a|following|shell|bash))*(?:\s+command\b)?(?P<colon>\s*:)?"
    r"\s+(?P<rest>.+)$",
    re.IGNORECASE | re.DOTALL,
)
_COURTESY = re.compile(r",?\s+(?:please|for me|for us|now|thanks|thank you)[\s.!?]*$|(?<=[\w)\"'])[.!?]+\s*$")
_QUOTES = re.compile(r"\"[^\"]*\"|'[^']*'")
_SIGNS = re.compile(r"(?:^|\s)--?\w|[|<>$=]|&&|(?:^|\s)\.{0,2}/|\s\.(?=\s|$)")
_COMMANDS = frozenset(
    (
        "awk", "bash", "cargo", "cat", "cd", "chmod", "chown", "cp", "curl", "cut", "date", "df",
        "diff", "docker", "du", "echo", "env", "find", "free", "gcc", "git", "go", "grep", "head",
        "hostname", "id", "java", "jq", "kill", "kubectl", "less", "ls", "make", "mkdir", "mv", "mypy",
        "node", "npm", "npx", "pip", "pnpm", "printf", "ps", "pwd", "pytest", "python", "python3", "rm",
        "rmdir", "rsync", "ruff", "sed", "sh", "sort", "ssh", "stat", "tail", "tar", "tee", "test",
        "top", "touch", "tree", "uname", "uniq", "uptime", "uv", "wc", "wget", "which", "whoami",
        "xargs", "yarn", "zip", "unzip",
    )
)  # fmt: skip
_SAID = frozenset(
    (
        "a", "again", "all", "an", "and", "any", "are", "every", "for", "from", "how", "i", "if", "in",
        "is", "it", "its", "me", "my", "of", "on", "our", "please", "some", "tell", "that", "the",
        "their", "them", "then", "these", "this", "those", "to", "us", "we", "what", "when", "which",
        "why", "with", "you", "your",
    )
)  # fmt: skip


def paths(text: str) -> list[Piece]:
    """The words that look like a path: with a slash, or with a dot and an ending."""
    return [each for each in _tokens(text) if is_path(each.text)]


def is_path(word: str) -> bool:
    """Whether a word can only be a path."""
    if "://" in word or word.lower() in _PROSE or not re.search(r"[A-Za-z]", word):
        return False
    if _BELOW.fullmatch(word):
        return True
    return bool(_NAME.fullmatch(word)) and "@" not in word and not word.lower().endswith(_SITES)


def patterns(text: str) -> list[Piece]:
    """The words with characters that stand for others."""
    return [each for each in _tokens(text) if "://" not in each.text and _WILD.search(each.text)]


def expressions(text: str) -> list[Piece]:
    """The words that can only be a regular expression."""
    return [each for each in _tokens(text) if "://" not in each.text and _EXPRESSION.search(each.text)]


def anywhere(piece: Piece) -> Piece:
    """The pattern that finds a name in whatever folder it is; what has a folder or a wildcard stays."""
    return piece if re.search(r"[/*?\[{]", piece.text) else Piece(f"**/{piece.text}", piece.span)


def files_of_a_language(text: str) -> Piece | None:
    """The pattern that "Python files" means, with where that stands."""
    match = _OF_LANGUAGE.search(text)
    return Piece(f"**/*.{_LANGUAGES[match.group(1).lower()]}", Span(*match.span())) if match else None


def has_ending(word: str) -> bool:
    """Whether a path names a file by its ending."""
    return bool(_ENDED.search(word))


def ordered_command(text: str) -> Piece | None:
    """What is to be run, where it looks like a command."""
    match = _RUN.search(text) if len(text) <= LONGEST_COMMAND else None
    if match is None:
        return None
    said = _COURTESY.sub("", match.group("rest")).strip()
    span = Span(match.start("rest"), match.start("rest") + len(said))
    if said[:1] in ("`", "“") or (said[:1] in "\"'" and said[-1:] == said[:1]):
        return Piece(said.strip(_AROUND), span)
    return Piece(said, span) if said and (match.group("colon") or is_command(said)) else None


def is_command(text: str) -> bool:
    """Whether a text begins as commands do and has no words that only sentences have."""
    unquoted = _QUOTES.sub("", text)
    said = unquoted.split()
    if not said or said[0].lower() in _SAID or "\n" in text:
        return False
    if _SIGNS.search(unquoted):
        return not _SAID & set(said)
    return said[0] in _COMMANDS and not _SAID & {word.strip(_AROUND).lower() for word in said}


def _tokens(text: str) -> list[Piece]:
    found = []
    for match in _TOKEN.finditer(text):
        left = len(match.group()) - len(match.group().lstrip(_AROUND + "("))
        word = match.group().lstrip(_AROUND + "(").rstrip(_AROUND)
        word = word.rstrip(".") if word.strip(".") else word
        word = word[:-1] if word.endswith(")") and "(" not in word else word
        start = match.start() + left
        found.append(Piece(word, Span(start, start + len(word))))
    return found
