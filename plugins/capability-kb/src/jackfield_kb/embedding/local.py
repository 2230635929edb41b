"""The model that runs on this machine, where the extra `embeddings` is installed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING

from jackfield_kb.embedding.embedder import Vectors
from jackfield_kb.errors import EmbeddingError

if TYPE_CHECKING:
    from jackfield_embeddings import MiniLM


def missing() -> list[str]:
    """The packages that the model needs and that are not installed; imports nothing heavy."""
    if find_spec("jackfield_embeddings") is None:
        return ["jackfield_embeddings"]
    from jackfield_embeddings import missing as of_the_model

    return of_the_model()


class LocalModel:
    """all-MiniLM-L6-v2, loaded when it is first used."""

    @property
    def model(self) -> str:
        """Its name; vectors of different names are never compared."""
        return self._inner.model

    def embed(self, texts: Sequence[str]) -> Vectors:
        """A row of length one for each text."""
        from jackfield_embeddings import EmbeddingError as NotEmbeddedError

        try:
            return self._inner.embed(texts)
        except NotEmbeddedError as error:
            raise EmbeddingError(str(error)) from error

    @cached_property
    def _inner(self) -> MiniLM:
        from jackfield_embeddings import MiniLM

        return MiniLM()
