"""Sentence embeddings: loaded with the first phrase, shared by the process, and kept where they recur."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

import numpy as np
from jackfield_embeddings import MiniLM, Vectors

KEPT = 4096
"""So many phrases are kept, 1.5 kB each: the guides of all tools, and what was said lately."""

_kept: OrderedDict[str, Vectors] = OrderedDict()
_lock = Lock()
_model = MiniLM()


def embed_phrases(texts: Sequence[str]) -> Vectors:
    """A row of length one for each text."""
    rows = np.empty((len(texts), 384), np.float32)
    for row, text in zip(rows, texts, strict=True):
        row[:] = _phrase(text)
    return rows


def _phrase(text: str) -> Vectors:
    with _lock:
        if text in _kept:
            _kept.move_to_end(text)
            return _kept[text]
    found: Vectors = _model.embed([text])[0]
    with _lock:
        _kept[text] = found
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    return found
