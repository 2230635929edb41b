"""Writing systems without spaces, in which an address touches the words around it."""

from __future__ import annotations

import re
import unicodedata

# Thai, Lao, Burmese, Khmer, Kana, Han and Hangul (whose particles are attached to the word before).
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_AFTER_UNSPACED = re.compile(f"[{_UNSPACED}]([!-~]+)$")
_BEFORE_LINK = re.compile(f"[{_UNSPACED}](?=(?i:https?://|www\\.))")
_LATIN_END = re.compile(f"\\.[A-Za-z]{{2,}}(?=[{_UNSPACED}][^.]*$)")


def word_prefix(run: str) -> str:
    """Return the run up to its first non-ASCII character that is not a letter, mark or digit."""
    if run.isascii():
        return run
    for index, character in enumerate(run):
        if character > "\x7f" and unicodedata.category(character)[0] not in "LMN":
            return run[:index]
    return run


def latin_tail(local_part: str) -> str:
    """Return the local part without attached words of another script: `请联系ada` is `ada`."""
    glued = _AFTER_UNSPACED.search(local_part)
    return glued[1] if glued else local_part


def links_set_apart(text: str) -> str:
    """Return the text, of the same length, with a space instead of a foreign letter attached to a link."""
    return text if text.isascii() else _BEFORE_LINK.sub(" ", text)


def latin_host(host: str) -> str:
    """Return the host up to a Latin top-level domain followed by another script: `example.orgまで`."""
    glued = None if host.isascii() else _LATIN_END.search(host)
    return host[: glued.end()] if glued else host
