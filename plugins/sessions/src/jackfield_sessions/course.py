"""The course of a session through its states, told to its client."""

from __future__ import annotations

from jackfield.session.machine import State, may_go
from jackfield.session.session import Session


class Course:
    """Takes a session from state to state."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def go(self, state: State) -> None:
        """Go to a state; providers leave steps out, and answer out of listening, say."""
        if not may_go(self._session.state, state):
            self._step(State.PROCESSING)
        self._step(state)

    def _step(self, state: State) -> None:
        session = self._session
        if session.state is not state and session.go(state):
            session.publish("session_status", {"state": state.value})
