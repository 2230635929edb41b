"""A session with a user: its state machine, its turns, and its saved form.

`save` writes everything that is needed to resume a session after a reconnect or a restart. Records are
fenced by the owner's epoch (see `fenced_record`).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import os
import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

import orjson

from jackfield.contract.context import Mode, ModelAnswer, ModelRequest, UserAnswer, UserQuestion
from jackfield.session import fenced_record
from jackfield.store import Store
from jackfield.toolsets import Toolset

FORMAT = 3
"""The format of the saved session; it increases whenever a stored name changes."""

RECOVERY_SECONDS = 24 * 3600

HISTORY_LENGTH = 5
"""The number of turns that a session keeps in addition to the current one."""

MAX_USER_TEXT = 4000
"""Maximum length of the user's text that is kept for a turn, in characters."""

# Flags that intents set for the current turn only.
_TURN_FLAGS = ("suppress_audio", "suppress_transcript")

_log = logging.getLogger(__name__)


class State(StrEnum):
    """The state of a session."""

    INITIALIZING = "initializing"
    READY = "ready"
    LISTENING = "listening"
    PROCESSING = "processing"
    SPEAKING = "speaking"
    EXECUTING_TOOL = "executing_tool"
    RECONNECTING = "reconnecting"
    TERMINATED = "terminated"


_S = State

_ACTIVE = {_S.READY, _S.LISTENING, _S.PROCESSING, _S.SPEAKING, _S.EXECUTING_TOOL}

# A session in any active state may lose its connection or end, and may reconnect to any active state.
_FROM_ANY_STATE = {_S.RECONNECTING, _S.TERMINATED}

TRANSITIONS: dict[State, frozenset[State]] = {
    _S.INITIALIZING: frozenset({_S.READY} | _FROM_ANY_STATE),
    _S.READY: frozenset({_S.LISTENING, _S.PROCESSING, _S.SPEAKING} | _FROM_ANY_STATE),
    _S.LISTENING: frozenset({_S.READY, _S.PROCESSING} | _FROM_ANY_STATE),
    _S.PROCESSING: frozenset({_S.READY, _S.LISTENING, _S.SPEAKING, _S.EXECUTING_TOOL} | _FROM_ANY_STATE),
    _S.SPEAKING: frozenset({_S.READY, _S.LISTENING, _S.PROCESSING, _S.EXECUTING_TOOL} | _FROM_ANY_STATE),
    _S.EXECUTING_TOOL: frozenset({_S.READY, _S.LISTENING, _S.PROCESSING, _S.SPEAKING} | _FROM_ANY_STATE),
    _S.RECONNECTING: frozenset(_ACTIVE | {_S.TERMINATED}),
    _S.TERMINATED: frozenset(),
}


@dataclass(slots=True, eq=False)
class Turn:
    """One user turn: the text, and the counters that policies keep for it."""

    number: int
    group: str | None = None
    """The client's name for a turn, with which it groups its own calls."""
    user_text: str = ""
    calls: int = 0
    retrievals: int = 0
    tool_ms: float = 0.0
    repeated_calls: dict[bytes, int] = field(default_factory=dict)
    """How often each call was made, by fingerprint."""
    empty_results: dict[str, int] = field(default_factory=dict)
    """How many results of each tool were empty; calls that ran at the same time count once."""
    empty_at: dict[str, float] = field(default_factory=dict, init=False)
    """When the last counted empty result of each tool arrived, by this process's performance counter."""

    def to_wire(self) -> dict[str, Any]:
        """Return the turn's saved form."""
        return {
            "number": self.number,
            "group": self.group,
            "userText": self.user_text,
            "calls": self.calls,
            "retrievals": self.retrievals,
            "toolMs": self.tool_ms,
            "repeatedCalls": {key.hex(): count for key, count in self.repeated_calls.items()},
            "emptyResults": self.empty_results,
        }

    @classmethod
    def from_wire(cls, wire: dict[str, Any]) -> Turn:
        """Create a turn from its saved form."""
        turn = cls(wire["number"])
        turn.user_text, turn.group = wire.get("userText", ""), wire.get("group")
        turn.calls, turn.retrievals, turn.tool_ms = wire["calls"], wire["retrievals"], wire["toolMs"]
        turn.repeated_calls = {bytes.fromhex(key): count for key, count in wire["repeatedCalls"].items()}
        turn.empty_results = dict(wire["emptyResults"])
        return turn


class Publish(Protocol):
    """Publishes the events of a session to its clients."""

    def __call__(self, event: str, fields: Mapping[str, Any], *, once: bool = False) -> None:
        """Publish an event; set `once` if another process may already have published it."""


AskUser = Callable[[UserQuestion], Awaitable[UserAnswer]]
"""Puts a running call's question to the user."""

AskModel = Callable[[ModelRequest, str | None], Awaitable[ModelAnswer | None]]
"""Puts the request of a running call with this id to the session's model."""


def _discard(event: str, fields: Mapping[str, Any], *, once: bool = False) -> None:
    """Drop an event, because no client can be connected."""


class SessionFormatError(Exception):
    """A session was saved by a version of Jackfield with a different format."""


class Session:
    """One conversation. Its mode, user and toolset never change; only `repin` changes its registry."""

    __slots__ = (
        "_digest", "_key", "_revision", "_saved", "_secret", "ask_model", "ask_user", "chains", "epoch",
        "flags", "history", "id", "mode", "model", "opened_at", "organisation", "pending_retries", "publish",
        "registry_version", "repinned", "roles", "state", "toolset", "turn", "user",
    )  # fmt: skip

    def __init__(
        self,
        mode: Mode,
        registry_version: str,
        *,
        session_id: str | None = None,
        user: str | None = None,
        roles: frozenset[str] = frozenset(),
        organisation: str | None = None,
        toolset: Toolset | None = None,
        model: str | None = None,
        opened_at: float = 0.0,
        secret: str | None = None,
        publish: Publish = _discard,
    ) -> None:
        self.id = session_id or os.urandom(16).hex()
        self.opened_at = opened_at
        """When it was opened, by the store's clock."""
        self.epoch = 0
        """Fencing epoch; each takeover by another process gets a larger one."""
        self._key = (-1, "")
        """The epoch for which the record's key was last computed, and that key."""
        self._revision = 0
        """How many times it was saved."""
        self._saved: bytes | None = None
        """The record as this process last loaded or saved it."""
        self._secret = secret or secrets.token_urlsafe(32)
        self._digest = _digest(self._secret)
        self.mode: Mode = mode
        self.registry_version = registry_version
        self.repinned = False
        """True if `repin` changed the registry since the session was opened or loaded."""
        self.user = user
        self.roles = roles
        self.organisation = organisation
        """The organisation of the user, if the user's identity states one."""
        self.toolset = toolset
        """The tools that it is pinned to; None for all tools as they are."""
        self.model = model
        """The name in the settings of the model that the user chose; None for the provider's own model."""
        self.publish = publish
        self.ask_user: AskUser | None = None
        """Asks the user with a form; set only in a process that connects the session to its clients."""
        self.ask_model: AskModel | None = None
        """Asks the session's model outside the conversation; set only in a process that connects to it."""
        self.turn = Turn(1)
        self.history: deque[Turn] = deque(maxlen=HISTORY_LENGTH)
        self.pending_retries: set[Any] = set()
        """The calls that are waiting for a retry; an interruption has to cancel them too."""
        self.chains: dict[str, Any] = {}
        """The policy chains by tool."""
        self.state = State.INITIALIZING
        """The current state; `transition` changes it."""
        self.flags: dict[str, Any] = {}
        """The flags that intents have set, by name: an end, suppressed audio, a pending message."""

    def transition(self, state: State) -> bool:
        """Change the state; an invalid transition is rejected and logged."""
        if state is not self.state and state not in TRANSITIONS[self.state]:
            _log.warning("session %s: invalid transition from %s to %s", self.id, self.state, state)
            return False
        self.state = state
        return True

    @property
    def active(self) -> bool:
        """False once the session has ended."""
        return self.state is not State.TERMINATED

    def set_flag(self, name: str, value: Any) -> None:
        """Set a flag; only intent handlers call this."""
        self.flags[name] = value

    def repin(self, registry_version: str) -> None:
        """Pin the session to another registry, on a development host that reloads it."""
        self.registry_version = registry_version
        self.repinned = True
        self.chains.clear()

    @property
    def token(self) -> str:
        """The token with which a client resumes the session; only its hash is saved."""
        return f"{self.id}.{self._secret}"

    def verify_secret(self, secret: str) -> bool:
        """Check the secret half of the token; on success the session can derive secrets again."""
        if not hmac.compare_digest(_digest(secret), self._digest):
            return False
        self._secret = secret
        return True

    def renew_secret(self) -> None:
        """Replace the secret, which invalidates earlier tokens and all secrets derived from the old one."""
        self._secret = secrets.token_urlsafe(32)
        self._digest = _digest(self._secret)

    def derive(self, name: str) -> str:
        """Return a secret for one purpose, derived from the session's secret; it changes with that secret."""
        derived = hmac.digest(self._secret.encode(), name.encode(), "sha256")
        return base64.urlsafe_b64encode(derived).rstrip(b"=").decode()

    @property
    def connected(self) -> bool:
        """True if events are published to clients."""
        return self.publish is not _discard

    def begin_turn(self, text: str = "") -> Turn:
        """Begin a new turn with the user's text, with new counters and without the flags of the last turn."""
        if self.flags:
            for name in _TURN_FLAGS:
                self.flags.pop(name, None)
        self.history.append(self.turn)
        self.turn = Turn(self.turn.number + 1, user_text=text.strip()[:MAX_USER_TEXT])
        return self.turn

    def add_user_text(self, text: str) -> None:
        """Add the user's text to the turn; policies use it to find out what the user asked for."""
        self.turn.user_text = f"{self.turn.user_text} {text}".strip()[:MAX_USER_TEXT]

    def save(self, store: Store) -> Awaitable[None]:
        """Save everything that is needed to resume the session."""
        self._revision += 1
        wire = {
            "format": FORMAT,
            "revision": self._revision,
            "mode": self.mode,
            "user": self.user,
            "roles": sorted(self.roles),
            "openedAt": self.opened_at,
            "token": self._digest,
            "registryVersion": self.registry_version,
            "state": self.state.value,
            "flags": self.flags,
            "turn": self.turn.to_wire(),
            "history": [turn.to_wire() for turn in self.history],
        }
        if self.organisation is not None:
            wire["organisation"] = self.organisation
        if self.model is not None:
            wire["model"] = self.model
        if self.toolset is not None:
            wire["toolset"] = self.toolset.to_wire()
        epoch, key = self._key
        if epoch != self.epoch:
            key = fenced_record.key_for(_record_name(self.id), self.epoch)
            self._key = (self.epoch, key)
        # A copy of the right size, because the result of orjson keeps a buffer of 4 kB or more.
        self._saved = memoryview(orjson.dumps(wire)).tobytes()
        return store.put(key, self._saved, ttl=RECOVERY_SECONDS)

    async def save_if_unchanged(self, store: Store) -> bool:
        """Save a session that this process does not own; False if its owner has saved it since the load."""
        if not await self.is_current(store):
            return False
        await self.save(store)
        return True

    async def is_current(self, store: Store) -> bool:
        """Return whether no other process has saved, taken over or deleted the session.

        This covers the time since the session was loaded or saved here. A process that takes a session over
        removes the earlier record (see `remove_superseded`).
        """
        return await store.get(fenced_record.key_for(_record_name(self.id), self.epoch)) == self._saved

    async def remove_superseded(self, store: Store) -> None:
        """Remove the records of earlier owners, once this owner has saved its own."""
        await fenced_record.erase_superseded(store, _record_name(self.id))

    @classmethod
    async def resume(cls, session_id: str, store: Store, publish: Publish = _discard) -> Session | None:
        """Load a session as its latest epoch saved it; returns None if it is unknown or has expired.

        Raises `SessionFormatError` if a version of Jackfield with a different format saved it.
        """
        saved = await fenced_record.latest(store, _record_name(session_id))
        if saved is None:
            return None
        wire = orjson.loads(saved.value)
        if wire.get("format") != FORMAT:
            raise SessionFormatError(
                f"Session {session_id} was saved by a different version of Jackfield; start a new session."
            )
        session = cls(wire["mode"], wire["registryVersion"], session_id=session_id, publish=publish)
        session.user, session.roles = wire["user"], frozenset(wire["roles"])
        session.organisation = wire.get("organisation")
        session.model = wire.get("model")
        if (pinned := wire.get("toolset")) is not None:
            session.toolset = Toolset.from_wire(pinned)
        session.opened_at = wire["openedAt"]
        session.epoch = saved.epoch
        session._revision = wire.get("revision", 0)
        session._saved = saved.value
        session._digest = wire["token"]
        session.state = State(wire["state"])
        session.flags = wire["flags"]
        session.turn = Turn.from_wire(wire["turn"])
        session.history.extend(Turn.from_wire(turn) for turn in wire["history"])
        return session


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _record_name(session_id: str) -> str:
    """Return the name of a session's record."""
    return f"session/{session_id}"
