"""A session: its user, mode, registry version, state machine and turns."""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import os
import secrets
from collections import deque
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Protocol

import orjson

from jackfield.contract.context import Mode
from jackfield.session import fenced_record
from jackfield.store import Store

RECOVERY_SECONDS = 24 * 3600

FORMAT = 3
"""The format of everything that is saved of a session; it grows with every change of a stored name."""

SAID_LIMIT = 4000
"""How much of what a user says in a turn is remembered, in characters."""

_log = logging.getLogger(__name__)


class Publish(Protocol):
    """Tells the clients of a session what happens in it."""

    def __call__(self, event: str, fields: Mapping[str, Any], *, once: bool = False) -> None:
        """Publish an event; `once` where another process may have published it before."""


# What an intent changes for the turn it was asked in.
_OF_A_TURN = ("suppress_audio", "suppress_transcript")


def _nobody(event: str, fields: Mapping[str, Any], *, once: bool = False) -> None:
    """Where events go while no client is connected."""


class SessionFormatError(Exception):
    """A session was saved by a version of Jackfield with another format."""


class Session:
    """One conversation. The mode, the user and the registry version are fixed when it is made."""

    __slots__ = (
        "_digest", "_flags", "_revision", "_secret", "_state", "began", "chains", "epoch", "history", "id",
        "mode", "publish", "registry_version", "roles", "turn", "user", "waiting",
    )  # fmt: skip

    def __init__(
        self,
        mode: Mode,
        registry_version: str,
        *,
        session_id: str | None = None,
        user: str | None = None,
        roles: frozenset[str] = frozenset(),
        began: float = 0.0,
        secret: str | None = None,
        publish: Publish = _nobody,
    ) -> None:
        self.id = session_id or os.urandom(16).hex()
        self.began = began
        """When it was opened, by the store's clock."""
        self.epoch = 0
        """The number of whoever carries it; who takes it over has a larger one, and a record of its own."""
        self._revision = 0
        """How often it was saved."""
        self._secret = secret or secrets.token_urlsafe(32)
        self._digest = _digest(self._secret)
        self.mode: Mode = mode
        self.registry_version = registry_version
        self.user = user
        self.roles = roles
        self.publish = publish
        self.turn = Turn(1)
        self.history: deque[Turn] = deque(maxlen=HISTORY)
        self.waiting: set[Any] = set()
        """The calls that wait to be tried again: no handler of theirs could be stopped."""
        self.chains: dict[str, Any] = {}
        self._state = State.INITIALIZING
        self._flags: dict[str, Any] = {}

    @property
    def state(self) -> State:
        """What the session is doing."""
        return self._state

    def transition(self, state: State) -> bool:
        """Go to another state; an illegal way is refused and logged."""
        if not can_transition(self._state, state):
            _log.warning("session %s may not go from %s to %s", self.id, self._state, state)
            return False
        self._state = state
        return True

    @property
    def active(self) -> bool:
        """Whether the conversation goes on."""
        return self._state is not State.TERMINATED

    @property
    def flags(self) -> Mapping[str, Any]:
        """What intents have asked for, by name: an end, suppressed audio, a pending message."""
        return self._flags

    def set_flag(self, name: str, value: Any) -> None:
        """Record what an intent asked for; only intent handlers call this."""
        self._flags[name] = value

    @property
    def token(self) -> str:
        """What its client holds to take it up again; only a hash of it is kept."""
        return f"{self.id}.{self._secret}"

    def verify_secret(self, secret: str) -> bool:
        """Whether this is the second half of its token; from here on the session can derive again."""
        if not hmac.compare_digest(_digest(secret), self._digest):
            return False
        self._secret = secret
        return True

    def derive(self, name: str) -> str:
        """A secret for one purpose that only the epoch of the token, and this session, can know."""
        derived = hmac.digest(self._secret.encode(), name.encode(), "sha256")
        return base64.urlsafe_b64encode(derived).rstrip(b"=").decode()

    @property
    def connected(self) -> bool:
        """Whether somebody gets what is published."""
        return self.publish is not _nobody

    def begin_turn(self) -> Turn:
        """The user spoke: a new turn with a fresh budget, and nothing of the last one suppressed."""
        if self._flags:
            for name in _OF_A_TURN:
                self._flags.pop(name, None)
        self.history.append(self.turn)
        self.turn = Turn(self.turn.number + 1)
        return self.turn

    def add_user_text(self, words: str) -> None:
        """The user's own words, as they come in; policies ask them what the user wanted."""
        self.turn.said = f"{self.turn.said} {words}".strip()[:SAID_LIMIT]

    async def save(self, store: Store) -> None:
        """Keep what it takes to go on after a reconnect or a restart."""
        self._revision += 1
        wire = {
            "format": FORMAT,
            "revision": self._revision,
            "mode": self.mode,
            "user": self.user,
            "roles": sorted(self.roles),
            "began": self.began,
            "token": self._digest,
            "registryVersion": self.registry_version,
            "state": self._state.value,
            "flags": self._flags,
            "turn": self.turn.to_wire(),
            "history": [turn.to_wire() for turn in self.history],
        }
        await fenced_record.write(store, _name(self.id), self.epoch, orjson.dumps(wire), ttl=RECOVERY_SECONDS)

    async def save_if_unchanged(self, store: Store) -> bool:
        """The same for one who used it without carrying it; false where somebody saved it meanwhile."""
        saved = await fenced_record.latest(store, _name(self.id))
        if saved is not None:
            revision = orjson.loads(saved.value).get("revision", 0)
            if (saved.epoch, revision) != (self.epoch, self._revision):
                return False
        await self.save(store)
        return True

    @classmethod
    async def resume(cls, session_id: str, store: Store, publish: Publish = _nobody) -> Session | None:
        """A session as its latest epoch saved it, or nothing when it was not or is too old.

        `SessionFormatError` when another version of Jackfield saved it.
        """
        saved = await fenced_record.latest(store, _name(session_id))
        if saved is None:
            return None
        wire = orjson.loads(saved.value)
        if wire.get("format") != FORMAT:
            raise SessionFormatError(
                f"Session {session_id} was saved by another version of Jackfield; begin a new one."
            )
        session = cls(wire["mode"], wire["registryVersion"], session_id=session_id, publish=publish)
        session.user, session.roles, session.began = wire["user"], frozenset(wire["roles"]), wire["began"]
        session.epoch = saved.epoch
        session._revision = wire.get("revision", 0)
        session._digest = wire["token"]
        session._state = State(wire["state"])
        session._flags = wire["flags"]
        session.turn = Turn.from_wire(wire["turn"])
        session.history.extend(Turn.from_wire(turn) for turn in wire["history"])
        return session


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _name(session_id: str) -> str:
    return f"session/{session_id}"


HISTORY = 5
"""How many turns a session remembers."""


class Turn:
    """What the user said in one turn, and its counters; policies keep those, and they end with it."""

    __slots__ = ("calls", "empty", "group", "number", "repeated", "retrievals", "said", "tool_ms")

    def __init__(self, number: int) -> None:
        self.number = number
        self.group: str | None = None
        """The name under which a client groups calls of its own into one turn."""
        self.said = ""
        self.calls = 0
        self.retrievals = 0
        self.tool_ms = 0.0
        self.repeated: dict[bytes, int] = {}
        self.empty: dict[str, int] = {}

    def to_wire(self) -> dict[str, Any]:
        """The turn as it is kept for a session that is taken up again."""
        return {
            "number": self.number,
            "group": self.group,
            "said": self.said,
            "calls": self.calls,
            "retrievals": self.retrievals,
            "toolMs": self.tool_ms,
            "repeated": {key.hex(): count for key, count in self.repeated.items()},
            "empty": self.empty,
        }

    @classmethod
    def from_wire(cls, wire: dict[str, Any]) -> Turn:
        """A turn as `to_wire` wrote it."""
        turn = cls(wire["number"])
        turn.said, turn.group = wire.get("said", ""), wire.get("group")
        turn.calls, turn.retrievals, turn.tool_ms = wire["calls"], wire["retrievals"], wire["toolMs"]
        turn.repeated = {bytes.fromhex(key): count for key, count in wire["repeated"].items()}
        turn.empty = dict(wire["empty"])
        return turn


class State(StrEnum):
    """What a session is doing."""

    INITIALIZING = "initializing"
    READY = "ready"
    LISTENING = "listening"
    PROCESSING = "processing"
    SPEAKING = "speaking"
    EXECUTING_TOOL = "executing_tool"
    RECONNECTING = "reconnecting"
    TERMINATED = "terminated"


_S = State
_AWAKE = {_S.READY, _S.LISTENING, _S.PROCESSING, _S.SPEAKING, _S.EXECUTING_TOOL}
# Any awake state may lose its connection or end; a lost one may come back to where it was.
_ALWAYS = {_S.RECONNECTING, _S.TERMINATED}

TRANSITIONS: dict[State, frozenset[State]] = {
    _S.INITIALIZING: frozenset({_S.READY} | _ALWAYS),
    _S.READY: frozenset({_S.LISTENING, _S.PROCESSING, _S.SPEAKING} | _ALWAYS),
    _S.LISTENING: frozenset({_S.READY, _S.PROCESSING} | _ALWAYS),
    _S.PROCESSING: frozenset({_S.READY, _S.LISTENING, _S.SPEAKING, _S.EXECUTING_TOOL} | _ALWAYS),
    _S.SPEAKING: frozenset({_S.READY, _S.LISTENING, _S.PROCESSING, _S.EXECUTING_TOOL} | _ALWAYS),
    _S.EXECUTING_TOOL: frozenset({_S.READY, _S.LISTENING, _S.PROCESSING, _S.SPEAKING} | _ALWAYS),
    _S.RECONNECTING: frozenset(_AWAKE | {_S.TERMINATED}),
    _S.TERMINATED: frozenset(),
}


def can_transition(before: State, after: State) -> bool:
    """Whether a session may go from one state to another; staying is always allowed."""
    return before is after or after in TRANSITIONS[before]
