"""Whether something is to be looked for on the web, rather than wherever it may be known."""

from __future__ import annotations

import re

from jackfield_local.language.addresses import urls
from jackfield_local.planner.language.requests import polite_stripped

_WEB = r"(?:web|internet|net|world wide web)"
_FOR = r"(?:[\s,:]+(?:for|about|on|to find(?: out)?|to see|and (?:find(?: out)?|see|tell me))\b)?[\s:]*"
_SEARCHING = re.compile(
    rf"(?:(?:search|browse|surf|check|query|ask|consult|scour|use)\s+(?:through\s+|in\s+|on\s+)?(?:the\s+)?{_WEB}\b"
    r"|(?:(?:do|run|make|start|perform|try)\s+(?:an?|another)\s+(?:\w+\s+)?)?"
    rf"(?:{_WEB}|online|google)\s+search(?:es)?\b"
    r"|(?:google|bing)\b(?!['\u2019]s|\s+(?:docs?|drive|maps?|sheets?|calendar|account|forms?|meet|fonts?)\b)"
    rf"|what(?:['\u2019]s|\s+is)(?:\s+there)?\s+(?:on|in)\s+the\s+{_WEB}\b"
    rf"|what\s+(?:does|do)\s+the\s+{_WEB}\s+(?:say|know|think)\b)" + _FOR,
    re.IGNORECASE,
)
"""A wish that begins so is one for the web."""
_LOOKING = re.compile(
    r"(?:search|(?:(?:have|take) a )?look|find|check|research|get|fetch|show|tell (?:me|us)|see|read|browse"
    r"|explore|(?:is|are) there\b|what (?:can|do|did) you (?:find|see)\b)",
    re.IGNORECASE,
)
_THERE = re.compile(
    rf"\s*\b(?:(?:on|in|from|over|across|through|via)\s+the\s+{_WEB}\b(?!\s+(?:team|page|site|project))"
    r"|(?:on|via|through|with|using)\s+(?:google|bing)\b"
    r"|online(?=\s*(?:$|[,.?!]|(?:for|about|how|what|where|when|who|which|why|whether|if|and)\b)))",
    re.IGNORECASE,
)
"""Where those who look for something say that it should be looked for."""


def on_the_web(text: str) -> str | None:
    """What is to be looked for on the web, without saying so; nothing where the web is not wished for."""
    wish = polite_stripped(text)
    if urls(text):
        return None
    if found := _SEARCHING.match(wish):
        return wish[found.end() :]
    if _LOOKING.match(wish) and (found := _THERE.search(wish)):
        return f"{wish[: found.start()]} {wish[found.end() :].lstrip()}".strip()
    return None
