"""The states of a session and the ways between them."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """What a session is doing."""

    INITIALIZING = "initializing"
    READY = "ready"
    LISTENING = "listening"
    PROCESSING = "processing"
    SPEAKING = "speaking"
    EXECUTING_TOOL = "executing_tool"
    RECONNECTING = "reconnecting"
    TERMINATED = "terminated"


_S = State
_AWAKE = {_S.READY, _S.LISTENING, _S.PROCESSING, _S.SPEAKING, _S.EXECUTING_TOOL}
# Any awake state may lose its connection or end; a lost one may come back to where it was.
_ALWAYS = {_S.RECONNECTING, _S.TERMINATED}

TRANSITIONS: dict[State, frozenset[State]] = {
    _S.INITIALIZING: frozenset({_S.READY} | _ALWAYS),
    _S.READY: frozenset({_S.LISTENING, _S.PROCESSING, _S.SPEAKING} | _ALWAYS),
    _S.LISTENING: frozenset({_S.READY, _S.PROCESSING} | _ALWAYS),
    _S.PROCESSING: frozenset({_S.READY, _S.LISTENING, _S.SPEAKING, _S.EXECUTING_TOOL} | _ALWAYS),
    _S.SPEAKING: frozenset({_S.READY, _S.LISTENING, _S.PROCESSING, _S.EXECUTING_TOOL} | _ALWAYS),
    _S.EXECUTING_TOOL: frozenset({_S.READY, _S.LISTENING, _S.PROCESSING, _S.SPEAKING} | _ALWAYS),
    _S.RECONNECTING: frozenset(_AWAKE | {_S.TERMINATED}),
    _S.TERMINATED: frozenset(),
}


def can_transition(before: State, after: State) -> bool:
    """Whether a session may go from one state to another; staying is always allowed."""
    return before is after or after in TRANSITIONS[before]
