"""The capability `images`: requests images from a provider, checks and stores them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from jackfield import SessionView, ToolError
from jackfield_capability_types.files import FileContent, ShownFile
from jackfield_capability_types.images import ImageOrder, StoredImage

from jackfield_images import tool_errors
from jackfield_images.files import FilesUnavailableError, ImageBucket, ImageFolder
from jackfield_images.image_store import ImageStore, NotAnImageError, inspect, is_image_id
from jackfield_images.providers import GeneratedImage, ImageProvider, connect
from jackfield_images.settings import ProviderConfig

_log = logging.getLogger("jackfield.images")


IMAGES_PATH = "/images"


class ProviderImages:
    """Generates and reads images; an id gives access to its image, so all sessions share one view."""

    def __init__(self, config: ProviderConfig) -> None:
        self._config = config
        files = ImageBucket(config.url) if config.url else ImageFolder(config.folder)
        self._store = ImageStore(files, config.max_bytes)
        self._provider: ImageProvider | None = None
        self._connecting = asyncio.Lock()

    def for_session(self, session: SessionView) -> ProviderImages:  # noqa: ARG002 - the protocol's signature
        """Return the view that handlers of this session use."""
        return self

    def cost(self, order: ImageOrder) -> float | None:
        """Estimate the cost of an order in US dollars; None if no price is known."""
        return self._config.prices.cost(self._config.provider, self._config.model, order)

    async def generate(self, order: ImageOrder) -> Sequence[StoredImage]:
        """Generate images and store them."""
        await self._prepare_files()
        provider = await self._connected()
        try:
            async with asyncio.timeout(self._config.timeout):
                drawings = await provider.draw(order)
        except TimeoutError:
            raise tool_errors.no_answer(self._config.timeout) from None
        kept: list[StoredImage] = []
        failure: ToolError | None = None
        for drawing in drawings:
            try:
                kept.append(await self._keep(drawing))
            except ToolError as error:
                failure = error
        if failure is not None and not kept:
            raise failure
        # Some of the images were paid for, so they are returned; the caller sees how many.
        return kept

    async def read(self, image_id: str) -> tuple[StoredImage, bytes] | None:
        """Read a stored image and its content."""
        try:
            return await asyncio.to_thread(self._store.read, image_id)
        except FilesUnavailableError as error:
            _log.error("images cannot be read: %s", error)
            raise tool_errors.cannot_read() from None

    def shown_files(self, data: Any) -> Sequence[ShownFile]:
        """Return the images in the member `images` of a result."""
        listed = data.get("images") if isinstance(data, dict) else None
        return [
            ShownFile(each["id"], f"{IMAGES_PATH}/{each['id']}", each["size"])
            for each in (listed if isinstance(listed, list) else ())
            if isinstance(each, dict) and is_image_id(each.get("id")) and isinstance(each.get("size"), int)
        ]

    async def read_file(self, file_id: str) -> FileContent | None:
        """Read an image for a plugin that shows results."""
        found = await asyncio.to_thread(self._store.read, file_id)
        return None if found is None else FileContent(found[0].media_type, found[1])

    async def close(self) -> None:
        """Close the provider's connections."""
        if self._provider is not None:
            await self._provider.close()
            self._provider = None

    async def _connected(self) -> ImageProvider:
        async with self._connecting:
            if self._provider is None:
                # Importing the provider's package takes a second and must not block the loop.
                self._provider = await asyncio.to_thread(connect, self._config)
            return self._provider

    async def _prepare_files(self) -> None:
        """Check the files before the order: an image that cannot be stored must not be paid for."""
        try:
            await asyncio.to_thread(self._store.prepare)
        except OSError as error:
            _log.error("images cannot be stored: %s", error)
            raise tool_errors.cannot_keep(paid=False) from None

    async def _keep(self, drawing: GeneratedImage) -> StoredImage:
        config = self._config
        if len(drawing.content) > config.max_bytes:
            raise self._unusable(f"an image of {len(drawing.content)} bytes is over max_bytes")
        try:
            seen = await asyncio.to_thread(inspect, drawing.content)
        except NotAnImageError as error:
            raise self._unusable(str(error)) from None
        by = config.provider, config.model
        try:
            return await asyncio.to_thread(
                self._store.keep, drawing.content, seen, prompt=drawing.prompt, by=by
            )
        except OSError as error:
            _log.error("a generated image cannot be stored: %s", error)
            raise tool_errors.cannot_keep(paid=True) from None

    def _unusable(self, why: str) -> ToolError:
        _log.error("the image that %s sent cannot be used: %s", self._config.provider, why)
        return tool_errors.unusable()
