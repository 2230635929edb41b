"""What a standard test works with: the capability over a provider of the kind it needs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from jackfield_capability_types.images import Images, ImagesView

from jackfield_testkit.knowledge_contract.shelf import Visitor
from jackfield_testkit.trials import patiently

SIGNATURES = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}
"""How the files of each media type begin."""


@dataclass(frozen=True, slots=True)
class Studio:
    """A way to a capability."""

    make: Callable[..., Awaitable[Images]]
    place: Path

    @asynccontextmanager
    async def opened(self, provider: str = "drawing") -> AsyncIterator[Images]:
        """The capability, closed afterwards."""
        self.place.mkdir(exist_ok=True)
        images = await self.make(self.place, provider)
        try:
            yield images
        finally:
            await images.close()

    @asynccontextmanager
    async def view(self, provider: str = "drawing", user: str | None = "ann") -> AsyncIterator[ImagesView]:
        """What the session of one user is given."""
        async with self.opened(provider) as images:
            yield images.for_session(Visitor(user))


on_a_loop = patiently("the maker of pictures", 120)
