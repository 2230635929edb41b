"""What could not be loaded: what is wrong, where, and how to mend it."""

from __future__ import annotations

from typing import NamedTuple


class Problem(NamedTuple):
    """Something of a file that was left out for an error."""

    path: str
    what: str
    mend: str
    line: int | None = None

    @property
    def where(self) -> str:
        """The file, and the line where that is known."""
        return self.path if self.line is None else f"{self.path}, line {self.line}"


class UnreadableError(Exception):
    """A document, or one entry of it, from which no record can be made."""

    def __init__(self, what: str, mend: str, line: int | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.mend = mend
        self.line = line

    def at(self, path: str) -> Problem:
        """This error as it is told about a file."""
        return Problem(path, self.what, self.mend, self.line)
