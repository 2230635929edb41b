"""What a client is told first: which session this is, and what takes it up again."""

from __future__ import annotations

from typing import Any

from jackfield_host.talks.switchboard import Switchboard
from jackfield_host.talks.talk import Talk
from jackfield_host.wire import PROTOCOL


def welcome(switchboard: Switchboard, talk: Talk, *, resumed: bool) -> dict[str, Any]:
    """The message `session`."""
    session = talk.session
    tools = switchboard.runtime.registry.summaries(session.mode)
    return {
        "type": "session",
        "protocol": PROTOCOL,
        "session": session.id,
        "token": session.token,
        "mode": session.mode,
        "user": session.user,
        "provider": switchboard.briefing.provider,
        "registry": session.registry_version,
        "tools": [{"id": tool, "summary": summary} for tool, summary in tools.items()],
        "resumed": resumed,
        "state": session.state.value,
        "lastEvent": talk.feed.events.last,
        "partial": talk.partial,
    }
