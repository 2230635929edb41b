"""Reads recorded calls from audit logs and from exported transcripts, in the order in which they arrived.

Only a window of lines or the calls of one turn are held in memory, so files may be of any size.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, NamedTuple, TypeGuard

import orjson

if TYPE_CHECKING:
    from jackfield.contract.context import Mode

MAX_LINE = 1024 * 1024
"""The longest line that is read, in bytes; audit lines have at most 64 KiB."""

WINDOW = 1000
"""Audit lines are in the order in which calls ended; this many are buffered to restore the arrival order."""

MAX_TURN_CALLS = 10_000
"""The maximum number of calls of one turn in a transcript that are buffered until the turn ends."""

_TRANSCRIPT_ARGUMENTS = 4000
"""A transcript cuts longer arguments at this length."""

# The placeholders that the audit log writes instead of values; see docs/observability.md.
_PLACEHOLDER = re.compile(
    r"\[redacted\]|\[cut: \d+ characters\]$|^\[\d+ more\]$|^\[too deep\]$|^\[left out: ", re.ASCII
)

_REFUSALS = {"MODE_RESTRICTED": "modes", "BUDGET_EXCEEDED": "budgets"}
"""The policy that refuses with an error type, for types that no handler uses."""

# Transcripts have the type but not the policy; these types come from handlers and from policies.
_AMBIGUOUS = frozenset({"AUTH", "RATE_LIMIT", "NOT_FOUND", "LOOP_DETECTED", "INTERNAL"})

Outcome = Literal["ran", "asked", "invalid", "refused", "unknown", "withheld"]
"""The outcome of a call: its handler started, the user was asked, or it ended before that."""


class RecordedCall(NamedTuple):
    """A call as it was recorded."""

    place: str
    """The file and the line."""
    tool: str
    arguments: Mapping[str, Any] | str | None
    """An object, the text that the model wrote, or None if it is not in the recording."""
    complete: bool
    """False if parts of the arguments are redacted, cut or missing."""
    at: float
    session: str
    user: str | None
    mode: Mode
    turn: int
    call_id: str | None
    outcome: Outcome | None
    """None if the recording does not contain it."""
    policy: str = ""
    """The policy that refused the call."""
    decided: bool = False
    """True if the line records the user's decision on a call that waited."""
    waived: bool = False
    """True if a policy waived the confirmation of this call."""
    defaults_filled: bool = False
    """True if the arguments contain defaults that the host added."""
    registry: str | None = None
    said: str = ""
    """The user's words in this turn."""
    answered: bool = False
    data: Any = None
    """The data of the result, if the call was `answered` and the recording has it."""


class BadLine(NamedTuple):
    """A line that is not a recorded call, with the reason."""

    place: str
    reason: str


class LinesSkipped(NamedTuple):
    """Lines that need no check of their own: repeated deliveries, decisions of users and operators."""

    lines: int = 1


Recorded = RecordedCall | BadLine | LinesSkipped


def read_all(files: Mapping[str, BinaryIO], on_line: Callable[[], None]) -> Iterator[Recorded]:
    """Read files of both kinds, merged by the time of arrival; `on_line` is called for every line."""
    streams = [_in_order(_read(name, file, on_line)) for name, file in files.items()]
    return heapq.merge(*streams, key=_time)


def _time(recorded: Recorded) -> float:
    return recorded.at if isinstance(recorded, RecordedCall) else 0.0


def _in_order(found: Iterator[Recorded]) -> Iterator[Recorded]:
    """Sort calls by arrival within a window; everything else passes at once."""
    held: list[tuple[float, int, RecordedCall]] = []
    for number, each in enumerate(found):
        if not isinstance(each, RecordedCall):
            yield each
        elif len(held) < WINDOW:
            heapq.heappush(held, (each.at, number, each))
        else:
            yield heapq.heappushpop(held, (each.at, number, each))[2]
    while held:
        yield heapq.heappop(held)[2]


def _read(name: str, file: BinaryIO, on_line: Callable[[], None]) -> Iterator[Recorded]:
    transcript: _Transcript | None = None
    for place, wire in _lines(name, file, on_line):
        if isinstance(wire, BadLine):
            yield wire
        elif "event" in wire:
            yield from _audit_line(place, wire)
        elif wire.get("type") == "session":
            if transcript:
                yield from transcript.flush()
            transcript = _Transcript.begin(wire)
            if transcript is None:
                yield BadLine(
                    place,
                    "in this `session` line, `id` is not a string, or `mode` is neither `text` nor `voice`",
                )
        elif transcript is not None and isinstance(wire.get("type"), str):
            yield from transcript.line(place, wire)
        else:
            yield BadLine(
                place,
                "unknown kind of line: expected an audit log line, or a transcript line after a `session` "
                "line",
            )
    if transcript:
        yield from transcript.flush()


def _lines(
    name: str, file: BinaryIO, on_line: Callable[[], None]
) -> Iterator[tuple[str, dict[str, Any] | BadLine]]:
    """Yield the JSON object on each line, or why there is none, with its place."""
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        on_line()
        place = f"{name}:{number}"
        if len(line) > MAX_LINE:
            while line and not line.endswith(b"\n"):
                line = file.readline(MAX_LINE)
            yield place, BadLine(place, f"the line has more than {MAX_LINE} bytes")
        elif line.strip():
            yield place, _object(place, line)


def _object(place: str, line: bytes) -> dict[str, Any] | BadLine:
    try:
        wire = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return BadLine(place, f"not JSON: {error}")
    return wire if isinstance(wire, dict) else BadLine(place, "not a JSON object")


def _is_mode(value: object) -> TypeGuard[Mode]:
    return value in ("text", "voice")


def _is_incomplete(value: Any) -> bool:
    """Return whether a value contains something that the audit log redacted or cut."""
    if isinstance(value, str):
        return _PLACEHOLDER.search(value) is not None
    if isinstance(value, list):
        return any(map(_is_incomplete, value))
    if isinstance(value, dict):
        return "[more]" in value or any(_is_incomplete(each) for pair in value.items() for each in pair)
    return False


# Audit logs.


def _audit_line(place: str, wire: Mapping[str, Any]) -> Iterator[Recorded]:
    if wire["event"] == "claim":
        return  # A statement by an assistant, not a call.
    if wire["event"] != "call":
        # The number of dropped lines, or an event of a later version.
        yield LinesSkipped(wire["lines"] if isinstance(wire.get("lines"), int) else 1)
        return
    try:
        call = _audit_call(place, wire)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        reason = f"`{error.args[0]}` is missing" if isinstance(error, KeyError) else str(error)
        yield BadLine(place, f"not a valid audit log line: {reason}")
        return
    yield call or LinesSkipped()


def _audit_call(place: str, wire: Mapping[str, Any]) -> RecordedCall | None:
    """Return the call of a line; None if the line is about an earlier call or about no call."""
    decisions: Mapping[str, str] = wire["decisions"]
    if not isinstance(decisions, dict) or not all(isinstance(each, str) for each in decisions.values()):
        raise TypeError("`decisions` is not an object whose values are strings")
    about_calls = (decisions.get("duplicates", ""), decisions.get("bans", ""))
    if about_calls[0].startswith(("replayed", "settled as")) or about_calls[1].startswith("lifted by"):
        return None
    for name in ("tool", "session"):
        if not isinstance(wire[name], str):
            raise TypeError(f"`{name}` is not a string")
    mode, turn, user, call_id = wire["mode"], wire["turn"], wire["user"], wire["callId"]
    if not _is_mode(mode) or type(turn) is not int:
        raise ValueError("`mode` is neither `text` nor `voice`, or `turn` is not an integer")
    if not isinstance(user, str | None) or not isinstance(call_id, str | None):
        raise TypeError("`user` or `callId` is not a string")
    outcome, policy = _audit_outcome(wire, decisions)
    arguments = wire.get("arguments")
    if not isinstance(arguments, dict) or outcome == "unknown" or (outcome == "invalid" and not decisions):
        # The audit log has no arguments of unknown tools, and none that are not JSON.
        arguments = None
    # Raises `TypeError` if they are nested too deeply; no audit log contains such arguments.
    orjson.dumps(arguments)
    return RecordedCall(
        place=place,
        tool=wire["tool"],
        arguments=arguments,
        complete=arguments is not None and not _is_incomplete(arguments),
        at=datetime.fromisoformat(wire["time"]).timestamp(),
        session=wire["session"],
        user=user,
        mode=mode,
        turn=turn,
        call_id=call_id,
        outcome=outcome,
        policy=policy,
        decided=_is_decided(wire, decisions),
        waived=decisions.get("confirmation", "").startswith("not asked"),
        defaults_filled=wire.get("defaultsFilled") is True,
        registry=wire.get("registryVersion"),
    )


def _is_decided(wire: Mapping[str, Any], decisions: Mapping[str, str]) -> bool:
    return wire.get("confirmed") is True or decisions.get("confirmation") == "declined"


def _audit_outcome(wire: Mapping[str, Any], decisions: Mapping[str, str]) -> tuple[Outcome | None, str]:
    error = wire["error"]
    refused_by = next((name for name, decision in decisions.items() if decision == "refused"), "")
    if error == "CONFIRMATION_REQUIRED" or _is_decided(wire, decisions):
        return "asked", ""
    if error is None:
        return "ran", ""
    if error == "VALIDATION" and (refused_by == "validation" or not decisions):
        return "invalid", ""
    if refused_by:
        return "refused", refused_by
    if not wire.get("toolVersion"):
        return "unknown", ""
    return (None, "") if "unknown" in decisions.values() else ("ran", "")


# Transcripts.


class _Transcript:
    """The transcript of one session, read line by line; calls are complete when their turn ends."""

    def __init__(self, session: str, user: str | None, mode: Mode, registry: str | None) -> None:
        self._session, self._user, self._mode, self._registry = session, user, mode, registry
        self._turn, self._said = 1, ""
        self._calls: list[RecordedCall] = []

    @classmethod
    def begin(cls, wire: Mapping[str, Any]) -> _Transcript | None:
        session, user, mode, registry = (wire.get(name) for name in ("id", "user", "mode", "registry"))
        if not isinstance(session, str) or not _is_mode(mode):
            return None
        return cls(
            session,
            user if isinstance(user, str) else None,
            mode,
            registry if isinstance(registry, str) else None,
        )

    def line(self, place: str, wire: Mapping[str, Any]) -> Iterator[Recorded]:
        kind, tool = wire["type"], wire.get("tool")
        if kind == "message" and wire.get("speaker") == "user" and type(wire.get("turn")) is int:
            yield from self.flush()
            said = str(wire.get("text", ""))
            self._said = f"{self._said}\n{said}" if wire["turn"] == self._turn else said
            self._turn = wire["turn"]
        elif kind == "tool_start":
            if not isinstance(tool, str) or not isinstance(wire.get("arguments"), str):
                yield BadLine(place, "in this `tool_start` line, `tool` or `arguments` is not a string")
                return
            if len(self._calls) >= MAX_TURN_CALLS:
                yield from self.flush()
            self._calls.append(self._started(place, tool, wire))
        elif kind in ("tool_complete", "tool_error"):
            self._finish(tool, wire)

    def flush(self) -> Iterator[RecordedCall]:
        """Yield the calls of the turn that ended."""
        yield from self._calls
        self._calls = []

    def _started(self, place: str, tool: str, wire: Mapping[str, Any]) -> RecordedCall:
        arguments, at, call_id = wire["arguments"], wire.get("at"), wire.get("callId")
        return RecordedCall(
            place=place,
            tool=tool,
            arguments=arguments,
            complete=len(arguments) < _TRANSCRIPT_ARGUMENTS,
            at=float(at) if isinstance(at, int | float) else 0.0,
            session=self._session,
            user=self._user,
            mode=self._mode,
            turn=self._turn,
            call_id=call_id if isinstance(call_id, str) else None,
            outcome=None,
            registry=self._registry,
            said=self._said,
        )

    def _finish(self, tool: object, wire: Mapping[str, Any]) -> None:
        """Add the first outcome of a call; later ones follow from the user's decision."""
        for place, call in enumerate(self._calls):
            if call.tool == tool and call.call_id == wire.get("callId") and not call.outcome:
                self._calls[place] = _with_outcome(call, wire)
                return


def _with_outcome(call: RecordedCall, wire: Mapping[str, Any]) -> RecordedCall:
    if wire["type"] == "tool_complete":
        return call._replace(outcome="ran", answered=True, data=wire.get("data"))
    error = wire.get("errorType")
    if error == "CONFIRMATION_REQUIRED":
        return call._replace(outcome="asked")
    if error == "VALIDATION":
        return call._replace(outcome="invalid")
    if error in _REFUSALS:
        return call._replace(outcome="refused", policy=_REFUSALS[error])
    return call if error in _AMBIGUOUS else call._replace(outcome="ran")
