"""The interface of embedding models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
else:
    Vectors = Any


class EmbeddingError(Exception):
    """The embedding failed; the message gives the reason and a remedy."""


class Embedder(Protocol):
    """A model that gives similar texts similar vectors."""

    @property
    def model(self) -> str:
        """The model name; vectors of different models are never compared."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a unit vector for each text; raise `EmbeddingError` on failure."""
