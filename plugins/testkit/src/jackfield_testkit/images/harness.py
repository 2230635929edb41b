"""The harness of the images tests: the capability with a provider that behaves as a test requires."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from jackfield_capability_types.images import Images, ImagesView

from jackfield_testkit.context import SessionStub
from jackfield_testkit.suite import async_test_for

async_test = async_test_for("the images capability", 120)

SIGNATURES = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}
"""The first bytes of a file of each media type."""


@dataclass(frozen=True, slots=True)
class ImagesHarness:
    """Creates the capability for one test."""

    create: Callable[..., Awaitable[Images]]
    folder: Path

    @asynccontextmanager
    async def open(self, provider: str = "drawing") -> AsyncIterator[Images]:
        """Create the capability, and close it afterwards."""
        self.folder.mkdir(exist_ok=True)
        images = await self.create(self.folder, provider)
        try:
            yield images
        finally:
            await images.close()

    @asynccontextmanager
    async def view(self, provider: str = "drawing", user: str | None = "ann") -> AsyncIterator[ImagesView]:
        """Create the capability, and yield the view of one user."""
        async with self.open(provider) as images:
            yield images.for_session(SessionStub(user))
