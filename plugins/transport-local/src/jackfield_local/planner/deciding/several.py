"""Several wishes in one message: each served by itself, and what is said beside them left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from jackfield_local.planner.language.wishes import Piece, pieces
from jackfield_local.planner.reading.tool import Tool

MOST_WISHES = 6
"""So many wishes of one message are served; the others have to be said again."""


class Meant(NamedTuple):
    """What a part of a message comes to by itself."""

    tool: Tool | None
    """The tool that it is clearly for."""

    beyond: bool
    """Whether it wants something done that no tool does."""

    whole: bool
    """Whether the tool needs nothing that it does not say."""


Judge = Callable[[str], Meant]


def wishes(text: str, judge: Judge) -> list[str]:
    """The wishes of a message, in their order; the message itself where it is one."""
    parts = pieces(text)
    if len(parts) < 2:
        return [text]
    joined = _joined(text, parts, judge)
    wanted = [each for each in joined if _is_wish(each)]
    aside = [each for each in joined if each not in wanted]
    alone = len(wanted) == 1 and not _is_clear(wanted[0])
    if not wanted or alone or _takes_the_rest(wanted[0]) or any(each.piece.detail for each in aside):
        return [text]
    return [each.piece.wish for each in wanted]


class _Wish(NamedTuple):
    piece: Piece
    meant: Meant


def _is_wish(each: _Wish) -> bool:
    ordered = each.piece.detail and each.meant.tool is not None
    return each.piece.asks or each.piece.follows or ordered


def _takes_the_rest(each: _Wish) -> bool:
    return each.meant.tool is not None and each.meant.tool.hands_on


def _is_clear(each: _Wish) -> bool:
    return each.piece.asks and each.meant.tool is not None and not each.piece.thin


def _joined(text: str, parts: Sequence[Piece], judge: Judge) -> list[_Wish]:
    """The parts, each with those behind it that do not stand alone."""
    found: list[_Wish] = []
    for place, part in enumerate(parts):
        meant = judge(part.wish)
        if found and not _stands_alone(part, meant, found[-1]):
            end = parts[place + 1].start if place + 1 < len(parts) else len(text)
            before = found.pop().piece
            whole = before._replace(text=_until(text, before.start, part, end))
            found.append(_Wish(whole, judge(whole.wish)))
        else:
            found.append(_Wish(part, meant))
    return found


def _until(text: str, start: int, last: Piece, end: int) -> str:
    return text[start : min(end, last.start + len(last.text))].strip()


def _stands_alone(part: Piece, meant: Meant, before: _Wish) -> bool:
    """Whether a part is a wish of its own or said by the way, rather than more of what stands before it."""
    if part.follows:
        return True
    if part.detail:
        return not before.piece.asks and not part.refers
    if not part.asks:
        return True
    return _is_another(part, meant, before)


def _is_another(part: Piece, meant: Meant, before: _Wish) -> bool:
    """Whether a part that asks for something asks for something else."""
    if not before.piece.asks and part.refers:
        return False
    if meant.beyond:
        return True
    if (part.thin and not part.continues) or part.asks_on:
        return False
    if meant.tool is before.meant.tool:
        return meant.tool is not None and meant.whole and not part.refers
    return meant.tool is not None or part.apart
