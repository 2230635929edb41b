"""Why the host closes a WebSocket: the codes, with what a client should do."""

from __future__ import annotations

from typing import NamedTuple


class Closing(NamedTuple):
    """A name, a close code and its reason."""

    name: str
    code: int
    reason: str
    advice: str


ENDED = Closing("ended", 4000, "the session has ended", "Begin a new one when the user wants to.")
IDLE = Closing("idle", 4001, "nothing was said for too long", "Resume when the user comes back.")
TOO_LONG = Closing("too_long", 4002, "the session has lasted as long as one may", "Begin a new one.")
TOO_SLOW = Closing("too_slow", 4003, "the client reads too slowly", "Resume, on a better line.")
MISUNDERSTOOD = Closing("misunderstood", 4004, "the client does not speak this protocol", "Mend the client.")
BANNED = Closing("banned", 4005, "the user is banned", "Wait as long as the `error` before it says.")
REPLACED = Closing("replaced", 4006, "the session goes on in another connection", "Do nothing.")
UNKNOWN = Closing("unknown", 4007, "there is no such session to resume", "Begin a new one.")
FULL = Closing("full", 4008, "there are too many sessions", "Try again later.")
PROVIDER = Closing("provider", 4009, "the model cannot be reached", "Resume in a moment.")
EXPIRED = Closing("expired", 4010, "the token has expired", "Get a new token, then resume with it.")
FORSAKEN = Closing(
    "forsaken", 4011, "nobody was connected to it any more", "Resume when the user comes back."
)
RESTARTING = Closing("restarting", 1012, "the host is restarting", "Resume at once, here or at another host.")
FAILED = Closing("failed", 1011, "the host failed", "Resume in a moment.")

CLOSINGS = (
    ENDED, IDLE, TOO_LONG, TOO_SLOW, MISUNDERSTOOD, BANNED, REPLACED, UNKNOWN, FULL, PROVIDER, EXPIRED,
    FORSAKEN, RESTARTING, FAILED,
)  # fmt: skip
"""All of them."""
