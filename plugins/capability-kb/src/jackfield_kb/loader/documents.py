"""Opens a file for the format readers, with a size limit and without following links."""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, NamedTuple

from jackfield_kb.loader.slugs import in_a_command


class Problem(NamedTuple):
    """An error that keeps part of a file from being loaded."""

    path: str
    what: str
    remedy: str
    line: int | None = None

    @property
    def where(self) -> str:
        """The file, with the line if it is known."""
        return self.path if self.line is None else f"{self.path}, line {self.line}"


class UnreadableFileError(Exception):
    """A document or one of its entries cannot become a record."""

    def __init__(self, what: str, remedy: str, line: int | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy
        self.line = line

    def at(self, path: str) -> Problem:
        """Return the error as a problem of a file."""
        return Problem(path, self.what, self.remedy, self.line)


_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_LONGEST_LINE = 64_000_000


@dataclass(frozen=True, slots=True)
class Document:
    """An open file."""

    path: Path
    modified: datetime
    data: BinaryIO
    """The content as a stream."""

    def text(self, declared: str | None = None) -> str:
        """Decode the content by its byte order mark, or else as UTF-8 or in the declared encoding."""
        data = self.data.read()
        encoding = next((name for bom, name in _BOMS if data.startswith(bom)), None)
        for candidate in (encoding,) if encoding else ("utf-8", declared):
            if candidate:
                try:
                    return _without_nul(data.decode(candidate))
                except (UnicodeDecodeError, LookupError):
                    continue
        raise not_utf8(self.path)

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield numbered lines; raise `UnreadableFileError` at a line that is not UTF-8 or too long."""
        number = 0
        while line := self.data.readline(_LONGEST_LINE):
            number += 1
            if len(line) == _LONGEST_LINE:
                raise UnreadableFileError("the line is too long", "split it into several", number)
            try:
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError:
                raise not_utf8(self.path, number) from None


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise UnreadableFileError(
            "it contains zero bytes, so it is not text", "give it the right suffix, or save it as text"
        )
    return text


def not_utf8(path: Path, line: int | None = None) -> UnreadableFileError:
    """Return the error for text in an unknown encoding."""
    return UnreadableFileError(
        "it is not in UTF-8",
        f"save it as UTF-8, e.g. `iconv -f WINDOWS-1252 -t UTF-8 {in_a_command(path)} -o new.txt`",
        line,
    )


@contextmanager
def opened(path: Path, limit: int) -> Iterator[Document]:
    """Open a regular file of at most `limit` bytes; links are rejected."""
    try:
        # O_NONBLOCK, because opening a pipe would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except PermissionError:
        raise UnreadableFileError(
            "permission denied", f"allow reading, e.g. with `chmod u+r {in_a_command(path)}`"
        ) from None
    except OSError as error:
        raise UnreadableFileError(
            f"it cannot be opened ({error.strerror})", "check whether it still exists"
        ) from None
    with os.fdopen(descriptor, "rb") as data:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise UnreadableFileError("it is not a regular file", "copy its content into a regular file")
        if facts.st_size > limit:
            raise UnreadableFileError(
                f"its size is {facts.st_size / 1e6:.0f} MB; the limit for its format is {limit / 1e6:.0f} MB",
                "split it into several files",
            )
        if facts.st_size == 0:
            raise UnreadableFileError("it is empty", "add content, or delete it")
        yield Document(path, datetime.fromtimestamp(facts.st_mtime, UTC), data)
