"""Why a connection was closed, and what this client does about it."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Then(Enum):
    """What follows a close."""

    AT_ONCE = "resume at once"
    SOON = "resume in a moment"
    WHEN_WANTED = "resume when the user says something"
    NEW_TOKEN = "resume with a new token, where one can be had"  # noqa: S105 - words
    OVER = "nothing: the session is over, and that is well"
    FAILED = "nothing: the session cannot go on, and the user has to know"


class Closing(NamedTuple):
    """A close as the host means it."""

    name: str
    code: int
    reason: str
    then: Then


CLOSINGS = (
    Closing("ended", 4000, "the session has ended", Then.OVER),
    Closing("idle", 4001, "nothing was said for too long", Then.WHEN_WANTED),
    Closing("too_long", 4002, "the session has lasted as long as one may", Then.OVER),
    Closing("too_slow", 4003, "this client reads too slowly", Then.SOON),
    Closing("misunderstood", 4004, "the host does not understand this client", Then.FAILED),
    Closing("banned", 4005, "the user is banned", Then.FAILED),
    Closing("replaced", 4006, "the session goes on in another connection", Then.OVER),
    Closing("unknown", 4007, "there is no such session to resume", Then.FAILED),
    Closing("full", 4008, "there are too many sessions", Then.SOON),
    Closing("provider", 4009, "the model cannot be reached", Then.SOON),
    Closing("expired", 4010, "the token has expired", Then.NEW_TOKEN),
    Closing("forsaken", 4011, "nobody was connected to it any more", Then.WHEN_WANTED),
    Closing("restarting", 1012, "the host is restarting", Then.AT_ONCE),
    Closing("failed", 1011, "the host failed", Then.SOON),
)
"""Every close of the protocol."""

LEFT = Closing("left", 1000, "this client has left", Then.OVER)
"""The client closed the connection itself; the session can be resumed."""

LOST = Closing("lost", 1006, "the connection was lost", Then.SOON)
"""The connection ended without a word, or with one that is not of the protocol."""

_BY_CODE = {closing.code: closing for closing in CLOSINGS}


def closing_of(code: int | None) -> Closing:
    """What a close code means."""
    return _BY_CODE.get(code or LOST.code, LOST)
