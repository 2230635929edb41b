"""Candidates for e-mail addresses in a text; `emails` validates them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jackfield_tool_extract_contacts.writing_systems import latin_host, latin_tail, word_prefix

_LONGEST_LOCAL = 64
_LONGEST_DOMAIN = 253

# Classes with non-ASCII characters are negated: Python takes milliseconds to compile a range up to U+10FFFF.
_ATEXT_BACKWARDS = re.compile(r"""[^\x00-\x20"(),:;<>@\[\\\]\x7f]+""")
_QUOTED = re.compile(r'(?<![\w.!#$%&\'*+\-/=?^`{|}~"\\])"(?:[^"\\\r\n]|\\[^\r\n]){1,64}"(?=@)')
_NOT_IN_LABEL = r"\x00-,./:-@\[-`{-\x7f"
_DOMAIN = re.compile(rf"[^\-{_NOT_IN_LABEL}](?:[^{_NOT_IN_LABEL}]|\.(?=[^.\-\s])){{1,253}}")
_DOMAIN_LITERAL = re.compile(r"\[(?:[0-9.]{7,15}|IPv6:[0-9A-Fa-f:.]{2,45})\](?![\w\-])")

# `email=ada@example.org` and the fields of a mailto link: legal in a local part, but never intended.
_FIELD = re.compile(r"[?&]?(?:e-?mail|mail|mailto|to|cc|bcc|from|user|login|contact|address)=", re.IGNORECASE)
_WRAPPERS = {"'": "'", "*": "*", "_": "_", "`": "`", "|": "|", "~": "~", "{": "}"}
_SEPARATORS = "'/|&+=~-*"
# `git@github.com:team/repo` names a repository; `a@b.example_c` and `a@b@c` are invalid.
_SPOILT_AFTER = re.compile(r"@|_\w|:[\w.~\-]*/")
_SPOILT_BEFORE = "@\\"
# `ssh://ada@example.org` names a machine and a login.
_AUTHORITY = re.compile(r"(?<!mailto:)//[^\s/@]*$", re.IGNORECASE)
# Their values look like addresses but are not.
_MESSAGE_ID = re.compile(r"(?:message-id|in-reply-to|references|content-id)[ \t]*:", re.IGNORECASE)
_LOOK_BACK = 200


def mailbox_spans(text: str) -> Iterator[tuple[int, int]]:
    """Return the positions of all candidates, from left to right."""
    quoted = {match.end(): match.start() for match in _QUOTED.finditer(text)}
    text = _QUOTED.sub(_emptied, text)
    previous_end = 0
    at = text.find("@")
    while at >= 0:
        end = _domain_end(text, at + 1)
        if end:
            start = quoted.get(at)
            if start is None:
                start = _local_start(text, at, end, previous_end)
            if start < at <= start + _LONGEST_LOCAL and not _is_spoilt(text, start, end):
                yield start, end
                previous_end = end
        at = text.find("@", at + 1)


def _emptied(quoted: re.Match[str]) -> str:
    """Return only the quotes, because an @ between them does not start an address."""
    return f'"{" " * (len(quoted[0]) - 2)}"'


def _domain_end(text: str, start: int) -> int:
    # One more than allowed, here and for the local part, so that overlong input is rejected rather than cut.
    limit = start + _LONGEST_DOMAIN + 1
    literal = _DOMAIN_LITERAL.match(text, start, limit)
    if literal:
        return literal.end()
    name = _DOMAIN.match(text, start, limit)
    if not name:
        return 0
    domain = latin_host(word_prefix(name[0])).rstrip("-.")
    return start + len(domain) if "." in domain else 0


def _local_start(text: str, at: int, end: int, previous_end: int) -> int:
    backwards = text[max(previous_end, at - _LONGEST_LOCAL - 1) : at][::-1]
    run = _ATEXT_BACKWARDS.match(backwards)
    if not run:
        return at
    local = latin_tail(word_prefix(run[0])[::-1])
    return at - len(_unwrapped(local, text[end : end + 3], glued=0 < previous_end == at - len(local)))


def _unwrapped(local: str, after: str, *, glued: bool) -> str:
    """Return the local part without the markup around the address or the separator before it."""
    local = local[field.end() :] if (field := _FIELD.match(local)) else local
    for closing in after:
        if local and _WRAPPERS.get(local[0]) == closing:
            local = local[1:]
    return local.lstrip(_SEPARATORS if glued else "'/")


def _is_spoilt(text: str, start: int, end: int) -> bool:
    before = text[start - 1] if start else " "
    if before in _SPOILT_BEFORE or _SPOILT_AFTER.match(text, end):
        return True
    line = text[max(0, start - _LOOK_BACK) : start].rpartition("\n")[2]
    return bool(_AUTHORITY.search(line)) or (before == "<" and bool(_MESSAGE_ID.search(line)))
