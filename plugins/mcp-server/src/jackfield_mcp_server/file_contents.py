"""The files that a tool shows, as content of its result: images, sound and text, or links to them."""

from __future__ import annotations

import base64
import hashlib
import logging
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from jackfield.contract.manifest import ToolManifest
from jackfield_capability_types.files import (
    AUDIO_TYPES,
    IMAGE_TYPES,
    TEXT_TYPE,
    FileContent,
    FileSource,
    ShownFile,
)
from starlette.requests import Request

from jackfield_mcp_server.settings import McpSettings

_log = logging.getLogger(__name__)

MAX_FILES = 16
"""The maximum number of files in a result; further files appear only in its data."""

Content = dict[str, Any]


class FileContents:
    """Finds the files in results, with the help of the capabilities that store them."""

    def __init__(self, capabilities: Mapping[str, Any], settings: McpSettings) -> None:
        self._sources = {name: each for name, each in capabilities.items() if isinstance(each, FileSource)}
        self._max_bytes = settings.max_file_bytes
        self._public_url = settings.public_url

    async def of_result(self, tool: ToolManifest, data: Any, request: Request | None) -> list[Content]:
        """Return the content for the files that the data of a tool's result refers to."""
        contents: list[Content] = []
        left = self._max_bytes
        for source, file in self._files(tool, data):
            content = await self._content(source, file, left, request)
            if content is None:
                continue
            contents.append(content)
            if content["type"] != "resource_link":
                left -= file.size
        return contents

    async def _content(
        self, source: FileSource, file: ShownFile, left: int, request: Request | None
    ) -> Content | None:
        """Return a file if it has at most `left` bytes, else a link; None if the file was removed."""
        if file.size <= left:
            try:
                found = await source.read_file(file.id)
            except OSError as error:
                _log.warning("a file in a result cannot be read: %s", error)
            else:
                if found is None:
                    return None
                # The size in the data may be wrong, if it comes from another system.
                if len(found.content) == file.size:
                    content = _embedded(found, self._uri(file, request))
                    if content is not None:
                        return content
        return self._link(file, request)

    def _files(self, tool: ToolManifest, data: Any) -> Iterator[tuple[FileSource, ShownFile]]:
        """Return the files in the data; only the capabilities that the tool requires are asked."""
        found = (
            (source, file)
            for name, source in self._sources.items()
            if name in tool.requires
            for file in source.shown_files(data)
        )
        return islice(found, MAX_FILES)

    def _link(self, file: ShownFile, request: Request | None) -> Content | None:
        """Return a link to a file; None if the host's address is unknown."""
        uri = self._uri(file, request)
        if uri is None:
            return None
        return {"type": "resource_link", "uri": uri, "name": file.id, "size": file.size}

    def _uri(self, file: ShownFile, request: Request | None) -> str | None:
        base = self._public_url or (str(request.base_url) if request is not None else None)
        return None if base is None else f"{base.rstrip('/')}{file.path}"


def _embedded(found: FileContent, uri: str | None) -> Content | None:
    """Return the content of a file that clients can show; None for all other kinds of files."""
    media_type, content = found
    if media_type == TEXT_TYPE:
        # A resource needs a URI, even if no host serves the file.
        named = uri or f"urn:sha256:{hashlib.sha256(content).hexdigest()}"
        resource = {"uri": named, "mimeType": media_type, "text": content.decode("utf-8", "replace")}
        return {"type": "resource", "resource": resource}
    if media_type not in (*IMAGE_TYPES, *AUDIO_TYPES):
        return None
    kind = "image" if media_type in IMAGE_TYPES else "audio"
    return {"type": kind, "data": base64.b64encode(content).decode(), "mimeType": media_type}
