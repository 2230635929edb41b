"""Writes the transcript of a stored session as text, as Markdown or as JSON lines."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import orjson
from jackfield_sessions.archive import Line, StoredSession, is_waiting

from jackfield_host.logs import escape_controls


def as_json_lines(session: StoredSession, lines: list[Line]) -> Iterator[str]:
    """Write one line about the session, then one for each message and event."""
    yield orjson.dumps({"type": "session", **session._asdict()}).decode()
    for line in lines:
        yield orjson.dumps(line).decode()


def as_text(session: StoredSession, lines: list[Line]) -> Iterator[str]:
    """Write the transcript for a terminal, escaping control characters in text from a model or a user."""
    yield f"session {session.id}: {_about(session)}"
    yield ""
    for line in lines:
        who, what = _describe(line)
        first, *rest = [escape_controls(part) for part in what.splitlines()] or [""]
        yield f"{format_time(line['at'])}  {who:<10} {first}"
        yield from (f"{'':<32} {part}" for part in rest)


def as_markdown(session: StoredSession, lines: list[Line]) -> Iterator[str]:
    """Write the transcript as Markdown; every text is quoted, so that it cannot imitate another part."""
    title = " ".join(escape_controls(session.title or "").split())
    yield f"# {title}" if title else f"# Session {session.id}"
    yield ""
    yield f"Session {session.id}: {escape_controls(_about(session))}."
    for line in lines:
        who, what = _describe(line)
        yield ""
        yield f"**{who}** ({format_time(line['at'])})"
        yield ""
        yield from (f"> {escape_controls(part)}" for part in what.splitlines() or [""])


def format_time(at: float) -> str:
    """Format a time in UTC, to the second."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _about(session: StoredSession) -> str:
    turns = f"{session.turns} turn{'' if session.turns == 1 else 's'}"
    registry = f", registry {session.registry}" if session.registry else ""
    facts = (
        session.mode,
        session.user or "no user",
        session.state,
        turns,
        f"started {format_time(session.began)}",
    )
    return ", ".join(facts) + registry


_DESCRIPTIONS = {
    "tool_start": ("tool", "{tool} {arguments}"),
    "tool_progress": ("tool", "{tool}: {message}"),
    "tool_complete": ("tool", "{tool} completed"),
    "tool_error": ("tool", "{tool} failed: {message}"),
    "form_request": ("host", "showed the form for {tool}"),
    "form_closed": ("host", "the form was closed"),
}
"""Who did what, by event type."""


_OUTCOMES = {
    "waiting": "is waiting for approval",
    "running": "is still running",
    "declined": "was declined",
    "expired": "was not approved in time",
    "in_doubt": "is in doubt: it may or may not have taken effect",
    "never_run": "was not run: the host stopped before the call took effect",
    "unknown": "has an unknown outcome",
}
"""How a call ended, by the state of its `tool_error`; in other states the tool failed."""

_CLAIM_STATES = {**_OUTCOMES, "no_call": "was not called"}
"""What happened to the tool of an unbacked claim, by the state of the claim."""


def _marks(line: Line) -> str:
    """Return the marks after a message."""
    unbacked = [
        f"{claim['tool']} {_CLAIM_STATES.get(claim['state'], claim['state'])}"
        for claim in line.get("unbackedClaims", ())
    ]
    said = f" [unbacked claim: {', '.join(unbacked)}]" if unbacked else ""
    return (" [interrupted]" if line.get("interrupted") else "") + said


def _describe(line: Line) -> tuple[str, str]:
    """Return who did what."""
    kind = line["type"]
    expired, in_doubt = line.get("expired", False), line.get("inDoubt", False)
    state = line.get("state") if kind == "tool_error" else None
    if is_waiting(line):
        state = "expired" if expired else "in_doubt" if in_doubt else "waiting"
    if state in _OUTCOMES:
        return "tool", f"{line['tool']} {_OUTCOMES[state]}"
    if kind in _DESCRIPTIONS:
        who, what = _DESCRIPTIONS[kind]
        return who, what.format_map(line)
    match kind:
        case "message":
            return line["speaker"], line["text"] + _marks(line)
        case "confirmation_required":
            mark = " [expired]" if expired else " [in doubt]" if in_doubt else ""
            return "host", f"asked for approval: {line['preview']}{mark}"
        case "confirmation_settled":
            return "user", f"{'approved' if line['approved'] else 'declined'} {line['tool']}"
    return "host", str(line.get("text") or line.get("name") or kind)
