"""`ctx.images`: generated images, stored as files and referenced by id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from jackfield.contract.context import SessionView

SHAPES = ("square", "landscape", "portrait")
QUALITIES = ("draft", "standard", "high")


@dataclass(frozen=True, slots=True)
class ImageOrder:
    """A request for images."""

    prompt: str
    avoid: str = ""
    """What the image must not contain."""

    shape: str = "square"
    """One of `SHAPES`."""

    quality: str = "standard"
    """One of `QUALITIES`; better quality is slower and more expensive."""

    count: int = 1
    """The number of images, 1 to 4."""


@dataclass(frozen=True, slots=True)
class StoredImage:
    """A generated image that is stored."""

    id: str
    """A random id; it gives access to the image."""

    media_type: str
    width: int
    height: int
    size: int
    """In bytes."""

    prompt: str
    """The prompt that the provider used."""

    provider: str
    model: str


class ImagesView(Protocol):
    """The images of one session."""

    async def generate(self, order: ImageOrder) -> Sequence[StoredImage]:
        """Generate and store images: at least one, possibly fewer than ordered.

        Raises `PERMANENT` if the provider rejects the request; `partial_side_effects` is set if a failure may
        have been billed.
        """

    async def read(self, image_id: str) -> tuple[StoredImage, bytes] | None:
        """Read a stored image and its content; None if the id is unknown or invalid."""


class Images(Protocol):
    """The capability `images`."""

    def for_session(self, session: SessionView) -> ImagesView:
        """Return the view that handlers of this session use."""

    def cost(self, order: ImageOrder) -> float | None:
        """Estimate the cost of an order in US dollars, without a request; None if no price is known."""

    async def close(self) -> None:
        """Close the connections."""
