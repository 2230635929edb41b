"""What turns texts into vectors."""

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
    """No vectors could be made; the message says why and how to mend it."""


class Embedder(Protocol):
    """A model; texts that mean the same lie close together."""

    @property
    def model(self) -> str:
        """Its name; vectors of different names are never compared."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """A row of length one for each text; `EmbeddingError` with a sentence when that fails."""
