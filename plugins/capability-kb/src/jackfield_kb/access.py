"""What a user may see."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from jackfield_capability_types.knowledge import NAMESPACES, Record

PERSONAL = "personal"
SHARED = tuple(name for name in NAMESPACES if name != PERSONAL)
"""The namespaces that are not one user's own."""


@dataclass(frozen=True, slots=True)
class Access:
    """The shared namespaces that are open, and whose personal records are."""

    shared: frozenset[str] = frozenset()
    owner: str | None = None
    """The user whose personal records are open; nobody's when it is nobody."""

    unlimited: bool = False
    """Everything of everybody: for the shell of the machine that holds the files."""

    @classmethod
    def everything(cls) -> Access:
        """What whoever may read the files may see anyway."""
        return cls(unlimited=True)

    @classmethod
    def of(cls, user: str | None, shared: Iterable[str] = SHARED) -> Access:
        """What a user sees; no user at all sees no personal records."""
        return cls(frozenset(shared) - {PERSONAL}, user or None)

    def allows(self, record: Record) -> bool:
        """Whether a record is there for this user."""
        if self.unlimited:
            return True
        if record.namespace == PERSONAL:
            return self.owner is not None and record.owner == self.owner
        return record.namespace in self.shared

    def scopes(self, namespace: str | None) -> frozenset[str] | None:
        """The scopes a search may look into; None is all of them."""
        if namespace is not None and namespace not in NAMESPACES:
            return frozenset()
        if self.unlimited:
            return None if namespace is None else frozenset({namespace})
        open_scopes = set(self.shared)
        if self.owner is not None:
            open_scopes.add(personal_scope(self.owner))
        if namespace is None:
            return frozenset(open_scopes)
        wanted = personal_scope(self.owner) if namespace == PERSONAL and self.owner else namespace
        return frozenset(open_scopes & {wanted})


def personal_scope(owner: str) -> str:
    """The name under which the indexes keep one user's records."""
    return f"{PERSONAL}/{owner}"


def scopes_of(record: Record) -> tuple[str, ...]:
    """The scopes a record lies in: its namespace, and its owner's when it is personal.

    The namespace `personal` as a whole is only ever asked for by someone who may see everything.
    """
    if record.namespace == PERSONAL and record.owner:
        return (PERSONAL, personal_scope(record.owner))
    return (record.namespace,)
