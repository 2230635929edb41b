"""Why the host closes a WebSocket, and what the client does next."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class NextStep(Enum):
    """What a client does after a close."""

    RESUME_NOW = "resume_now"
    RESUME_LATER = "resume_later"
    """Resume after a pause."""
    RESUME_ON_INPUT = "resume_on_input"
    """Resume when the user says something."""
    RESUME_WITH_NEW_TOKEN = "resume_with_new_token"  # noqa: S105 - not a secret
    """Resume with a new access token, if the client can get one."""
    DONE = "done"
    """Nothing: the session is over, as expected."""
    FAIL = "fail"
    """Nothing: the session cannot continue, and the user has to know."""


class CloseReason(NamedTuple):
    """A close code of the protocol."""

    name: str
    """Also the `code` of the `error` that precedes the close."""
    code: int
    reason: str
    """The text in the close frame."""
    advice: str
    """What to do, for the developer of a client."""
    next_step: NextStep


ENDED = CloseReason(
    "ended", 4000, "the session has ended", "Start a new session when the user wants one.", NextStep.DONE
)
IDLE = CloseReason(
    "idle", 4001, "the session was idle for too long", "Resume when the user returns.",
    NextStep.RESUME_ON_INPUT,
)  # fmt: skip
TOO_LONG = CloseReason(
    "too_long", 4002, "the session reached its maximum duration", "Start a new session.", NextStep.DONE
)
TOO_SLOW = CloseReason(
    "too_slow", 4003, "the client reads too slowly", "Resume over a faster connection.",
    NextStep.RESUME_LATER,
)  # fmt: skip
MISUNDERSTOOD = CloseReason(
    "misunderstood", 4004, "the client does not follow the protocol", "Fix the client.", NextStep.FAIL
)
BANNED = CloseReason(
    "banned", 4005, "the user is banned", "Wait for the time in the preceding `error`.", NextStep.FAIL
)
REPLACED = CloseReason(
    "replaced", 4006, "another connection took over the session", "Do nothing.", NextStep.DONE
)
UNKNOWN = CloseReason("unknown", 4007, "there is no such session", "Start a new session.", NextStep.FAIL)
FULL = CloseReason("full", 4008, "too many sessions are open", "Try again later.", NextStep.RESUME_LATER)
PROVIDER = CloseReason(
    "provider", 4009, "the model cannot be reached", "Resume in a moment.", NextStep.RESUME_LATER
)
EXPIRED = CloseReason(
    "expired", 4010, "the access token has expired", "Get a new token, then resume.",
    NextStep.RESUME_WITH_NEW_TOKEN,
)  # fmt: skip
FORSAKEN = CloseReason(
    "forsaken", 4011, "no client was connected any more", "Resume when the user returns.",
    NextStep.RESUME_ON_INPUT,
)  # fmt: skip
RESTARTING = CloseReason(
    "restarting", 1012, "the host is restarting", "Resume at once, on this or another host.",
    NextStep.RESUME_NOW,
)  # fmt: skip
FAILED = CloseReason("failed", 1011, "the host failed", "Resume in a moment.", NextStep.RESUME_LATER)

CLOSE_REASONS = (
    ENDED, IDLE, TOO_LONG, TOO_SLOW, MISUNDERSTOOD, BANNED, REPLACED, UNKNOWN, FULL, PROVIDER, EXPIRED,
    FORSAKEN, RESTARTING, FAILED,
)  # fmt: skip
