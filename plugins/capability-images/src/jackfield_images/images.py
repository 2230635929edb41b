"""The capability `images`: orders go to a provider, what comes back is looked at and kept."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from jackfield import SessionView, ToolError
from jackfield_capability_types.images import ImageOrder, StoredImage

from jackfield_images import tool_errors
from jackfield_images.gallery import Gallery, NotAnImageError, inspect
from jackfield_images.providers import GeneratedImage, ImageProvider, connect
from jackfield_images.settings import ProviderConfig

_log = logging.getLogger("jackfield.images")


class ProviderImages:
    """Pictures belong to nobody: whoever has the id may see them, so every session has the same view."""

    def __init__(self, config: ProviderConfig) -> None:
        self._config = config
        self._gallery = Gallery(config.folder)
        self._provider: ImageProvider | None = None
        self._connecting = asyncio.Lock()

    def for_session(self, session: SessionView) -> ProviderImages:  # noqa: ARG002 - the protocol's signature
        """What the handler of a call in this session is given."""
        return self

    def cost(self, order: ImageOrder) -> float | None:
        """About what an order costs, in US dollars; nothing when nobody knows."""
        return self._config.prices.cost(self._config.provider, self._config.model, order)

    async def generate(self, order: ImageOrder) -> Sequence[StoredImage]:
        """Have pictures made and keep them."""
        await self._prepare_folder()
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
        # Some of what was paid for is better than nothing; who asked sees how many there are.
        return kept

    async def read(self, image_id: str) -> tuple[StoredImage, bytes] | None:
        """A kept picture and its content."""
        return await asyncio.to_thread(self._gallery.read, image_id)

    async def close(self) -> None:
        """Let go of the provider."""
        if self._provider is not None:
            await self._provider.close()
            self._provider = None

    async def _connected(self) -> ImageProvider:
        async with self._connecting:
            if self._provider is None:
                # The provider's package takes a second to import, which the loop must not wait for.
                self._provider = await asyncio.to_thread(connect, self._config)
            return self._provider

    async def _prepare_folder(self) -> None:
        """Before the order and not after it: a picture that cannot be kept must not be paid for."""
        try:
            await asyncio.to_thread(self._gallery.prepare)
        except OSError as error:
            _log.error("pictures cannot be kept: %s", error)
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
                self._gallery.keep, drawing.content, seen, prompt=drawing.prompt, by=by
            )
        except OSError as error:
            _log.error("a picture that was made cannot be kept: %s", error)
            raise tool_errors.cannot_keep(paid=True) from None

    def _unusable(self, why: str) -> ToolError:
        _log.error("what %s sent as a picture cannot be used: %s", self._config.provider, why)
        return tool_errors.unusable()
