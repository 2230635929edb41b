"""`ctx.images`: pictures made from words, kept as files and spoken of by id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from jackfield.contract.context import SessionView

SHAPES = ("square", "landscape", "portrait")
QUALITIES = ("draft", "standard", "high")


@dataclass(frozen=True, slots=True)
class ImageOrder:
    """What is to be drawn."""

    prompt: str
    avoid: str = ""
    """What must not be in the picture."""

    shape: str = "square"
    """One of `SHAPES`."""

    quality: str = "standard"
    """One of `QUALITIES`: the better, the slower and the dearer."""

    count: int = 1
    """How many pictures of the same words, 1 to 4."""


@dataclass(frozen=True, slots=True)
class StoredImage:
    """A picture that was made and kept."""

    id: str
    """Unguessable; whoever has it may see the picture."""

    media_type: str
    width: int
    height: int
    size: int
    """In bytes."""

    prompt: str
    """The words it was made from, as the provider says it used them."""

    provider: str
    model: str


class ImagesView(Protocol):
    """Pictures as one session may have them made."""

    async def generate(self, order: ImageOrder) -> Sequence[StoredImage]:
        """Have pictures made and keep them; at least one, fewer than ordered when the provider left some out.

        `PERMANENT` when the provider will not draw that; `partial_side_effects` when a failure may have been
        paid for.
        """

    async def read(self, image_id: str) -> tuple[StoredImage, bytes] | None:
        """A kept picture and its content; nothing for an id that is unknown, or that is no id at all."""


class Images(Protocol):
    """What a plugin provides under the name `images`."""

    def for_session(self, session: SessionView) -> ImagesView:
        """Return the view that handlers of this session use."""

    def cost(self, order: ImageOrder) -> float | None:
        """About what an order costs, in US dollars; nothing when nobody knows. Asking sends nothing."""

    async def close(self) -> None:
        """Let go of connections."""
