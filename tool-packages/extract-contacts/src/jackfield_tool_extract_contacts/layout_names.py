"""Names found by layout: a labelled line, the beginning of an entry, the first line of a signature."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from jackfield_tool_extract_contacts.entities import Email, Entity, Name
from jackfield_tool_extract_contacts.layout import Layout, Line
from jackfield_tool_extract_contacts.names import (
    is_capitalised,
    is_echoed,
    is_label,
    is_name,
    is_written_as_name,
    plain,
    tidy,
    without_lead_in,
)
from jackfield_tool_extract_contacts.word_lists import (
    CHANNELS,
    HEADER_LABELS,
    NAME_LABELS,
    PARTICLES,
    SHARED_MAILBOXES,
)

_LABELLED = re.compile(
    rf"""[\s>*•\-|]* (?:(?P<header>{HEADER_LABELS})|{NAME_LABELS}) (?:;[^:]{{0,40}})? [*_]*[ ]?[:\uff1a]
         [*_]*\s* (?P<name>[^,;|<>()\[\]\n@\t]+)""",
    re.VERBOSE | re.IGNORECASE,
)
_BULLET = re.compile(r"^[\s>*•·▪◦\-\u2013\u2014|#]*(?:\d{1,3}[.)]\s+)?")
_ENTRY = re.compile(
    r"(?P<name>[^,:;|(\[<\t\u2013\u2014]+?)\s*(?:(?P<mark>[,:;|(\[\t\u2013\u2014]|\s-)(?P<rest>.*))?$"
)
_WORDS = re.compile(r"[^\W\d_]+(?:[-'\u2019][^\W\d_]+)*")
# A signature's addresses are within this many lines below its first line.
_REACH = 6


def layout_names(layout: Layout, entities: Sequence[Entity]) -> Iterator[Name]:
    """Yield the names given by lines; `entities` are the addresses, numbers and links, in order."""
    first_finds: dict[int, Entity] = {}
    emails: dict[int, Email] = {}
    for entity in entities:
        number = layout.index(entity.start)
        first_finds.setdefault(number, entity)
        if isinstance(entity, Email):
            emails.setdefault(number, entity)
    for number, line in enumerate(layout.lines):
        name = _labelled(line) or _entry(line, first_finds.get(number))
        if not name and number not in first_finds and _signs(layout, number, first_finds, emails):
            name = _whole_line(line)
        if name:
            yield name


def _labelled(line: Line) -> Name | None:
    match = _LABELLED.match(line.text)
    if not match:
        return None
    name = match["name"].strip()
    proper = is_name(name) if match["header"] else is_label(name) and is_written_as_name(name)
    return _name(line.start + match.start("name"), name) if proper else None


def _entry(line: Line, first: Entity | None) -> Name | None:
    """Return the name that an entry of a list or a table begins with."""
    if first is None:
        return None
    before = line.text[: first.start - line.start]
    entry = _BULLET.sub("", before, count=1)
    begin = len(before) - len(entry)
    match = _ENTRY.match(entry.rstrip())
    if not match:
        return None
    name = without_lead_in(match["name"])
    if not is_name(name) or not _is_between(match["mark"], match["rest"] or ""):
        return None
    return _name(line.start + begin + match["name"].rindex(name), name)


def _is_between(mark: str | None, rest: str) -> bool:
    """Return whether the text between the name and its first address or number allows a name."""
    words = _WORDS.findall(rest)
    if mark in ("|", "\t"):
        return not any(character.isdigit() for character in rest)
    return all(plain(word) in CHANNELS for word in words) or (mark == "," and _is_title(words))


def _is_title(words: list[str]) -> bool:
    return len(words) <= 4 and all(
        is_capitalised(word) or plain(word) in PARTICLES | {"and", "for"} for word in words
    )


def _signs(layout: Layout, number: int, first_finds: dict[int, Entity], emails: dict[int, Email]) -> bool:
    """Return whether the line heads the entities below it and can be a person's name."""
    line = layout.lines[number]
    name = line.text.strip(" \t>*_")
    if not is_name(name, least=1 if line.signs else 2):
        return False
    below = [
        n
        for n in range(number + 1, number + 1 + _REACH)
        if n in first_finds and layout.lines[n].block == line.block
    ]
    if not below:
        return False
    mails = [emails[n].local_part for n in below if n in emails][:1]
    if any(is_echoed(name, local) for local in mails):
        return True
    heads_block = line.signs or number == 0 or layout.lines[number - 1].block != line.block
    return heads_block and not any(plain(local) in SHARED_MAILBOXES for local in mails)


def _whole_line(line: Line) -> Name:
    name = line.text.strip(" \t>*_")
    return _name(line.start + line.text.index(name), name)


def _name(start: int, written: str) -> Name:
    return Name(start, start + len(written), written, tidy(written))
