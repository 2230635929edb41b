"""A finished call as one line of JSON."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import orjson
from jackfield.contract.response import ToolResponse
from jackfield.governance import Call
from jackfield.registry.registry import RegisteredTool

from jackfield_observability.redaction import Redactor, identifier, name, text

MAX_LINE = 64 * 1024
"""A line beyond this many bytes is written without what makes it long."""

_OPTIONS = orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z

_NOTHING: dict[str, Any] = {}
_NONE: list[Any] = []


class Records:
    """Writes lines; knows what is the same in every line of a tool it has met."""

    def __init__(self, *, arguments: bool) -> None:
        self._arguments = arguments
        self._met: dict[str, _Met] = {}

    def call(self, call: Call, response: ToolResponse, ended: float) -> bytes:
        """The line of one call, which ended at this reading of the performance counter."""
        met = self._met.get(call.tool.id)
        if met is None or met.tool is not call.tool:
            # A registry that was reloaded brings another tool under the same id, with marks of its own.
            met = self._met[call.tool.id] = _Met(call.tool)
        record = _facts(call, response, ended)
        # Whoever ended a call early may have done so before its arguments were judged.
        secrets = met.redactor.secrets(call.args, validated=not call.ended_by)
        if self._arguments:
            record["arguments"] = met.redactor.arguments(call.args, secrets)
        meta = {**call.meta, **response.meta} if call.meta or response.meta else _NOTHING
        record["meta"] = met.redactor.shown(meta, secrets) if meta else meta
        record["notes"] = met.redactor.shown(call.notes, secrets) if call.notes else _NONE
        line = met.always + orjson.dumps(record, option=_OPTIONS)[1:]
        if len(line) <= MAX_LINE:
            return line
        left_out = f"[left out: the line had {len(line)} bytes]"
        long = dict.fromkeys({"arguments", "meta", "notes"} & record.keys(), left_out)
        return met.always + orjson.dumps({**record, **long}, option=_OPTIONS)[1:]


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


def _facts(call: Call, response: ToolResponse, ended: float) -> dict[str, Any]:
    session, failure = call.session, response.failure
    return {
        "time": datetime.fromtimestamp(time.time() - (time.perf_counter() - call.began), UTC),
        "pinnedVersion": session.registry_version,
        "durationMs": round((ended - call.began) * 1000, 3),
        "ok": failure is None,
        "error": None if failure is None else failure.type.value,
        "stopped": call.stopped or None,
        "session": name(session.id),
        "user": None if session.user is None else name(session.user),
        "mode": session.mode,
        "turn": call.turn.number,
        "callId": None if call.call_id is None else identifier(call.call_id),
        "key": identifier(call.key) or None,
        "parent": call.parent.tool.id if call.parent else None,
        "confirmed": call.confirmed,
        "defaultsFilled": call.defaults_filled,
        "decisions": _decisions(call),
        "responseCharacters": _characters(call.wire),
    }


def _decisions(call: Call) -> Any:
    """What each policy decided; where all let the call pass, the same words every time."""
    if call.decisions:
        return {policy: name(decision) for policy, decision in call.trail().items()}
    return _all_passed(call.policies, call.defaults_filled)


@lru_cache(1024)
def _all_passed(policies: tuple[str, ...], defaults_filled: bool) -> orjson.Fragment:
    trail = dict.fromkeys(policies, "pass")
    if defaults_filled:
        trail["validation"] = "defaults filled in"
    return orjson.Fragment(orjson.dumps(trail))


def _characters(wire: bytes | None) -> int:
    return len(wire.decode()) if wire and not wire.isascii() else len(wire or b"")
