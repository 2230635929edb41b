"""A finished call as one line of JSON."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

import orjson
from jackfield.contract.response import Failure, ToolResponse
from jackfield.governance import Call
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session

from jackfield_observability.redaction import Redactor, identifier, name, text

MAX_LINE = 64 * 1024
"""A line beyond this many bytes is written without what makes it long."""

MAX_MET = 10_000
"""How many tools and sessions are remembered."""

_OPTIONS = orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z


# What differs from call to call. It is put together as text: to make a dictionary of it first and write that
# out costs more than all the rest.
_OWN = b'"time":"%b.%06dZ","durationMs":%.3f,%b,"turn":%d,%b,"responseCharacters":%d,'

Line = tuple[bytes, bytes, bytes, bytes]
"""What all lines of a tool share, what those of a session do, what is this call's own, what policies decided.

In parts, because three of them are there already, and a whole line would be four times as much to keep.
"""


class Unfinished(NamedTuple):
    """A line that still lacks what others wrote, which has to be looked through for secrets first."""

    line: Line
    call: Call
    response: ToolResponse


class Records:
    """Writes lines; knows what is the same in every line of a tool it has met."""

    def __init__(self, *, arguments: bool) -> None:
        self._arguments = arguments
        self._met: dict[str, _Met] = {}
        self._sessions: dict[str, bytes] = {}
        self._clock = _Clock()

    def call(self, call: Call, response: ToolResponse) -> Line | Unfinished:
        """The line of a call that is over, as far as it can be written on the path of every call."""
        tool, session, failure = call.tool, call.session, response.failure
        met = self._met.get(tool.id)
        if met is None or met.tool is not tool:
            met = self._meet(tool)
        microseconds = self._clock.read(call.began)
        own = _OWN % (
            self._clock.date,
            microseconds,
            (call.ended - call.began) * 1000,
            _SUCCESS if failure is None and not call.stopped else _outcome(failure, call.stopped),
            call.turn.number,
            _identity(call.call_id, call.key),
            len(call.text),
        )
        course = (
            _passed(call.policies, call.defaults_filled)
            if not call.decisions and call.parent is None and not call.confirmed
            else _course(call.trail(), call)
        )
        line = (met.always, self._sessions.get(session.id) or self._session(session), own, course)
        if self._arguments or call.notes or call.meta or response.meta:
            return Unfinished(line, call, response)
        return line

    def finish(self, unfinished: Unfinished) -> bytes:
        """A line with all that belongs to it; off the path, because it may take long."""
        line, call, response = unfinished
        begun = b"".join(line).removesuffix(_END)
        more = self._more(call, response, self._meet(call.tool).redactor)
        whole = begun + _members(more)
        if len(whole) > MAX_LINE:
            whole = begun + _members(dict.fromkeys(more, f"[left out: the line had {len(whole)} bytes]"))
        return whole

    def _meet(self, tool: RegisteredTool) -> _Met:
        met = self._met.get(tool.id)
        if met is not None and met.tool is tool:
            return met
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
        self.date = b""
        """The date of what was read last, up to the second."""
        self._began = float("inf")

    def read(self, counter: float) -> int:
        """The microseconds of a moment, behind `date`."""
        past = counter - self._began
        if not 0.0 <= past < 1.0:
            # Once a second, because the wall clock may be set while a host runs.
            moment = time.time() - (time.perf_counter() - counter)
            past = moment % 1
            self._began = counter - past
            self.date = datetime.fromtimestamp(int(moment), UTC).strftime("%Y-%m-%dT%H:%M:%S").encode()
        return int(past * 1_000_000)


def _identity(call_id: str | None, key: str) -> bytes:
    names = {"callId": None if call_id is None else identifier(call_id), "key": identifier(key) or None}
    return orjson.dumps(names)[1:-1]


def _outcome(failure: Failure | None, stopped: str) -> bytes:
    error = None if failure is None else failure.type.value
    return orjson.dumps({"ok": failure is None, "error": error, "stopped": stopped or None})[1:-1]


def _course(trail: Mapping[str, str], call: Call) -> bytes:
    """Where a call came from, and what each policy decided about it."""
    return _written_course(
        {policy: name(decision) for policy, decision in trail.items()},
        parent=call.parent.tool.id if call.parent is not None else None,
        confirmed=call.confirmed,
        defaults_filled=call.defaults_filled,
    )


@lru_cache(1024)
def _passed(policies: tuple[str, ...], defaults_filled: bool) -> bytes:
    """The same for a model's call that all let pass, which is what most calls are."""
    trail = dict.fromkeys(policies, "pass")
    if defaults_filled:
        trail["validation"] = "defaults filled in"
    return _written_course(trail, parent=None, confirmed=False, defaults_filled=defaults_filled)


def _written_course(
    trail: Mapping[str, str], *, parent: str | None, confirmed: bool, defaults_filled: bool
) -> bytes:
    course = {
        "parent": parent,
        "confirmed": confirmed,
        "defaultsFilled": defaults_filled,
        "decisions": trail,
    }
    return orjson.dumps(course, option=_OPTIONS)[1:]


def _members(more: Mapping[str, Any]) -> bytes:
    """The last members of a line, and its end."""
    return b",%b" % orjson.dumps(more, option=_OPTIONS)[1:]


_END = b"}\n"
_SUCCESS = _outcome(None, "")
