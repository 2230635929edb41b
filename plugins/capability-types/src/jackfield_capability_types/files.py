"""Files that tools show: a capability stores them, and every host serves them to authenticated users."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

IMAGE_TYPES = ("image/gif", "image/jpeg", "image/png", "image/webp")
"""The media types of the images that every client can show."""

AUDIO_TYPES = ("audio/flac", "audio/mpeg", "audio/ogg", "audio/wav")
"""The media types of sound that clients commonly play."""

TEXT_TYPE = "text/plain"

OTHER_TYPE = "application/octet-stream"


class ShownFile(NamedTuple):
    """A file that a result's data refers to."""

    id: str
    """A random id; it gives access to the file."""

    path: str
    """The path at which every host serves the file."""

    size: int
    """In bytes."""


class FileContent(NamedTuple):
    """The content of a stored file."""

    media_type: str
    """One of `IMAGE_TYPES` only if the content was decoded as such an image, else the recognised type."""

    content: bytes


def recognised_type(content: bytes) -> str:
    """Return the media type of a file that is not an image, as recognised in its content."""
    if content[:4] == b"RIFF" and content[8:12] == b"WAVE":
        return "audio/wav"
    if content[:4] == b"OggS":
        return "audio/ogg"
    if content[:4] == b"fLaC":
        return "audio/flac"
    # Every frame begins with eleven set bits; the last two of the next four identify MPEG audio layer 3.
    if content[:3] == b"ID3" or (content[:1] == b"\xff" and content[1:2] and content[1] & 0xE6 == 0xE2):
        return "audio/mpeg"
    return TEXT_TYPE if _is_text(content) else OTHER_TYPE


def _is_text(content: bytes) -> bool:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return bool(text) and all(each.isprintable() or each in "\t\n\r" for each in text)


@runtime_checkable
class FileSource(Protocol):
    """A capability that stores files; plugins that show results use it to find and read these files."""

    def shown_files(self, data: Any) -> Sequence[ShownFile]:
        """Return the files that a result's data refers to; the data may have any shape."""

    async def read_file(self, file_id: str) -> FileContent | None:
        """Return a file; None if there is none. Raises `OSError` if it cannot be read at the moment."""
