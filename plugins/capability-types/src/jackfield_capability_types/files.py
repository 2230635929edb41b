"""Files that tools show: a capability stores them, and every host serves them to authenticated users."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

IMAGE_TYPES = ("image/gif", "image/jpeg", "image/png", "image/webp")
"""The media types of the images that every client can show."""


class ShownFile(NamedTuple):
    """A file to which the data of a result refers."""

    id: str
    """A random id; it gives access to the file."""

    path: str
    """The path at which every host serves the file."""

    size: int
    """In bytes."""


class FileContent(NamedTuple):
    """The content of a stored file."""

    media_type: str
    """One of `IMAGE_TYPES` only if the content was decoded as such an image."""

    content: bytes


@runtime_checkable
class FileSource(Protocol):
    """A capability that stores files; plugins that show results find and read them with it."""

    def shown_files(self, data: Any) -> Sequence[ShownFile]:
        """Return the files to which the data of a result refers; the data may be of any shape."""

    async def read_file(self, file_id: str) -> FileContent | None:
        """Return a file; None if there is none. Raises `OSError` if it cannot be read at the moment."""
