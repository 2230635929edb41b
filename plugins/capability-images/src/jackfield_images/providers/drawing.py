"""What every provider is asked and answers with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from jackfield_capability_types.images import ImageOrder


class Drawing(NamedTuple):
    """A picture as it came, and the words it was made from as far as the provider says so."""

    content: bytes
    prompt: str


class Provider(Protocol):
    """A service that draws; what it cannot or will not do it raises as `ToolError`."""

    async def draw(self, order: ImageOrder) -> Sequence[Drawing]:
        """The pictures of an order; fewer than asked when the provider left some out, never none."""

    async def close(self) -> None:
        """Let go of connections."""


def words(order: ImageOrder) -> str:
    """The order in words; not every model knows a field for what is unwanted."""
    return f"{order.prompt}\n\nAvoid: {order.avoid}" if order.avoid else order.prompt
