"""Pictures in memory, so that a tool which needs `images` is tested without a provider."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from jackfield import SessionView, ToolError
from jackfield_capability_types.images import ImageOrder, StoredImage

from jackfield_testkit.images_contract.png import SIZES, png


class MemoryImages:
    """Makes small real pictures of one colour, and remembers what was ordered.

    `refusal` is raised instead, for the tests of what a tool does then; `price` is what one picture costs.
    """

    def __init__(self, *, refusal: ToolError | None = None, price: float | None = 0.01) -> None:
        self.orders: list[ImageOrder] = []
        """What was ordered, in order."""
        self._refusal = refusal
        self._price = price
        self._kept: dict[str, tuple[StoredImage, bytes]] = {}

    def for_session(self, session: SessionView) -> MemoryImages:  # noqa: ARG002 - the protocol's signature
        """The same pictures for everybody."""
        return self

    def cost(self, order: ImageOrder) -> float | None:
        """The price times the count."""
        return None if self._price is None else self._price * order.count

    async def generate(self, order: ImageOrder) -> Sequence[StoredImage]:
        """Pictures in the shape of the order."""
        self.orders.append(order)
        if self._refusal is not None:
            raise self._refusal
        return [self._made(order) for _ in range(order.count)]

    async def read(self, image_id: str) -> tuple[StoredImage, bytes] | None:
        """A kept picture and its content."""
        return self._kept.get(image_id)

    async def close(self) -> None:
        """Nothing is held open."""

    def _made(self, order: ImageOrder) -> StoredImage:
        width, height = SIZES[order.shape]
        content = png(width, height)
        image_id = secrets.token_hex(16)
        made = StoredImage(
            image_id, "image/png", width, height, len(content), order.prompt, "memory", "one-colour"
        )
        self._kept[image_id] = made, content
        return made
