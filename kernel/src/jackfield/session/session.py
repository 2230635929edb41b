"""A session: who talks, in which mode, on which registry, and where the conversation stands."""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import os
import secrets
from collections import deque
from collections.abc import Awaitable, Mapping
from typing import Any, Protocol

import orjson

from jackfield.contract.context import Mode
from jackfield.session import fenced_record
from jackfield.session.session import HISTORY, State, Turn, can_transition
from jackfield.store import Store

RECOVERY_SECONDS = 24 * 3600

FORMAT = 2
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
        "_digest",
        "_revision",
        "_secret",
        "began",
        "chains",
        "epoch",
        "flags",
        "history",
        "id",
        "mode",
        "publish",
        "registry_version",
        "roles",
        "state",
        "turn",
        "user",
        "waiting",
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
        self.state = State.INITIALIZING
        """What the session is doing; `go` changes it."""
        self.changes: dict[str, Any] = {}
        """What intents have asked for, by name: an end, suppressed audio, a pending message."""

    def transition(self, state: State) -> bool:
        """Go to another state; an illegal way is refused and logged."""
        if not can_transition(self.state, state):
            _log.warning("session %s may not go from %s to %s", self.id, self.state, state)
            return False
        self.state = state
        return True

    @property
    def active(self) -> bool:
        """Whether the conversation goes on."""
        return self.state is not State.TERMINATED

    def set_flag(self, name: str, value: Any) -> None:
        """Record what an intent asked for; only intent handlers call this."""
        self.changes[name] = value

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
        if self.changes:
            for name in _OF_A_TURN:
                self.changes.pop(name, None)
        self.history.append(self.turn)
        self.turn = Turn(self.turn.number + 1)
        return self.turn

    def add_user_text(self, words: str) -> None:
        """The user's own words, as they come in; policies ask them what the user wanted."""
        self.turn.said = f"{self.turn.said} {words}".strip()[:SAID_LIMIT]

    def save(self, store: Store) -> Awaitable[None]:
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
            "state": self.state.value,
            "flags": self.changes,
            "turn": self.turn.to_wire(),
            "history": [turn.to_wire() for turn in self.history],
        }
        key = record.key_of(_name(self.id), self.epoch)
        return store.put(key, orjson.dumps(wire), ttl=RECOVERY_SECONDS)

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
        session.state = State(wire["state"])
        session.flags = wire["flags"]
        session.turn = Turn.from_wire(wire["turn"])
        session.history.extend(Turn.from_wire(turn) for turn in wire["history"])
        return session


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _name(session_id: str) -> str:
    """The name of a session's record."""
    return f"session/{session_id}"
