"""One turn of a conversation: what was called in it, and how much of its budget is spent."""

from __future__ import annotations

from typing import Any

HISTORY = 5
"""How many turns a session remembers."""


class Turn:
    """What the user said in one turn, and its counters; policies keep those, and they end with it."""

    __slots__ = ("calls", "empty", "group", "number", "repeated", "retrievals", "said", "tool_ms")

    def __init__(self, number: int) -> None:
        self.number = number
        self.group: str | None = None
        """The name under which a client groups calls of its own into one turn."""
        self.said = ""
        self.calls = 0
        self.retrievals = 0
        self.tool_ms = 0.0
        self.repeated: dict[bytes, int] = {}
        self.empty: dict[str, int] = {}

    def to_wire(self) -> dict[str, Any]:
        """The turn as it is kept for a session that is taken up again."""
        return {
            "number": self.number,
            "group": self.group,
            "said": self.said,
            "calls": self.calls,
            "retrievals": self.retrievals,
            "toolMs": self.tool_ms,
            "repeated": {key.hex(): count for key, count in self.repeated.items()},
            "empty": self.empty,
        }

    @classmethod
    def from_wire(cls, wire: dict[str, Any]) -> Turn:
        """A turn as `to_wire` wrote it."""
        turn = cls(wire["number"])
        turn.said, turn.group = wire.get("said", ""), wire.get("group")
        turn.calls, turn.retrievals, turn.tool_ms = wire["calls"], wire["retrievals"], wire["toolMs"]
        turn.repeated = {bytes.fromhex(key): count for key, count in wire["repeated"].items()}
        turn.empty = dict(wire["empty"])
        return turn
