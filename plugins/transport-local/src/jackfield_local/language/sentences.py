"""Sentences: where they end, and which of them answer a question."""

from __future__ import annotations

import re

_END = re.compile(r"(?<=[.!?])\s+(?=[A-ZÀ-Þ0-9\"“*#-])")
_NO_END = re.compile(
    r"(?:^|\s)[(\"“]?(?:e\.g|i\.e|cf|vs|approx|no|dr|mr|mrs|ms|prof|st|\d{1,2})\.$", re.IGNORECASE
)
_STEPS = re.compile(r"(?:^|\s)1[.)]\s+\S.*?\s2[.)]\s+\S", re.DOTALL)
_STEP = re.compile(r"\s+(?=\d{1,2}[.)]\s+[A-ZÀ-Þ*`\"“])")
_HEADING = re.compile(r"\s*#{1,6}\s")
_MARKS = re.compile(r"[*_`#>]+|\[([^\]]*)\]\([^)]*\)|^\s*[-+•]\s+", re.MULTILINE)
_WHOLE = re.compile(r"[.!?:;][*_\"”)]*$")
_MARKED = re.compile(r"[-+•*#>|]|\d{1,2}[.)]\s")
_MARGIN = 72
"""A line that is shorter was ended on purpose."""
MOST_SENTENCES = 60


def sentences(text: str) -> list[str]:
    """The sentences, lines and numbered steps of a text; headings only where there is nothing else."""
    text = _STEP.sub("\n", text) if _STEPS.search(text) else text
    lines = _unwrapped(text)
    lines = [line for line in lines if not _HEADING.match(line)] or lines
    return [each for line in lines for each in _of_line(line)]


def _unwrapped(text: str) -> list[str]:
    """The lines of a text; one that only broke at the margin goes on with the line above it."""
    found: list[str] = []
    above = ""
    for line in map(str.strip, text.splitlines()):
        broken = above and not _WHOLE.search(above) and not _HEADING.match(above)
        if line and broken and (line[0].islower() or (len(above) > _MARGIN and not _MARKED.match(line))):
            found[-1] = f"{found[-1]} {line}"
        elif line:
            found.append(line)
        above = line
    return found


def _of_line(line: str) -> list[str]:
    found: list[str] = []
    for part in _END.split(line):
        # After "1." or "e.g." the sentence goes on.
        if found and _NO_END.search(found[-1]):
            found[-1] = f"{found[-1]} {part}"
        else:
            found.append(part)
    return [part.strip() for part in found if part.strip()]


def untitled(text: str, title: str) -> str:
    """A text without the title that it begins with, unless a sentence begins so."""
    begins = re.match(rf"[\s#*]*{re.escape(title)}[\s*]*", text, re.IGNORECASE) if title else None
    rest = text[begins.end() :] if begins else ""
    return (
        rest.lstrip(" :.\u2013\u2014-") if rest and not (rest[0].islower() or rest[0] in "',\u2019") else text
    )


def plain(text: str) -> str:
    """A text without the marks of Markdown."""
    return " ".join(_MARKS.sub(lambda match: match.group(1) or "", text).split())
