"""A stored session as text, as Markdown and as JSON lines."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import orjson
from jackfield_sessions.archive import Line, StoredSession, is_waiting

from jackfield_host.lifecycle.logs import escaped


def as_json_lines(session: StoredSession, lines: list[Line]) -> Iterator[str]:
    """A line about the session, then one for everything that happened in it."""
    yield orjson.dumps({"type": "session", **session._asdict()}).decode()
    for line in lines:
        yield orjson.dumps(line).decode()


def as_text(session: StoredSession, lines: list[Line]) -> Iterator[str]:
    """For a terminal: what a model or a user wrote cannot steer it."""
    yield f"session {session.id}: {_about(session)}"
    yield ""
    for line in lines:
        who, what = _told(line)
        first, *rest = [escaped(part) for part in what.splitlines()] or [""]
        yield f"{moment(line['at'])}  {who:<10} {first}"
        yield from (f"{'':<32} {part}" for part in rest)


def as_markdown(session: StoredSession, lines: list[Line]) -> Iterator[str]:
    """For people: every text is quoted, so that it stays what somebody said."""
    yield f"# Session {session.id}"
    yield ""
    yield f"{escaped(_about(session))}."
    for line in lines:
        who, what = _told(line)
        yield ""
        yield f"**{who}** ({moment(line['at'])})"
        yield ""
        yield from (f"> {escaped(part)}" for part in what.splitlines() or [""])


def moment(at: float) -> str:
    """A time, to the second."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _about(session: StoredSession) -> str:
    turns = f"{session.turns} turn{'' if session.turns == 1 else 's'}"
    registry = f", registry {session.registry}" if session.registry else ""
    facts = (
        session.mode,
        session.user or "nobody",
        session.state,
        turns,
        f"began {moment(session.began)}",
    )
    return ", ".join(facts) + registry


_DONE = {
    "tool_start": ("tool", "{tool} {arguments}"),
    "tool_progress": ("tool", "{tool}: {message}"),
    "tool_complete": ("tool", "{tool} is done"),
    "tool_error": ("tool", "{tool} failed: {message}"),
    "form_request": ("asked", "the form of {tool}"),
    "form_closed": ("host", "the form was closed"),
}
"""Who did what, by the type of the event."""


_OUTCOMES = {
    "waiting": "waits for approval",
    "running": "is still running",
    "declined": "was declined",
    "expired": "was not approved in time",
    "in_doubt": "is in doubt: it may or may not have taken effect",
    "never_run": "was not run: the host stopped before it took effect",
}
"""What a `tool_error` says that has a state, other than that the tool failed."""


def _told(line: Line) -> tuple[str, str]:
    """Who did what."""
    kind = line["type"]
    expired, in_doubt = line.get("expired", False), line.get("inDoubt", False)
    state = line.get("state") if kind == "tool_error" else None
    if is_waiting(line):
        state = "expired" if expired else "in_doubt" if in_doubt else "waiting"
    if state in _OUTCOMES:
        return "tool", f"{line['tool']} {_OUTCOMES[state]}"
    if kind in _DONE:
        who, what = _DONE[kind]
        return who, what.format_map(line)
    match kind:
        case "message":
            return line["speaker"], line["text"] + (" [interrupted]" if line.get("interrupted") else "")
        case "confirmation_required":
            return "asked", line["preview"] + (" [expired]" if expired else " [in doubt]" if in_doubt else "")
        case "confirmation_settled":
            return "user", f"{'approved' if line['approved'] else 'declined'} {line['tool']}"
    return "host", str(line.get("text") or line.get("name") or kind)
