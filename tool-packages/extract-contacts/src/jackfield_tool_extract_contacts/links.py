"""Links found by linkify-it, without its false matches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any

from linkify_it import LinkifyIt  # type: ignore[import-untyped]

from jackfield_tool_extract_contacts.entities import Url
from jackfield_tool_extract_contacts.word_lists import TOP_LEVEL_DOMAINS
from jackfield_tool_extract_contacts.writing_systems import latin_host, links_set_apart

# Top-level domains that are far more often file endings.
_FILE_ENDINGS = frozenset(("md", "pm", "py", "sh"))
_COMMON_TOP_LEVELS = frozenset(("com", "net", "org"))

# A run without spaces is truncated at this length, because the pattern for paths takes quadratic time.
_LONGEST_RUN = re.compile(r"\S{2048}")
_EASTERN_PUNCTUATION = re.compile(
    r"[\u2018-\u201d\u3001\u3002\u3008-\u3011\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f]"
)
_PARTS = re.compile(
    r"(?P<scheme>[a-zA-Z]+:)?(?P<slashes>//)?(?P<user>[^/?#@]*@)?(?P<host>[^/?#]*)(?P<rest>.*)", re.DOTALL
)


@cache
def _linkifier() -> Any:
    # Our own scanner finds addresses, and four numbers with dots are more likely a version than a host. For
    # hosts without a scheme, the list extends linkify-it's own (two-letter ones, com, org, ...).
    linkifier = LinkifyIt(options={"fuzzy_email": False, "fuzzy_ip": False}).add("mailto:", None)
    return linkifier.tlds(sorted(TOP_LEVEL_DOMAINS), True)


def find_urls(text: str) -> list[Url]:
    """Return all links, in the order of the text."""
    entities = []
    for start, end, has_scheme in _matches(text):
        url = _url(start, text[start:end])
        if url and (has_scheme or _is_host(url)):
            entities.append(url)
    return entities


def _matches(text: str) -> Iterator[tuple[int, int, bool]]:
    text = links_set_apart(text)
    cuts = [match.end() for match in _LONGEST_RUN.finditer(text)]
    for start, end in pairwise([0, *cuts, len(text)]):
        for match in _linkifier().match(text[start:end]) or ():
            begins_at_cut = start > 0 and match.index == 0
            ends_at_cut = end < len(text) and match.last_index == end - start
            if not begins_at_cut and not ends_at_cut:
                yield start + match.index, start + match.last_index, bool(match.schema)


def _url(start: int, written: str) -> Url | None:
    written = _EASTERN_PUNCTUATION.split(written, maxsplit=1)[0]
    parts = _split(written)
    host = latin_host(parts["host"])
    if host != parts["host"]:
        written = written[: len(written) - len(parts["rest"]) - len(parts["host"]) + len(host)]
        parts["rest"] = ""
    url = f"{parts['scheme'].lower() or 'http:'}//{parts['user']}{host.lower()}{parts['rest']}"
    return Url(start, start + len(written), written, url) if host else None


def _split(written: str) -> dict[str, str]:
    match = _PARTS.match(written)
    return match.groupdict("") if match else {}


def _is_host(url: Url) -> bool:
    """Return whether text without a scheme is a host, not a file name or two sentences without a space."""
    parts = _split(url.text)
    host, _, top_level = parts["host"].partition(":")[0].rpartition(".")
    if parts["rest"] or "." in host:
        return True
    runs_together = top_level.istitle() and top_level.lower() not in _COMMON_TOP_LEVELS
    return top_level.lower() not in _FILE_ENDINGS and not runs_together
