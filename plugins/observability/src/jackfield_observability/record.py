"""A finished call as one line of JSON."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

import orjson
from jackfield.contract.response import ToolResponse
from jackfield.governance import Call
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session

from jackfield_observability.redaction import Redactor, identifier, name, text

MAX_LINE = 64 * 1024
"""A line beyond this many bytes is written without what makes it long."""

MAX_MET = 10_000
"""How many tools and sessions are remembered."""

_OPTIONS = orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z


class Facts(NamedTuple):
    """What a line says of a call, taken when it is over.

    A call that waited to be written would keep its arguments and its answer alive meanwhile, and for as long
    the garbage collector would look through them; that costs more than the line itself.
    """

    tool: RegisteredTool
    session: Session
    began: float
    ended: float
    error: str | None
    stopped: str
    turn: int
    call_id: str | None
    key: str
    parent: str | None
    confirmed: bool
    defaults_filled: bool
    policies: tuple[str, ...]
    trail: dict[str, str] | None
    characters: int
    more: tuple[Call, ToolResponse] | None


def facts_of(call: Call, response: ToolResponse, *, arguments: bool) -> Facts:
    """Take down a call that is over; on the path of every call."""
    failure = response.failure
    wire = call.wire or b""
    parent = call.parent
    return Facts._make(
        (
            call.tool,
            call.session,
            call.began,
            time.perf_counter(),
            None if failure is None else failure.type.value,
            call.stopped,
            call.turn.number,
            call.call_id,
            call.key,
            parent.tool.id if parent is not None else None,
            call.confirmed,
            call.defaults_filled,
            call.policies,
            call.trail() if call.decisions else None,
            len(wire) if wire.isascii() else len(wire.decode()),
            (call, response) if arguments or call.notes or call.meta or response.meta else None,
        )
    )


class Records:
    """Writes lines; knows what is the same in every line of a tool it has met."""

    def __init__(self, *, arguments: bool) -> None:
        self._arguments = arguments
        self._met: dict[str, _Met] = {}
        self._sessions: dict[str, bytes] = {}
        self._clock = _Clock()

    def call(self, facts: Facts) -> bytes:
        """The line of one call."""
        met = self._met.get(facts.tool.id)
        if met is None or met.tool is not facts.tool:
            met = self._meet(facts.tool)
        same = met.always + (self._sessions.get(facts.session.id) or self._session(facts.session))
        record = self._record(facts)
        more = self._more(*facts.more, met.redactor) if facts.more else {}
        line = same + orjson.dumps({**record, **more} if more else record, option=_OPTIONS)[1:]
        if len(line) <= MAX_LINE:
            return line
        left_out = f"[left out: the line had {len(line)} bytes]"
        return same + orjson.dumps({**record, **dict.fromkeys(more, left_out)}, option=_OPTIONS)[1:]

    def _record(self, facts: Facts) -> dict[str, Any]:
        """What differs from call to call."""
        return {
            "time": self._clock.read(facts.began),
            "durationMs": round((facts.ended - facts.began) * 1000, 3),
            "ok": facts.error is None,
            "error": facts.error,
            "stopped": facts.stopped or None,
            "turn": facts.turn,
            "callId": None if facts.call_id is None else identifier(facts.call_id),
            "key": identifier(facts.key) or None,
            "parent": facts.parent,
            "confirmed": facts.confirmed,
            "defaultsFilled": facts.defaults_filled,
            "decisions": _decisions(facts),
            "responseCharacters": facts.characters,
        }

    def _meet(self, tool: RegisteredTool) -> _Met:
        # Ids that a model made up have no end. A registry that was reloaded brings another tool under the
        # same id, with marks of its own.
        if len(self._met) >= MAX_MET:
            self._met.clear()
        met = self._met[tool.id] = _Met(tool)
        return met

    def _session(self, session: Session) -> bytes:
        """What is the same in every line of a session, written out once."""
        if len(self._sessions) >= MAX_MET:
            self._sessions.clear()
        facts = {
            "pinnedVersion": session.registry_version,
            "session": name(session.id),
            "user": None if session.user is None else name(session.user),
            "mode": session.mode,
        }
        written = self._sessions[session.id] = orjson.dumps(facts)[1:-1] + b","
        return written

    def _more(self, call: Call, response: ToolResponse, redactor: Redactor) -> dict[str, Any]:
        """What others wrote, redacted; most calls have none of it."""
        # Whoever ended a call early may have done so before its arguments were judged.
        secrets = redactor.secrets(call.args, validated=not call.ended_by)
        more: dict[str, Any] = {}
        if self._arguments:
            more["arguments"] = redactor.arguments(call.args, secrets)
        if call.meta or response.meta:
            more["meta"] = redactor.shown({**call.meta, **response.meta}, secrets)
        if call.notes:
            more["notes"] = redactor.shown(call.notes, secrets)
        return more


class _Met:
    """A tool whose calls were recorded before: what to hide in its arguments, and what begins its lines."""

    def __init__(self, tool: RegisteredTool) -> None:
        self.tool = tool
        self.redactor = Redactor(tool.manifest.parameters)
        facts = {
            "event": "call",
            "tool": text(tool.id),
            "toolVersion": tool.manifest.version,
            "registryVersion": tool.registry_version,
            "category": tool.manifest.category,
        }
        # Written out once and left open, because it is the same in every line.
        self.always = orjson.dumps(facts)[:-1] + b","


def dropped(lines: int) -> bytes:
    """The line that stands where others are missing."""
    record = {"time": datetime.now(UTC), "event": "dropped", "lines": lines}
    return orjson.dumps(record, option=_OPTIONS)


class _Clock:
    """Reads the performance counter as a date, which is the same for all of a second but its fraction."""

    def __init__(self) -> None:
        self._second = -1
        self._date = ""

    def read(self, counter: float) -> str:
        # Looked up anew each time, because the wall clock may be set while a host runs.
        moment = time.time() - (time.perf_counter() - counter)
        second = int(moment)
        if second != self._second:
            self._second, self._date = (
                second,
                datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S"),
            )
        return f"{self._date}.{int((moment - second) * 1_000_000):06}Z"


def _decisions(facts: Facts) -> Any:
    """What each policy decided; where all let the call pass, the same words every time."""
    if facts.trail is not None:
        return {policy: name(decision) for policy, decision in facts.trail.items()}
    return _all_passed(facts.policies, facts.defaults_filled)


@lru_cache(1024)
def _all_passed(policies: tuple[str, ...], defaults_filled: bool) -> orjson.Fragment:
    trail = dict.fromkeys(policies, "pass")
    if defaults_filled:
        trail["validation"] = "defaults filled in"
    return orjson.Fragment(orjson.dumps(trail))
