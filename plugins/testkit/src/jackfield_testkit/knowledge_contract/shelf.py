"""What a standard test works with: records with plain differences, and a knowledge base that holds them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from jackfield import Mode
from jackfield_capability_types.knowledge import KnowledgeBase, KnowledgeView, Record

from jackfield_testkit.trials import patiently

Fill = Callable[[Path, Sequence[Record]], Awaitable[KnowledgeBase]]


def day(number: int) -> datetime:
    """A day of March 2026, at noon."""
    return datetime(2026, 3, number, 12, tzinfo=UTC)


LIGHTHOUSE = Record(
    "project:lighthouse",
    "Lighthouse restoration",
    "The lighthouse gets a new lantern. The keeper's house becomes a small museum about shipwrecks.",
    type="project",
    tags=("restoration", "coast"),
    url="https://kb.example/lighthouse",
    source_type="crm",
    last_updated=day(10),
    metadata={"status": "active", "budget": 125000, "partners": ["harbour board"]},
)
FERRY = Record(
    "project:ferry",
    "Electric ferry timetable",
    "A timetable for the electric ferry that crosses the bay every forty minutes.",
    type="project",
    tags=("transport", "coast"),
    last_updated=day(12),
)
VACATION = Record(
    "process:vacation",
    "Asking for vacation",
    "Vacation is requested in the staff portal two weeks ahead. The team lead approves it.",
    type="process",
    tags=("staff",),
    last_updated=day(14),
)
BREAD = Record(
    "doc:bread",
    "Sourdough bread recipe",
    "Flour, water and salt. Let the dough rest overnight and bake it in a hot oven.",
    tags=("kitchen",),
)
"""A record without a date."""

STUDIO = (LIGHTHOUSE, FERRY, VACATION, BREAD)


def notes_of(owner: str, name: str, text: str) -> Record:
    """A personal record."""
    return Record(f"doc:{name}", f"Notes on {name}", text, namespace="personal", owner=owner)


@dataclass(frozen=True, slots=True)
class Visitor:
    """The session of somebody who asks."""

    user: str | None
    id: str = "test-session"
    mode: Mode = "text"
    turn: int = 1
    registry_version: str = "1.0.00000000"
    active: bool = True


@dataclass(frozen=True, slots=True)
class Shelf:
    """A way to a knowledge base that holds given records."""

    fill: Fill
    place: Path

    @asynccontextmanager
    async def filled(self, *records: Record) -> AsyncIterator[KnowledgeBase]:
        """A knowledge base with these records, closed afterwards."""
        base = await self.fill(self.place, records)
        try:
            yield base
        finally:
            await base.close()

    @asynccontextmanager
    async def view(self, *records: Record, user: str | None = "ann") -> AsyncIterator[KnowledgeView]:
        """What one user sees of it."""
        async with self.filled(*records) as base:
            yield base.for_session(Visitor(user))


on_a_loop = patiently("the knowledge base", 120)
