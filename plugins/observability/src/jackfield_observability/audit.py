"""The audit log: one line of JSON for every call and unbacked claim, written by a background thread."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from math import floor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import orjson
from jackfield.contract.tool import ErrorType, ToolResponse
from jackfield.governance import Call
from jackfield.protocol.messages import UnbackedClaim
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session
from jackfield.settings import SettingsError
from jackfield.shadow import ShadowResult
from jackfield.toolsets import Toolset

from jackfield_observability.audit_file import AuditFile, AuditRecord, AuditTail, read_tail
from jackfield_observability.background import QUEUE_LIMIT, BackgroundObserver
from jackfield_observability.redaction import MAX_ID, Redactor, name, text
from jackfield_observability.settings import AuditSettings

if TYPE_CHECKING:
    from jackfield.runtime import Runtime

MAX_LINE = 64 * 1024
"""A longer line is written without its optional members."""

MAX_CACHED = 10_000
"""The maximum number of cached line prefixes and redactors."""

_OPTIONS = orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z

_FRACTIONS = tuple(f".{millisecond:03}Z" for millisecond in range(1000))
"""Milliseconds and suffix of every timestamp."""

_END = b"}\n"

_UNKNOWN = (None, b"")

Line = tuple[bytes, bytes]
"""The part of a line that similar calls share, and this call's own part.

Two parts, because the first one already exists and a joined line would take three times the memory.
"""


class DeferredLine(NamedTuple):
    """A call with optional members, which may have to be searched for secrets."""

    line: Line
    call: Call
    response: ToolResponse


class AuditEncoder:
    """Encodes calls as lines of JSON; caches the parts that similar calls share."""

    def __init__(self, *, arguments: bool, host: str) -> None:
        self.host = host
        """The host's name, which every line contains."""
        self._arguments = arguments
        self._shared: dict[tuple[str, str, str, bool], tuple[tuple[str, ...] | None, bytes]] = {}
        """The part that ordinary calls' lines share, and these calls' policies.

        The key contains only plain values, which the garbage collector does not track. The policies' names
        are compared by identity, because hashing them takes long.
        """
        self._redactors: dict[tuple[str, str], Redactor] = {}
        self._second = float("inf")
        """The start of the current second, by the performance counter."""
        self._date = ""

    def encode(self, call: Call, response: ToolResponse) -> Line | DeferredLine:
        """Return the line for a finished call, as far as it can be encoded on the call path."""
        began, call_id, key = call.started_at, call.call_id, call.key
        past = began - self._second
        if not 0.0 <= past < 1.0:
            past = self._begin_second(began)
        # Does the same as `identifier`, but saves two function calls on the call path.
        if call_id and not (len(call_id) <= MAX_ID and call_id.isascii()):
            call_id = text(call_id)
        if not (len(key) <= MAX_ID and key.isascii()):
            key = text(key)
        # One `dumps` call for all members: separate ones for numbers and texts cost more than a dictionary.
        facts: dict[str, Any] = {
            "time": self._date + _FRACTIONS[floor(past * 1000.0)],
            "durationMs": (call.finished_at - began) * 1e6 // 1.0 / 1e3,
            "turn": call.turn.number,
            "callId": call_id,
            "key": key or None,
            "responseCharacters": len(call.text),
        }
        if call.returns_violations:
            facts["returnsViolations"] = call.returns_violations
        own = orjson.dumps(facts, None, orjson.OPT_APPEND_NEWLINE)[1:]
        if response.failure or call.decisions or call.cancel_reason or call.confirmed or call.parent:
            # Such a line has little in common with others; it is encoded off the call path.
            return DeferredLine((b"", own), call, response)
        tool = call.tool
        kind = (tool.id, tool.registry_version, call.session.id, call.defaults_filled)
        policies, shared = self._shared.get(kind, _UNKNOWN)
        if policies is not call.policies:
            shared = _remember(self._shared, kind, (call.policies, _shared(call, None, self.host)))[1]
        if call.meta or call.notes or response.meta or self._arguments:
            return DeferredLine((shared, own), call, response)
        return (shared, own)

    def encode_shadow(self, result: ShadowResult) -> bytes:
        """Return the line for a comparison; it contains no data from the answers."""
        call, assignment = result.call, result.assignment
        record = {
            "event": "shadow",
            "host": self.host,
            "time": datetime.now(UTC),
            "tool": call.tool.id,
            "variant": assignment.arm,
            "experiment": assignment.experiment,
            "experimentsVersion": assignment.version,
            "session": name(call.session.id),
            "callId": text(call.call_id) if call.call_id else None,
            "outcome": result.outcome,
            "error": result.error,
            "differing": result.differing,
            "durationMs": round(result.seconds * 1000, 3),
            "servedDurationMs": round(result.served_seconds * 1000, 3),
        }
        return orjson.dumps(record, option=_OPTIONS)

    def complete(self, marked: DeferredLine) -> bytes:
        """Return the line for a call with optional members; runs off the call path."""
        (shared, own), call, response = marked
        if not shared:
            shared = _shared(call, None if response.failure is None else response.failure.type, self.host)
        more = self._more(call, response)
        if not more:
            return shared + own
        begun = shared + own.removesuffix(_END)
        whole = begun + _members(more)
        if len(whole) > MAX_LINE:
            whole = begun + _members(dict.fromkeys(more, f"[left out: the line had {len(whole)} bytes]"))
        return whole

    def _begin_second(self, counter: float) -> float:
        """Read the date again, because the wall clock may change while a host runs; return the fraction."""
        moment = time.time() - (time.perf_counter() - counter)
        past = moment % 1
        self._second = counter - past
        self._date = datetime.fromtimestamp(int(moment), UTC).strftime("%Y-%m-%dT%H:%M:%S")
        return past

    def _more(self, call: Call, response: ToolResponse) -> dict[str, Any]:
        """Return the optional members, redacted; most calls have none."""
        redactor = self._redactor(call.tool)
        # A call that ended early or failed may not have validated its arguments.
        secrets = redactor.secrets(call.args, validated=call.handler_seconds > 0)
        more: dict[str, Any] = {}
        # The arguments of a call that an operator settled are not known here.
        if self._arguments and (call.args or call.tool.known):
            more["arguments"] = redactor.arguments(call.args, secrets)
        if call.meta or response.meta:
            more["meta"] = redactor.shown({**call.meta, **response.meta}, secrets)
        if call.notes:
            more["notes"] = redactor.shown(call.notes, secrets)
        return more

    def _redactor(self, tool: RegisteredTool) -> Redactor:
        # A reloaded registry may have a different tool under the same id, with other sensitive properties,
        # and a variant may have other sensitive properties too.
        key = (tool.frozen.name, tool.registry_version)
        return self._redactors.get(key) or _remember(self._redactors, key, Redactor(tool.manifest.parameters))


_Value = TypeVar("_Value")


def _remember(known: dict[Any, _Value], key: Any, value: _Value) -> _Value:
    # New sessions keep arriving, and a model can invent any number of ids.
    if len(known) >= MAX_CACHED:
        known.clear()
    known[key] = value
    return value


def _shared(call: Call, error: ErrorType | None, host: str) -> bytes:
    """Return the members that lines of the same tool, session and policies share, as open JSON."""
    tool, session = call.tool, call.session
    shared = {
        "event": "call",
        "host": host,
        "tool": text(tool.id),
        # Null means that the version is not known, as for a tool that does not exist.
        "toolVersion": tool.manifest.version or None,
        "registryVersion": tool.registry_version,
        "category": tool.category,
        "pinnedVersion": session.registry_version,
        **({"variant": tool.variant} if tool.variant else {}),
        **_pinned(session.toolset),
        **({"organisation": name(session.organisation)} if session.organisation else {}),
        "session": name(session.id),
        "user": None if session.user is None else name(session.user),
        "mode": session.mode,
        "ok": error is None,
        "error": error,
        "stopped": call.cancel_reason or None,
        "parent": call.parent.tool.id if call.parent is not None else None,
        "confirmed": call.confirmed,
        "defaultsFilled": call.defaults_filled,
        "decisions": {policy: name(decision) for policy, decision in call.policy_trace().items()},
    }
    return orjson.dumps(shared)[:-1] + b","


def _pinned(toolset: Toolset | None) -> dict[str, Any]:
    """Return the members for a session that is pinned to a toolset or to arms of experiments."""
    if toolset is None:
        return {}
    pinned: dict[str, Any] = {"toolset": name(toolset.name)} if toolset.name else {}
    if toolset.assignments:
        assigned = toolset.assignments.values()
        pinned["experiments"] = {each.experiment: each.arm for each in assigned}
        pinned["experimentsVersion"] = max(each.version for each in assigned)
    return pinned


def _members(more: Mapping[str, Any]) -> bytes:
    """Return the last members of a line, and its end."""
    return b",%b" % orjson.dumps(more, option=_OPTIONS)[1:]


def claim_line(session: Session, claim: UnbackedClaim, host: str) -> bytes:
    """Return the line of a claim that no call backs; the sentence itself stays in the transcript."""
    record = {
        "event": "claim",
        "host": host,
        "tool": claim.tool,
        "says": claim.says,
        "state": claim.state,
        "registryVersion": session.registry_version,
        "session": name(session.id),
        "user": None if session.user is None else name(session.user),
        "mode": session.mode,
        "time": datetime.now(UTC),
        "turn": session.turn.number,
    }
    return orjson.dumps(record, option=_OPTIONS)


def dropped_line(lines: int, host: str) -> bytes:
    """Return the line that replaces dropped lines."""
    record = {"time": datetime.now(UTC), "event": "dropped", "host": host, "lines": lines}
    return orjson.dumps(record, option=_OPTIONS)


PENDING_BYTES = 16 * 1024 * 1024
"""The maximum size of the lines that are waiting to be written."""

# Write at this size: smaller writes would each have to take the lock, and larger ones would use memory that a
# busy host has not used before.
_WRITE_BYTES = 256 * 1024

_LOG_INTERVAL_SECONDS = 60.0

_log = logging.getLogger(__name__)


class Audit(BackgroundObserver[Line | DeferredLine]):
    """Writes a line for every call, and a line in place of dropped ones."""

    def __init__(self, settings: AuditSettings | None = None) -> None:
        self._settings = settings = settings or AuditSettings()
        # Commands run without a host; their lines get the machine's name.
        machine = socket.gethostname()
        self._file = self._audit_file(machine)
        if not settings.file_per_host:
            # At once, so that a path that cannot be written fails at startup.
            self._open()
        elif not os.access(self._file.path.parent, os.W_OK | os.X_OK):
            raise SettingsError(f"[observers.audit] path: {self._file.path.parent} cannot be written to")
        self._backups = settings.backups
        self._encoder = AuditEncoder(arguments=settings.arguments, host=machine)
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._lost = 0
        self._reported = 0
        self._next_log = 0.0
        self._failing = False
        super().__init__("audit")

    def started(self, runtime: Runtime) -> None:
        """Learn the host's name, before the first call."""
        self._encoder.host = runtime.hosts.name
        if self._settings.file_per_host:
            self._file = self._audit_file(runtime.hosts.name)
            self._open()

    def _audit_file(self, host: str) -> AuditFile:
        settings = self._settings
        return AuditFile(_resolve_path(settings.path_for(host)), settings.max_bytes, settings.backups)

    def _open(self) -> None:
        try:
            self._file.open()
        except OSError as error:
            raise SettingsError(f"[observers.audit] path: {self._file.path}: {error.strerror}") from None

    @property
    def dropped(self) -> int:
        """The number of lines dropped since the start."""
        return self.overflowed + self._lost

    def call_finished(self, call: Call, response: ToolResponse) -> None:
        """Log a call; runs on the call path, so slow work is left to the thread.

        The line is encoded at once: keeping its facts and reading them again later costs more.
        """
        waiting = self.waiting
        if len(waiting) < QUEUE_LIMIT:
            waiting.append(self._encoder.encode(call, response))
        else:
            self.overflowed += 1

    def claim_unbacked(self, session: Session, claim: UnbackedClaim) -> None:
        """Log a claim of the assistant that no call backs."""
        self._enqueue(claim_line(session, claim, self._encoder.host))

    def shadow_finished(self, result: ShadowResult) -> None:
        """Log how a shadow's answer compares with its call's answer."""
        self._enqueue(self._encoder.encode_shadow(result))

    def _enqueue(self, line: bytes) -> None:
        if len(self.waiting) < QUEUE_LIMIT:
            self.waiting.append((b"", line))
        else:
            self.overflowed += 1

    def tail(
        self, limit: int, *, tool: str | None = None, session: str | None = None, ok: bool | None = None
    ) -> AuditTail:
        """Return the latest lines, by tool, session or result; call it in a thread: it reads files."""
        self.drain()
        wanted = {"tool": tool, "session": session, "ok": ok}
        asked = {name: value for name, value in wanted.items() if value is not None}

        def fits(line: AuditRecord) -> bool:
            return all(name in line and line[name] == value for name, value in asked.items())

        return read_tail(self._file.path, self._backups, limit, fits)

    def receive(self, items: Sequence[Line | DeferredLine]) -> None:
        """Complete lines, and hold them until they are written."""
        encoded = cast("Iterable[Iterable[bytes]]", items)
        if DeferredLine in map(type, items):
            encoded = ((self._finished(item),) if isinstance(item, DeferredLine) else item for item in items)
        lines = b"".join(chain.from_iterable(encoded))
        room = PENDING_BYTES - self._pending_bytes
        if len(lines) > room:
            end = lines.rfind(b"\n", 0, room) + 1
            self._lost += _count(lines[end:])
            lines = lines[:end]
        self._pending.append(lines)
        self._pending_bytes += len(lines)
        if self._pending_bytes >= _WRITE_BYTES and not self._failing:
            self.flush()

    def _finished(self, marked: DeferredLine) -> bytes:
        try:
            return self._encoder.complete(marked)
        except Exception:  # noqa: BLE001 - notes contain third-party objects
            _log.exception("audit: a call to %s could not be encoded", marked.call.tool.id)
            self._lost += 1
            return b""

    def flush(self) -> None:
        """Write the waiting lines, then how many are missing after them."""
        dropped = self.dropped
        missing = dropped - self._reported
        lines = b"".join(self._pending) + (dropped_line(missing, self._encoder.host) if missing else b"")
        if not lines:
            return
        written, fault = self._file.append(lines)
        if missing and written == len(lines):
            self._reported = dropped
        # The line with the number of dropped lines is encoded again, as more may be dropped by then.
        left = lines[written : self._pending_bytes]
        self._pending = [left] if left else []
        self._pending_bytes = len(left)
        self._log_state(fault, missing)

    def reset_after_fork(self) -> None:
        """Discard the parent process's lines in a forked child, which writes to the same file."""
        self._file.close()
        self._pending.clear()
        self._pending_bytes = self._lost = self._reported = 0

    def _log_state(self, fault: OSError | None, missing: int) -> None:
        """Log failing writes, missing lines, and the end of a failure; at most once per interval."""
        due = time.monotonic() >= self._next_log
        if fault is None and (self._failing or (missing and due)):
            _log.warning(
                "audit: %s is writable again; %d earlier lines are missing", self._file.path, missing
            )
        elif fault is not None and (not self._failing or due):
            _log.error(
                "audit: %s cannot be written (%s); %d lines are waiting, %d were dropped",
                self._file.path, fault.strerror or fault, sum(map(_count, self._pending)), missing,
            )  # fmt: skip
        else:
            return
        self._failing = fault is not None
        self._next_log = time.monotonic() + _LOG_INTERVAL_SECONDS

    def _end(self) -> None:
        super()._end()
        self._file.close()


def _resolve_path(path: Path) -> Path:
    """Return the absolute path of the log, independent of the working directory.

    A link to a file is followed once: rotation would rename the link instead of the file. The target of
    `/dev/stdout` may have no name that can be opened.
    """
    real = path.resolve()
    return real if real.is_file() or not path.exists() else path.absolute()


def _count(lines: bytes) -> int:
    return lines.count(b"\n")
