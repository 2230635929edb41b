"""Looking for files by name and for lines by their text."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import re2  # type: ignore[import-untyped]
from jackfield import ToolError
from jackfield_capability_types.workspace import FoundFile, Listing, Match, Matches, Search

from jackfield_workspace.files import refusals, tree
from jackfield_workspace.files.paths import Parts
from jackfield_workspace.files.texts import NotTextError, read_text
from jackfield_workspace.files.walking import Effort, Entry, Walk

_MOST_MEMORY = 8 * 1024 * 1024
"""What a compiled pattern may take; RE2 refuses one that needs more."""

_LONGEST_LINE = 500


def find_files(walk: Walk, root: tree.Tree, parts: Parts, effort: Effort, limit: int) -> Listing:
    """The files a walk comes by, the latest change first."""
    found = []
    for entry in walk.files(root, parts):
        try:
            facts = entry.found.stat(follow_symlinks=False)
        except OSError:
            # Deleted while we looked.
            continue
        found.append((-facts.st_mtime_ns, entry.path, facts.st_size))
    found.sort()
    files = (
        FoundFile(path, size, datetime.fromtimestamp(-changed / 1e9, UTC))
        for changed, path, size in found[:limit]
    )
    return Listing(tuple(files), len(found), _notices(effort, anything=bool(found)))


class LineSearch:
    """One search for lines, over files one after the other."""

    def __init__(self, search: Search, *, limit: int, max_bytes: int, effort: Effort) -> None:
        self._search = search
        self._pattern = _compiled(search)
        self._limit = limit
        self._max_bytes = max_bytes
        self._effort = effort
        self._left_out = {"too large": 0, "not text": 0, "unreadable": 0}

    def below(self, walk: Walk, root: tree.Tree, parts: Parts) -> Matches:
        """What is found in the files of a walk."""
        return self._over(walk.files(root, parts))

    def within(self, here: int, name: str, path: str) -> Matches:
        """What is found in one file, which has to be one."""
        data, _ = tree.read_file(here, name, path, self._max_bytes)
        try:
            found = list(self._lines(path, data))
        except NotTextError:
            raise refusals.binary(path, len(data)) from None
        return Matches(tuple(found[: self._limit]), 1 if found else 0, len(found) > self._limit)

    def _over(self, entries: Iterator[Entry]) -> Matches:
        found: list[Match] = []
        files: set[str] = set()
        for entry in entries:
            for match in self._in_entry(entry):
                if len(found) == self._limit:
                    return Matches(tuple(found), len(files), more=True, notices=self._said())
                found.append(match)
                files.add(match.path)
        return Matches(tuple(found), len(files), notices=self._said(anything=bool(found)))

    def _in_entry(self, entry: Entry) -> list[Match]:
        try:
            if entry.found.stat(follow_symlinks=False).st_size > self._max_bytes:
                self._left_out["too large"] += 1
                return []
            data, _ = tree.read_file(entry.here, entry.name, entry.path, self._max_bytes)
            return list(self._lines(entry.path, data))
        except NotTextError:
            self._left_out["not text"] += 1
        except (OSError, ToolError):
            self._left_out["unreadable"] += 1
        return []

    def _lines(self, path: str, data: bytes) -> Iterator[Match]:
        """The lines that fit; of one file never more than are kept and one over, which says so."""
        text = read_text(data)
        content = data if text.encoding == "utf-8" and not text.bom and text.newline == "\n" else None
        content = text.content.encode() if content is None else content
        lines: list[str] | None = None
        number, counted, start = 1, 0, 0
        for _ in range(self._limit + 1):
            found = self._pattern.search(content, start)
            # Behind the last line end there is no line, though a pattern may fit the nothing that is there.
            if found is None or (found.start() == len(content) and content.endswith(b"\n")) or not content:
                return
            number += content.count(b"\n", counted, found.start())
            counted = found.start()
            lines = text.lines if lines is None else lines
            yield self._match(path, lines, number)
            start = content.find(b"\n", found.start()) + 1
            if not start:
                return

    def _match(self, path: str, lines: list[str], number: int) -> Match:
        around, here = self._search.context, number - 1
        return Match(
            path,
            number,
            _short(lines[here]),
            tuple(_short(line) for line in lines[max(here - around, 0) : here]),
            tuple(_short(line) for line in lines[here + 1 : here + 1 + around]),
        )

    def _said(self, *, anything: bool = True) -> tuple[str, ...]:
        for why, files in self._left_out.items():
            # That pictures and archives are not text is no news.
            if files and (why != "not text" or not anything):
                self._effort.notices[f"{files} file(s) were left out: {why}."] = None
        return _notices(self._effort, anything=anything)


def _compiled(search: Search) -> Any:
    options = re2.Options()
    options.never_nl = True
    options.log_errors = False
    options.max_mem = _MOST_MEMORY
    options.case_sensitive = not search.ignore_case
    pattern = re2.escape(search.pattern) if search.literal else search.pattern
    try:
        return re2.compile(f"(?m){pattern}".encode(), options)
    except (re2.error, UnicodeEncodeError) as error:
        why = error.args[0] if error.args else "it is not understood"
        said = why.decode(errors="replace") if isinstance(why, bytes) else str(why)
        raise refusals.bad_pattern("regular expression", f"{said}; the syntax is that of RE2") from None


def _notices(effort: Effort, *, anything: bool) -> tuple[str, ...]:
    if effort.ignored and not anything:
        effort.notices["Entries that .gitignore leaves out were not looked at."] = None
    return tuple(effort.notices)


def _short(line: str) -> str:
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}..."
