"""Whom limits and bans are held against."""

from __future__ import annotations

from jackfield.session.session import Session


def subject(session: Session) -> str:
    """The user, or the session itself where nobody knows who is talking."""
    return session.user or f"session:{session.id}"
