"""Conversion between bytes and text: encodings, byte order marks and line ends."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

_BOMS = (
    # Longer marks first: the UTF-32 mark begins with the UTF-16 mark.
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_LOOKED_AT = 8192


class NotTextError(ValueError):
    """The bytes are not text."""


@dataclass(frozen=True, slots=True)
class FileText:
    """Text with `\\n` line ends, and its encoding and line ends on disk."""

    content: str
    encoding: str = "utf-8"
    bom: bytes = b""
    newline: str = "\n"

    @property
    def lines(self) -> list[str]:
        """The lines; an empty rest after the last line end does not count."""
        lines = self.content.split("\n")
        if lines[-1] == "":
            lines.pop()
        return lines

    def to_bytes(self) -> bytes:
        """Encode the text; raises `UnicodeEncodeError` if the encoding lacks a character."""
        return self.bom + self.content.replace("\n", self.newline).encode(self.encoding)


def read_text(data: bytes) -> FileText:
    """Decode bytes so that `to_bytes` returns the same bytes."""
    bom, encoding = next(((bom, name) for bom, name in _BOMS if data.startswith(bom)), (b"", ""))
    if not encoding and b"\0" in data[:_LOOKED_AT]:
        raise NotTextError
    content, encoding = _decoded(data[len(bom) :], encoding)
    if content.count("\r\n") == content.count("\n") > 0:
        return FileText(content.replace("\r\n", "\n"), encoding, bom, "\r\n")
    # With mixed line ends every `\r` is kept.
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
