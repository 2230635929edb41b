"""Close codes: the reasons for which the host closes a WebSocket, and the client's next step."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class NextStep(Enum):
    """A client's next step after a close."""

    RESUME_NOW = "resume_now"
    RESUME_LATER = "resume_later"
    """Resume after a pause."""
    RESUME_ON_INPUT = "resume_on_input"
    """Resume when the user sends a message or speaks."""
    RESUME_WITH_NEW_TOKEN = "resume_with_new_token"  # noqa: S105 - not a secret
    """Resume with a new access token, if the client can get one."""
    DONE = "done"
    """Nothing: the session is over, as expected."""
    FAIL = "fail"
    """Nothing, except to inform the user: the session cannot continue."""


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
    "idle",
    4001,
    "the session was idle for too long",
    "Resume when the user returns.",
    NextStep.RESUME_ON_INPUT,
)
MAX_DURATION = CloseReason(
    "max_duration", 4002, "the session reached its maximum duration", "Start a new session.", NextStep.DONE
)
SLOW_CLIENT = CloseReason(
    "slow_client",
    4003,
    "the client reads too slowly",
    "Resume over a faster connection.",
    NextStep.RESUME_LATER,
)
INVALID_MESSAGE = CloseReason(
    "invalid_message", 4004, "the client does not follow the protocol", "Fix the client.", NextStep.FAIL
)
BANNED = CloseReason(
    "banned", 4005, "the user is banned", "Wait for the time in the preceding `error`.", NextStep.FAIL
)
REPLACED = CloseReason(
    "replaced", 4006, "another connection took over the session", "Do nothing.", NextStep.DONE
)
UNKNOWN_SESSION = CloseReason(
    "unknown_session", 4007, "there is no such session", "Start a new session.", NextStep.FAIL
)
TOO_MANY_SESSIONS = CloseReason(
    "too_many_sessions", 4008, "too many sessions are open", "Try again later.", NextStep.RESUME_LATER
)
PROVIDER_UNAVAILABLE = CloseReason(
    "provider_unavailable", 4009, "the model cannot be reached", "Resume in a moment.", NextStep.RESUME_LATER
)
EXPIRED_TOKEN = CloseReason(
    "expired_token",
    4010,
    "the access token has expired",
    "Get a new token, then resume.",
    NextStep.RESUME_WITH_NEW_TOKEN,
)
ABANDONED = CloseReason(
    "abandoned",
    4011,
    "no client was connected any more",
    "Resume when the user returns.",
    NextStep.RESUME_ON_INPUT,
)
CONVERSATIONS_OFF = CloseReason(
    "conversations_off",
    4012,
    "conversations are off on this host",
    "Set up a provider; `GET /status` and the output of `jackfield serve` say how.",
    NextStep.FAIL,
)
RESTARTING = CloseReason(
    "restarting",
    1012,
    "the host is restarting",
    "Resume at once, on this or another host.",
    NextStep.RESUME_NOW,
)
INTERNAL = CloseReason("internal", 1011, "the host failed", "Resume in a moment.", NextStep.RESUME_LATER)

CLOSE_REASONS = (
    ENDED, IDLE, MAX_DURATION, SLOW_CLIENT, INVALID_MESSAGE, BANNED, REPLACED, UNKNOWN_SESSION,
    TOO_MANY_SESSIONS, PROVIDER_UNAVAILABLE, EXPIRED_TOKEN, ABANDONED, CONVERSATIONS_OFF, RESTARTING,
    INTERNAL,
)  # fmt: skip
