"""A finished call as one line of JSON."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

import orjson
from jackfield.contract.errors import ErrorType
from jackfield.contract.response import ToolResponse
from jackfield.governance import Call
from jackfield.registry.registry import RegisteredTool

from jackfield_observability.redaction import Redactor, identifier, name, text

MAX_LINE = 64 * 1024
"""A line beyond this many bytes is written without what makes it long."""

MAX_MET = 10_000
"""How many kinds of lines are remembered."""

_OPTIONS = orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z

_FRACTIONS = tuple(f".{millisecond:03}Z" for millisecond in range(1000))
"""The end of every time of day."""

_END = b"}\n"

Line = tuple[bytes, bytes]
"""What a line shares with others of its kind, and what is this call's own.

In two parts, because the first is there already, and a whole line would be three times as much to keep.
"""


class Marked(NamedTuple):
    """A call with more to tell than that it passed, which may have to be looked through for secrets."""

    line: Line
    call: Call
    response: ToolResponse


class Records:
    """Writes lines; knows what those of a kind share."""

    def __init__(self, *, arguments: bool) -> None:
        self._arguments = arguments
        self._shared: dict[Any, bytes] = {}
        self._redactors: dict[tuple[str, str], Redactor] = {}
        self._second = float("inf")
        """When the second began that the last line was written in, by the performance counter."""
        self._date = ""

    def call(self, call: Call, response: ToolResponse) -> Line | Marked:
        """The line of a call that is over, as far as it can be written on the path of every call."""
        tool, began, call_id, key = call.tool, call.began, call.call_id, call.key
        past = began - self._second
        if not 0.0 <= past < 1.0:
            past = self._begin_second(began)
        # One writer for all of it: many small ways of writing numbers and texts cost more than a dictionary.
        facts = {
            "time": self._date + _FRACTIONS[int(past * 1000)],
            "durationMs": int((call.ended - began) * 1_000_000) / 1000,
            "turn": call.turn.number,
            "callId": None if call_id is None else identifier(call_id),
            "key": identifier(key) if key else None,
            "responseCharacters": len(call.text),
        }
        if call.returns_violations:
            facts["returnsViolations"] = call.returns_violations
        own = orjson.dumps(facts, None, orjson.OPT_APPEND_NEWLINE)[1:]
        failure = response.failure
        error = None if failure is None else failure.type
        if call.decisions or call.confirmed or call.parent:
            # What became of this call is its own; that is written off the path.
            return Marked((b"", own), call, response)
        kind = (
            tool.id, tool.registry_version, call.session.id, error, call.stopped, call.policies,
            call.defaults_filled,
        )  # fmt: skip
        line = (self._shared.get(kind) or self._meet(kind, call, error), own)
        if call.meta or call.notes or response.meta or self._arguments:
            return Marked(line, call, response)
        return line

    def finish(self, marked: Marked) -> bytes:
        """The line of a call that has more to tell; off the path, because it may take long."""
        (shared, own), call, response = marked
        if not shared:
            shared = _shared(call, None if response.failure is None else response.failure.type)
        more = self._more(call, response)
        if not more:
            return shared + own
        begun = shared + own.removesuffix(_END)
        whole = begun + _members(more)
        if len(whole) > MAX_LINE:
            whole = begun + _members(dict.fromkeys(more, f"[left out: the line had {len(whole)} bytes]"))
        return whole

    def _begin_second(self, counter: float) -> float:
        """Read the date anew, because the wall clock may be set while a host runs; the fraction of it."""
        moment = time.time() - (time.perf_counter() - counter)
        past = moment % 1
        self._second = counter - past
        self._date = datetime.fromtimestamp(int(moment), UTC).strftime("%Y-%m-%dT%H:%M:%S")
        return past

    def _meet(self, kind: Any, call: Call, error: ErrorType | None) -> bytes:
        return _remember(self._shared, kind, _shared(call, error))

    def _more(self, call: Call, response: ToolResponse) -> dict[str, Any]:
        """What others wrote, redacted; most calls have none of it."""
        redactor = self._redactor(call.tool)
        # Whoever ended a call early, or broke in it, may have done so before its arguments were judged.
        secrets = redactor.secrets(call.args, validated=call.took > 0)
        more: dict[str, Any] = {}
        if self._arguments:
            more["arguments"] = redactor.arguments(call.args, secrets)
        if call.meta or response.meta:
            more["meta"] = redactor.shown({**call.meta, **response.meta}, secrets)
        if call.notes:
            more["notes"] = redactor.shown(call.notes, secrets)
        return more

    def _redactor(self, tool: RegisteredTool) -> Redactor:
        # A registry that was reloaded brings another tool under the same id, with marks of its own.
        known = self._redactors.get((tool.id, tool.registry_version))
        return known or _remember(
            self._redactors, (tool.id, tool.registry_version), Redactor(tool.manifest.parameters)
        )


_Value = TypeVar("_Value")


def _remember(known: dict[Any, _Value], key: Any, value: _Value) -> _Value:
    # Sessions come and go, and ids that a model made up have no end.
    if len(known) >= MAX_MET:
        known.clear()
    known[key] = value
    return value


def _shared(call: Call, error: ErrorType | None) -> bytes:
    """What lines of the same tool, session, outcome and course have in common; left open for the rest."""
    tool, session = call.tool, call.session
    shared = {
        "event": "call",
        "tool": text(tool.id),
        "toolVersion": tool.manifest.version,
        "registryVersion": tool.registry_version,
        "category": tool.manifest.category,
        "pinnedVersion": session.registry_version,
        "session": name(session.id),
        "user": None if session.user is None else name(session.user),
        "mode": session.mode,
        "ok": error is None,
        "error": error,
        "stopped": call.stopped or None,
        "parent": call.parent.tool.id if call.parent is not None else None,
        "confirmed": call.confirmed,
        "defaultsFilled": call.defaults_filled,
        "decisions": {policy: name(decision) for policy, decision in call.trail().items()},
    }
    return orjson.dumps(shared)[:-1] + b","


def _members(more: Mapping[str, Any]) -> bytes:
    """The last members of a line, and its end."""
    return b",%b" % orjson.dumps(more, option=_OPTIONS)[1:]


def dropped(lines: int) -> bytes:
    """The line that stands where others are missing."""
    record = {"time": datetime.now(UTC), "event": "dropped", "lines": lines}
    return orjson.dumps(record, option=_OPTIONS)
