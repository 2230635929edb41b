"""Guesses what a call may change, from an HTTP method, from a server's hints, or from the verb in a name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_READING_METHODS = frozenset({"get", "head", "options"})
_IDEMPOTENT_METHODS = frozenset({"get", "head", "options", "put", "delete"})
_READING_VERBS = frozenset(
    {
        "check", "compare", "count", "describe", "fetch", "find", "get", "list", "load", "look", "lookup",
        "query", "read", "retrieve", "search", "show", "view",
    }
)  # fmt: skip
"""Verbs that usually begin the names of read-only functions. Everything else is assumed to write."""


@dataclass(frozen=True, slots=True)
class EffectsGuess:
    """A guess about whether a tool writes and whether it is idempotent, with the reason."""

    writes: bool
    idempotent: bool
    reason: str

    def manifest(self) -> dict[str, Any]:
        """Return the fields of the manifest that cannot be left out."""
        if not self.writes:
            return {"category": "retrieval"}
        return {
            "category": "action",
            "sideEffects": "writes",
            "idempotent": self.idempotent,
            "requiresConfirmation": True,
        }


def from_method(method: str) -> EffectsGuess:
    """Guess from an HTTP method, whose meaning RFC 9110 defines."""
    verb = method.lower()
    writes, idempotent = verb not in _READING_METHODS, verb in _IDEMPOTENT_METHODS
    return EffectsGuess(writes, idempotent, f"the method is {verb.upper()}")


def from_hints(name: str, hints: dict[str, Any]) -> EffectsGuess:
    """Guess from the annotations of an MCP tool, or else from its name."""
    reads = hints.get("readOnlyHint")
    if not isinstance(reads, bool):
        return from_name(name)
    reason = f"readOnlyHint is {str(reads).lower()}"
    return EffectsGuess(not reads, reads or hints.get("idempotentHint") is True, reason)


def from_name(name: str) -> EffectsGuess:
    """Guess from the verb with which a snake_case name starts; an unknown verb writes."""
    verb = name.partition("_")[0]
    if verb in _READING_VERBS:
        return EffectsGuess(writes=False, idempotent=True, reason=f"the name starts with {verb!r}")
    return EffectsGuess(
        writes=True, idempotent=False, reason="the name does not start with a verb such as get or search"
    )
