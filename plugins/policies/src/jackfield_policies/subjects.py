"""Whom limits and bans are held against: a user everywhere, or one session where nobody knows who is talking.

A store has one name for each, and the two never meet, whatever a user is called: `ban/NAME`, and
`ban/session:ID`. A user whose own name begins with `session:` is kept beside them, as `ban-user/NAME`.

So what stores hold from before users were told apart from sessions holds on, except for users who are called
like that: of what is under such a name nobody can tell any more whose it was, and it counts for the session.
"""

from __future__ import annotations

from typing import NamedTuple

_NAMELESS = "session:"


class Subject(NamedTuple):
    """A user by name, or where there is none a session by its id."""

    user: str | None
    session: str | None


def key(kind: str, user: str | None, session: str) -> str:
    """Where a store keeps something of this kind; the session counts where there is no user."""
    if not user:
        if not session:
            raise ValueError(f"there is neither a user nor a session to hold a {kind} against")
        return f"{kind}/{_NAMELESS}{session}"
    return f"{kind}-user/{user}" if user.startswith(_NAMELESS) else f"{kind}/{user}"


def prefixes(kind: str) -> tuple[str, str]:
    """What all keys of a kind begin with."""
    return f"{kind}/", f"{kind}-user/"


def subject(key: str) -> Subject:
    """Whom something under a key is held against."""
    prefix, _, name = key.partition("/")
    if name.startswith(_NAMELESS) and not prefix.endswith("-user"):
        return Subject(None, name.removeprefix(_NAMELESS))
    return Subject(name, None)
