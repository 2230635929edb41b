"""Whom limits and bans are held against."""

from __future__ import annotations

from typing import TypedDict

from jackfield.session.session import Session

_NAMELESS = "session:"


class Named(TypedDict):
    """Who is talking, as a session is told."""

    user: str | None
    session_id: str | None


def subject(session: Session) -> str:
    """The user, or the session itself where nobody knows who is talking."""
    return session.user or f"{_NAMELESS}{session.id}"


def named(held: str) -> Named:
    """Who is talking in a session that something is held against."""
    if held.startswith(_NAMELESS):
        return {"user": None, "session_id": held.removeprefix(_NAMELESS)}
    return {"user": held, "session_id": None}
