"""The harness of the knowledge tests: records, and knowledge bases that contain them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from jackfield_capability_types.knowledge import KnowledgeBase, KnowledgeView, Record

from jackfield_testkit.context import SessionStub
from jackfield_testkit.suite import async_test_for

async_test = async_test_for("the knowledge base", 120)


def day(number: int) -> datetime:
    """Return noon of a day in March 2026."""
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

RECORDS = (LIGHTHOUSE, FERRY, VACATION, BREAD)


def personal_note(owner: str, name: str, text: str) -> Record:
    """Return a personal record."""
    return Record(f"doc:{name}", f"Notes on {name}", text, namespace="personal", owner=owner)


@dataclass(frozen=True, slots=True)
class KnowledgeHarness:
    """Creates knowledge bases for one test."""

    create: Callable[[Path, Sequence[Record]], Awaitable[KnowledgeBase]]
    folder: Path

    @asynccontextmanager
    async def open(self, *records: Record) -> AsyncIterator[KnowledgeBase]:
        """Create a knowledge base with these records, and close it afterwards."""
        base = await self.create(self.folder, records)
        try:
            yield base
        finally:
            await base.close()

    @asynccontextmanager
    async def view(self, *records: Record, user: str | None = "ann") -> AsyncIterator[KnowledgeView]:
        """Create a knowledge base with these records, and yield the view of one user."""
        async with self.open(*records) as base:
            yield base.for_session(SessionStub(user))
