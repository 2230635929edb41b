"""Stores the files in results, such as images, where every host can read them.

Each file has a random id; anyone who knows the id may read the file. A JSON file with its properties is
written last, so a file is complete or does not exist.
"""

from __future__ import annotations

import json
import re
import secrets
from typing import Any, NamedTuple

from jackfield_capability_types.files import recognised_type
from jackfield_images.files import FilesUnavailableError, ImageBucket, ImageFolder
from jackfield_images.image_store import NotAnImageError, inspect

from jackfield_mcp_tools.settings import McpToolsSettings

_ID = re.compile(r"[0-9a-f]{32}")
_MAX_FACTS = 4096


class StoredFile(NamedTuple):
    """A file: its id, its detected type, and its size."""

    id: str
    media_type: str
    bytes: int


class StoredFiles:
    """The files in a folder or an object store; every method blocks, so call it in a thread."""

    def __init__(self, settings: McpToolsSettings) -> None:
        self._files = ImageBucket(settings.url) if settings.url else ImageFolder(settings.folder)
        self._max_bytes = settings.max_file

    def keep(self, content: bytes) -> StoredFile:
        """Store a file with its detected type, whatever the server says; raises `OSError` on failure."""
        try:
            media_type = inspect(content).media_type
        except NotAnImageError:
            media_type = recognised_type(content)
        kept = StoredFile(secrets.token_hex(16), media_type, len(content))
        self._files.prepare()
        self._files.write(f"{kept.id}.bin", content, media_type)
        facts = json.dumps({"mediaType": media_type, "bytes": len(content)}).encode()
        self._files.write(f"{kept.id}.json", facts, "application/json")
        return kept

    def read(self, file_id: str) -> tuple[StoredFile, bytes] | None:
        """Return a file, or None if there is none; raises `FilesUnavailableError` if the store fails."""
        if not is_file_id(file_id):
            return None
        try:
            facts = json.loads(self._files.read(f"{file_id}.json", _MAX_FACTS))
            content = self._files.read(f"{file_id}.bin", self._max_bytes)
            return StoredFile(file_id, str(facts["mediaType"]), len(content)), content
        except FilesUnavailableError:
            raise
        except (OSError, ValueError, KeyError, TypeError):
            # The operator may have removed the file.
            return None


def is_file_id(value: Any) -> bool:
    """Return whether a value has the form of a file's id."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None
