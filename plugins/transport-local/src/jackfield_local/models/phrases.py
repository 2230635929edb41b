"""Sentence embeddings, computed once for each phrase: the guides of all tools, and what was said lately."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from jackfield_embeddings import MiniLM, Vectors

_model = MiniLM()


def embed_phrases(texts: Sequence[str]) -> Vectors:
    """A row of length one for each text."""
    return np.array([_embed(text) for text in texts], np.float32).reshape(-1, 384)


@lru_cache(maxsize=4096)
def _embed(text: str) -> Vectors:
    row: Vectors = _model.embed([text])[0]
    return row
