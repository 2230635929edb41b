"""Conversion between bytes and text: encodings, byte order marks and line ends."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

_BOMS = (
    # The longer first: a mark of UTF-32 begins like one of UTF-16.
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_LOOKED_AT = 8192


class NotTextError(ValueError):
    """Bytes that are no text."""


@dataclass(frozen=True, slots=True)
class FileText:
    """A text with `\\n` between its lines, and how it is written on the disk."""

    content: str
    encoding: str = "utf-8"
    bom: bytes = b""
    newline: str = "\n"

    @property
    def lines(self) -> list[str]:
        """Its lines; what follows the last line end is one only where there is something."""
        lines = self.content.split("\n")
        if lines[-1] == "":
            lines.pop()
        return lines

    def to_bytes(self) -> bytes:
        """As it is written; `UnicodeEncodeError` where the encoding lacks a character."""
        return self.bom + self.content.replace("\n", self.newline).encode(self.encoding)


def read_text(data: bytes) -> FileText:
    """The text that bytes stand for, in a form that gives the same bytes again."""
    bom, encoding = next(((bom, name) for bom, name in _BOMS if data.startswith(bom)), (b"", ""))
    if not encoding and b"\0" in data[:_LOOKED_AT]:
        raise NotTextError
    content, encoding = _decoded(data[len(bom) :], encoding)
    if content.count("\r\n") == content.count("\n") > 0:
        return FileText(content.replace("\r\n", "\n"), encoding, bom, "\r\n")
    # With mixed line ends each `\r` stays where it is.
    return FileText(content, encoding, bom)


def _decoded(data: bytes, encoding: str) -> tuple[str, str]:
    try:
        return data.decode(encoding or "utf-8"), encoding or "utf-8"
    except UnicodeDecodeError:
        if encoding or b"\0" in data:
            raise NotTextError from None
    try:
        return data.decode("cp1252"), "cp1252"
    except UnicodeDecodeError:
        return data.decode("latin-1"), "latin-1"
