"""Bytes to characters, when what is said about them may be wrong."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_META = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE)
_HEADER = re.compile(r"""charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE)
_NAME = re.compile(r"(utf-?8|utf-?16(le|be)?|utf-?32(le|be)?|us-ascii|ascii|latin-?\d+|iso-?8859-?\d+"
                   r"|windows-?\d+|cp-?\d+|koi8-?[rut]|mac-?\w+|gbk|gb-?2312|gb-?18030|big5(-?hkscs)?"
                   r"|euc-?(jp|kr)|shift-?jis|iso-?2022-?(jp|kr)|tis-?620)")  # fmt: skip
# What calls itself by these names is in truth Microsoft's larger set, as every browser has it.
_LARGER = {"iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gb18030", "gbk": "gb18030"}
_GUESSED_FROM = 64 * 1024


def decoded(content: bytes, content_type: str, *, marked_up: bool, cut: bool) -> str:
    """The text: by its mark, by what the server says, by what the page says, or by what it looks like."""
    for name in _candidates(content, content_type, marked_up=marked_up):
        text = _strictly(content, name, cut=cut)
        if text is not None:
            return text
    return content.decode(_guessed(content), "replace")


def _candidates(content: bytes, content_type: str, *, marked_up: bool) -> Iterator[str]:
    for mark, name in _MARKS:
        if content.startswith(mark):
            yield name
    if said := _HEADER.search(content_type):
        yield said[1]
    if marked_up and (meta := _META.search(content[:4096])):
        yield meta[1].decode("ascii", "replace")
    yield "utf-8"


def _strictly(content: bytes, name: str, *, cut: bool) -> str | None:
    """The text, if the bytes are really in that charset; the last character may be missing its end."""
    plain = name.lower().replace("_", "-")
    if plain != "utf-8-sig" and not _NAME.fullmatch(plain):
        return None
    try:
        known = codecs.lookup(plain).name
        decoder = codecs.getincrementaldecoder(_LARGER.get(known, known))()
        return decoder.decode(content, final=not cut)
    except (LookupError, UnicodeError):
        return None


def _guessed(content: bytes) -> str:
    from charset_normalizer import from_bytes

    best = from_bytes(content[:_GUESSED_FROM]).best()
    return best.encoding if best else "cp1252"
