"""Access control: which records a user may see."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from jackfield_capability_types.knowledge import NAMESPACES, Record

PERSONAL = "personal"
SHARED = tuple(name for name in NAMESPACES if name != PERSONAL)
"""The namespaces that are shared by users."""


@dataclass(frozen=True, slots=True)
class Access:
    """The shared namespaces and the personal records that a user may see."""

    shared: frozenset[str] = frozenset()
    owner: str | None = None
    """The user whose personal records are visible; None for no personal records."""

    unlimited: bool = False
    """Allows all records of all users, for the command line on the machine that stores the files."""

    @classmethod
    def everything(cls) -> Access:
        """Return access to all records, for a person who can read the files anyway."""
        return cls(unlimited=True)

    @classmethod
    def of(cls, user: str | None, shared: Iterable[str] = SHARED) -> Access:
        """Return a user's access; without a user, no personal records are visible."""
        return cls(frozenset(shared) - {PERSONAL}, user or None)

    def allows(self, record: Record) -> bool:
        """Return whether the user may see a record."""
        if self.unlimited:
            return True
        if record.namespace == PERSONAL:
            return self.owner is not None and record.owner == self.owner
        return record.namespace in self.shared

    def scopes(self, namespace: str | None) -> frozenset[str] | None:
        """Return the scopes that a search may use; None means all."""
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
    """Return the scope of one user's personal records in the indexes."""
    return f"{PERSONAL}/{owner}"


def scopes_of(record: Record) -> tuple[str, ...]:
    """Return the scopes of a record: its namespace, and its owner's scope if it is personal.

    Only a search with access to everything uses the scope `personal`, which covers the records of all users.
    """
    if record.namespace == PERSONAL and record.owner:
        return (PERSONAL, personal_scope(record.owner))
    return (record.namespace,)
