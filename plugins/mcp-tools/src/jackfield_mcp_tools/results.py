"""Converts a tool result to a response. Results are untrusted: their size is limited, files are stored."""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import orjson
from jackfield import ErrorType, ToolResponse, fail, ok
from jackfield_builder.listed_definitions import visible
from jackfield_capability_types.files import ShownFile

from jackfield_mcp_tools.media_references import MediaReferences
from jackfield_mcp_tools.stored_files import StoredFiles, is_file_id

if TYPE_CHECKING:
    import mcp_types

_log = logging.getLogger("jackfield.mcp")

MAX_FILES = 16
MAX_MESSAGE = 1000
MAX_NAME = 200
_SHORTEST = 16
"""Texts and lists are never cut shorter than this, so that short values, such as enum values, stay whole."""
FILES_PATH = "/mcp-files"


class ResultReader:
    """Converts results within one server's limits."""

    def __init__(self, files: StoredFiles, *, max_bytes: int, max_file: int) -> None:
        self._files = files
        self._max_bytes = max_bytes
        self._max_file = max_file

    async def response(self, result: mcp_types.CallToolResult, *, writes: bool) -> ToolResponse:
        """Return the response to a call."""
        media = MediaReferences()
        texts, attachments = await self._contents(result.content, media)
        texts = [media.replaced_within(each) for each in texts]
        if result.is_error:
            message = "\n".join(texts).strip()[:MAX_MESSAGE] or "The tool failed."
            return fail(ErrorType.PERMANENT, message, partial_side_effects=writes)
        data = self._data(media.replaced(result.structured_content), texts)
        if attachments:
            data["attachments"] = attachments
        return ok(data)

    def _data(self, structured: Any, texts: list[str]) -> dict[str, Any]:
        if isinstance(structured, dict):
            encoded = orjson.dumps(structured)
            if len(encoded) <= self._max_bytes:
                return dict(structured)
            return self._shortened(structured, len(encoded)) or self._cut(encoded)
        return self._cut("\n".join(texts).encode("utf-8", "replace"))

    def _shortened(self, structured: dict[str, Any], size: int) -> dict[str, Any] | None:
        """Return the data with shorter texts and lists, in the same shape; None if it is still too long."""
        most = self._max_bytes
        while most >= _SHORTEST:
            shorter: dict[str, Any] = shortened(structured, most)
            kept = len(orjson.dumps(shorter))
            if kept <= self._max_bytes:
                return {**shorter, "truncated": f"{kept} of {size} bytes: long texts and lists are cut"}
            most //= 2
        return None

    def _cut(self, encoded: bytes) -> dict[str, Any]:
        if len(encoded) <= self._max_bytes:
            return {"text": encoded.decode()}
        kept = encoded[: self._max_bytes].decode("utf-8", "ignore")
        return {"text": kept, "truncated": f"the first {len(kept.encode())} of {len(encoded)} bytes"}

    async def _contents(
        self, contents: Iterable[Any], media: MediaReferences
    ) -> tuple[list[str], list[dict[str, Any]]]:
        texts: list[str] = []
        attachments: list[dict[str, Any]] = []
        for each in contents:
            if each.type == "text":
                texts.append(each.text)
            elif each.type == "resource" and getattr(each.resource, "text", None) is not None:
                texts.append(f"{_short(each.resource.uri)}:\n{each.resource.text}")
            elif len(attachments) < MAX_FILES:
                attachments.append(await self._attachment(each, media))
        return texts, attachments

    async def _attachment(self, content: Any, media: MediaReferences) -> dict[str, Any]:
        if content.type == "resource_link":
            return {"kind": "link", "uri": _short(content.uri), "name": _short(content.name)}
        if content.type == "resource":
            kind, data, facts = "resource", content.resource.blob, {"uri": _short(content.resource.uri)}
        else:
            kind, data, facts = content.type, content.data, {}
        stored = await self._stored(data)
        media.add(data, stored.get("url") or f"omitted: {stored['omitted']}")
        return {"kind": kind, **facts, **stored}

    async def _stored(self, data: str) -> dict[str, Any]:
        """Store a file, and return where it is, or why it was omitted."""
        if len(data) * 3 // 4 > self._max_file:
            return {"omitted": f"larger than {self._max_file} bytes"}
        try:
            stored = await asyncio.to_thread(self._files.keep, base64.b64decode(data, validate=True))
        except binascii.Error:
            return {"omitted": "not valid base64"}
        except OSError as error:
            _log.error("a file in a result cannot be stored: %s", error)
            return {"omitted": "the host cannot store it at the moment"}
        url = f"{FILES_PATH}/{stored.id}"
        return {"id": stored.id, "mediaType": stored.media_type, "bytes": stored.bytes, "url": url}


def attached_files(data: Any) -> list[ShownFile]:
    """Return the stored files that a response's data refers to."""
    listed = data.get("attachments") if isinstance(data, dict) else None
    # A server's own data may have a member with this name and any content.
    return [
        ShownFile(each["id"], f"{FILES_PATH}/{each['id']}", each["bytes"])
        for each in (listed[:MAX_FILES] if isinstance(listed, list) else ())
        if isinstance(each, dict) and is_file_id(each.get("id")) and isinstance(each.get("bytes"), int)
    ]


def shortened(value: Any, most: int) -> Any:
    """Return a JSON value with every text and list cut to at most `most` characters or members."""
    if isinstance(value, str):
        return value[:most]
    if isinstance(value, list):
        return [shortened(each, most) for each in value[:most]]
    if isinstance(value, dict):
        return {name: shortened(each, most) for name, each in value.items()}
    return value


def _short(text: Any) -> str:
    return visible(str(text))[:MAX_NAME]
