"""Display names in mail syntax: `Ada Lovelace <ada@example.org>`."""

from __future__ import annotations

import re
from email.errors import HeaderParseError
from email.header import decode_header, make_header

from jackfield_tool_extract_contacts.entities import Email, Name
from jackfield_tool_extract_contacts.names import (
    is_echoed,
    is_label,
    is_name,
    is_written_as_name,
    tidy,
    trailing_name,
    without_lead_in,
)
from jackfield_tool_extract_contacts.word_lists import HEADER_LABELS, NAME_LABELS

_LOOK_BACK = 120
_BEFORE_ADDRESS = re.compile(r"[ \t\xa0]*(?:<|&lt;|\[|\()(?:mailto:)?$", re.IGNORECASE)
_MARKDOWN_LINK = re.compile(r"\[(?P<name>[^\[\]\n]{1,60})\]\(mailto:$", re.IGNORECASE)
_QUOTED = re.compile(r'"(?P<name>(?:[^"\\\n]|\\.){1,80})"$')
_ENCODED = re.compile(r"(?:=\?[\w\-]{1,20}\?[bq]\?[^?\s]{0,100}\?=\s*)+$", re.IGNORECASE)
_SEGMENT = re.compile(r"[^,;:<>()\[\]{}|\"\t\n\r=]+$")
_FIELD_BEGINS = re.compile(r"(?:^|[\n,;:>|])[\s>*•\-]*$")
_HEADER = re.compile(
    rf"(?:^|\n)[\s>*]*(?:{HEADER_LABELS}|{NAME_LABELS})[ ]?:(?:[^\n]*[,;])?[ ]*$", re.VERBOSE | re.IGNORECASE
)
_REMARK = re.compile(r"\s*\([^()\n]{1,30}\)\s*$")
_AFTER_ADDRESS = re.compile(r">?[ \t\xa0]{0,2}\((?P<name>[^()\n]{1,60})\)")


def display_name(text: str, email: Email) -> Name | None:
    """Return the name given to the address, before it or in brackets after it."""
    return _name_before(text, email) or _name_after(text, email)


def _name_before(text: str, email: Email) -> Name | None:
    offset = max(0, email.start - _LOOK_BACK)
    before = text[offset : email.start]
    linked = _MARKDOWN_LINK.search(before)
    if linked and is_label(linked["name"]):
        return _name(offset + linked.start("name"), linked["name"], email)
    bracket = _BEFORE_ADDRESS.search(before)
    if not bracket:
        return None
    before = before[: bracket.start()]
    in_angles = bracket[0].strip()[:1] in "<&"
    if in_angles and (explicit := _explicit_name(before, offset, email)):
        return explicit
    return _plain_name(before, offset, email, in_angles=in_angles)


def _explicit_name(before: str, offset: int, email: Email) -> Name | None:
    if quoted := _QUOTED.search(before):
        name = re.sub(r"\\(.)", r"\1", quoted["name"])
        return _name(offset + quoted.start("name"), quoted["name"], email, name) if "@" not in name else None
    if encoded := _ENCODED.search(before):
        written = encoded[0].rstrip()
        decoded = _decoded(written)
        return _name(offset + encoded.start(), written, email, decoded) if decoded.strip() else None
    return None


def _plain_name(before: str, offset: int, email: Email, *, in_angles: bool) -> Name | None:
    before = _REMARK.sub("", before)
    segment = _SEGMENT.search(before)
    if not segment or not segment[0].strip():
        return None
    field = before[: segment.start()]
    name = _name_in(segment[0].strip(), field, email) if in_angles else trailing_name(segment[0].strip())
    if not in_angles and not (is_name(name) and is_echoed(name, email.local_part)):
        return None
    return _name(offset + segment.start() + segment[0].rindex(name), name, email) if name else None


def _name_in(words: str, field: str, email: Email) -> str:
    """Return the name before `<`: all words in a header or a list, else the last capitalised ones."""
    if _HEADER.search(field) and is_label(words):
        return words
    if _FIELD_BEGINS.search(field) and is_label(words):
        name = without_lead_in(words)
        if is_written_as_name(name) or is_echoed(name, email.local_part):
            return name
    name = trailing_name(words)
    return name if is_name(name, least=1) and not field.endswith(('"', ")")) else ""


def _name_after(text: str, email: Email) -> Name | None:
    match = _AFTER_ADDRESS.match(text, email.end)
    if not match:
        return None
    name = match["name"].strip()
    if not is_name(name) and not (is_name(name, least=1) and is_echoed(name, email.local_part)):
        return None
    return _name(match.start("name") + match["name"].index(name), name, email)


def _decoded(encoded_words: str) -> str:
    try:
        return str(make_header(decode_header(encoded_words)))
    except (HeaderParseError, LookupError, UnicodeError, ValueError):
        return ""


def _name(start: int, written: str, email: Email, name: str | None = None) -> Name:
    return Name(start, start + len(written), written, tidy(name or written), email)
