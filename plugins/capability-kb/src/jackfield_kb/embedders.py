"""Embedding models: the local one, and an OpenAI-compatible endpoint."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from jackfield_kb.errors import EmbeddingFailedError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
    import openai
    from jackfield_embeddings import MiniLM


class EmbeddingModel(Protocol):
    """An embedding model: similar texts get similar vectors."""

    @property
    def model(self) -> str:
        """The name of the model; vectors of different models are never compared."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a unit vector for each text; raises `EmbeddingFailedError`."""


def missing() -> list[str]:
    """Return the required packages that are not installed; imports no heavy modules."""
    if find_spec("jackfield_embeddings") is None:
        return ["jackfield_embeddings"]
    from jackfield_embeddings import missing as of_the_model

    return of_the_model()


class LocalModel:
    """all-MiniLM-L6-v2, loaded when it is first used."""

    @property
    def model(self) -> str:
        """The name of the model; vectors of different models are never compared."""
        return self._inner.model

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a unit vector for each text."""
        from jackfield_embeddings import EmbeddingError as NotEmbeddedError

        try:
            return self._inner.embed(texts)
        except NotEmbeddedError as error:
            raise EmbeddingFailedError(str(error)) from error

    @cached_property
    def _inner(self) -> MiniLM:
        from jackfield_embeddings import MiniLM

        return MiniLM()


_CHARACTERS = 6_000
"""Longer texts are cut, because endpoints reject them; chunks are far shorter."""


class EndpointModel:
    """An embedding model behind an OpenAI-compatible endpoint."""

    def __init__(self, model: str, *, base_url: str | None, api_key: str, timeout: float) -> None:
        self.model = model
        self._base_url = base_url
        self._api_key = api_key
        self._timeout = timeout
        self._opening = threading.Lock()
        self._client: openai.OpenAI | None = None

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a unit vector for each text."""
        import numpy as np

        client = self._opened()
        rows = self._ask(client, [text[:_CHARACTERS] or " " for text in texts])
        found = np.array(rows, np.float32).reshape(len(texts), -1)
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        if not np.isfinite(found).all() or not lengths.all():
            raise EmbeddingFailedError(f"the embedding endpoint{self._where()} returned invalid vectors")
        unit: Vectors = found / lengths
        return unit

    def _opened(self) -> openai.OpenAI:
        try:
            import openai
        except ImportError as error:
            raise EmbeddingFailedError(
                f"an embedding endpoint needs the openai package ({error}); "
                "install jackfield-capability-kb[openai]"
            ) from error
        with self._opening:
            if self._client is None:
                self._client = openai.OpenAI(
                    api_key=self._api_key, base_url=self._base_url, timeout=self._timeout, max_retries=2
                )
            return self._client

    def _ask(self, client: openai.OpenAI, texts: list[str]) -> list[Any]:
        import openai

        try:
            answer = client.embeddings.create(model=self.model, input=texts, encoding_format="float")
        except openai.APIStatusError as error:
            raise EmbeddingFailedError(f"{self._refused(error.status_code)}") from error
        except openai.APITimeoutError as error:
            raise EmbeddingFailedError(
                f"the embedding endpoint{self._where()} did not answer within {self._timeout:g} s"
            ) from error
        except openai.OpenAIError as error:
            raise EmbeddingFailedError(
                f"the embedding endpoint{self._where()} cannot be reached ({type(error).__name__})"
            ) from error
        rows = sorted(answer.data, key=lambda each: each.index)
        if len(rows) != len(texts):
            raise EmbeddingFailedError(
                f"the embedding endpoint{self._where()} returned {len(rows)} vectors for {len(texts)} texts"
            )
        return [each.embedding for each in rows]

    def _refused(self, status: int) -> str:
        # The endpoint's message may repeat the key, so it is not passed on.
        hint = {
            401: "check the key in the variable that api_key_env names",
            403: "the key is not allowed to use this model",
            404: f"it has no model {self.model!r}, or base_url is wrong",
            429: "it limits the rate of requests; try again later",
        }.get(status, "try again later, or check the endpoint's log")
        return f"the embedding endpoint{self._where()} answered {status}; {hint}"

    def _where(self) -> str:
        return f" {self._base_url}" if self._base_url else ""
