"""The tools that a session has called, as far as the assistant may speak of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jackfield.outcomes import CallState


class CalledTools:
    """How the calls of each tool ended in this turn, and which tools have ever succeeded."""

    def __init__(self, wire: Mapping[str, Any] | None = None) -> None:
        """`wire` is what `to_wire` returned."""
        wire = wire or {"turn": 0, "states": {}, "succeeded": []}
        self._turn: int = wire["turn"]
        self._states = {tool_id: CallState(state) for tool_id, state in wire["states"].items()}
        self._succeeded: set[str] = set(wire["succeeded"])

    def to_wire(self) -> dict[str, Any]:
        """Return it in the form in which it is saved."""
        return {"turn": self._turn, "states": self._states, "succeeded": sorted(self._succeeded)}

    def add(self, tool_id: str, state: CallState, turn: int) -> None:
        """Note the outcome of a call; a success counts for the rest of the turn."""
        if turn != self._turn:
            self._turn, self._states = turn, {}
        if self._states.get(tool_id) is not CallState.DONE:
            self._states[tool_id] = state
        if state is CallState.DONE:
            self._succeeded.add(tool_id)

    def states(self, turn: int) -> Mapping[str, CallState]:
        """Return the states of the tools that were called in a turn, by their ids."""
        return self._states if turn == self._turn else {}

    def has_succeeded(self, tool_id: str) -> bool:
        """Return whether a call to the tool has ever succeeded in the session."""
        return tool_id in self._succeeded
