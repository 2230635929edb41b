"""Text embeddings; the model is loaded when the first text is embedded."""

from __future__ import annotations

from jackfield_embeddings.embedder import Embedder, EmbeddingError, Vectors
from jackfield_embeddings.minilm import MODEL, MiniLM, missing

__all__ = ["MODEL", "Embedder", "EmbeddingError", "MiniLM", "Vectors", "missing"]
