"""What a client is told first: which session this is, and what takes it up again."""

from __future__ import annotations

from typing import Any

from jackfield.protocol import PROTOCOL

from jackfield_sessions.switchboard import Switchboard
from jackfield_sessions.talk import Talk


def welcome(switchboard: Switchboard, talk: Talk, *, resumed: bool, operator: bool) -> dict[str, Any]:
    """The message `session`; an operator also learns why the provider was chosen."""
    choice = switchboard.briefing.choice
    session = talk.session
    tools = switchboard.runtime.registry.summaries(session.mode)
    return {
        "type": "session",
        "protocol": PROTOCOL,
        "session": session.id,
        "token": session.token,
        "mode": session.mode,
        "user": session.user,
        "provider": choice.name,
        "providerReason": talk.provider_reason if operator else None,
        "providerHints": list(choice.hints) if operator else [],
        "registry": session.registry_version,
        "tools": [{"id": tool, "summary": summary} for tool, summary in tools.items()],
        "resumed": resumed,
        "state": session.state.value,
        "lastEvent": talk.feed.events.last,
        "partial": talk.partial,
    }
