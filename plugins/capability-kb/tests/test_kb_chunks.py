"""Chunks and snippets: complete text, whole words."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from jackfield_kb import chunks, search

texts = st.text(alphabet="ab c.\n!?,é中", max_size=60).flatmap(
    lambda piece: st.integers(1, 200).map(lambda times: piece * times)
)


@settings(deadline=None)
@given(texts)
def test_chunks_hold_the_whole_text_in_order(text: str) -> None:
    parts = list(chunks.split(text))
    assert "".join(text[part.start : part.end] for part in parts) == text
    assert all(len(text[part.start : part.end]) <= chunks.MOST for part in parts)
    assert len(parts) <= 1 + 3 * len(text) / chunks.MOST, "no crowd of tiny passages"


def test_chunks_end_at_a_paragraph_or_sentence() -> None:
    sentence = "A sentence of a few words that ends here. "
    paragraphs = "\n\n".join([sentence * 10] * 8)
    for part in list(chunks.split(paragraphs))[:-1]:
        assert paragraphs[part.start : part.end].endswith("\n\n")
    running = sentence * 80
    for part in list(chunks.split(running))[:-1]:
        assert running[part.start : part.end].endswith(". ")


def test_a_key_consists_of_a_record_and_a_chunk() -> None:
    key = chunks.key_of(123_456_789, 321)
    assert (chunks.number_of(key), chunks.ordinal_of(key)) == (123_456_789, 321)
    assert chunks.key_of(5, 65_535) < chunks.key_of(6, 0)


def test_a_snippet_shows_the_rarest_words() -> None:
    filler = "common words without any news in them "
    text = f"{filler * 10}the common kestrel nests in the belfry {filler * 10}"
    shown = search.snippet(text, {"common": 0.1, "kestrel": 5.0, "belfri": 4.0})
    assert "kestrel nests in the belfry" in shown
    assert shown.startswith("…")
    assert shown.endswith("…")


@settings(deadline=None)
@given(st.lists(st.sampled_from(["kestrel", "the", "naïve", "x" * 50, "中文", "end."]), max_size=120))
def test_a_snippet_consists_of_whole_words(words: list[str]) -> None:
    text = " ".join(words)
    shown = search.snippet(text, {"kestrel": 1.0, "naiv": 2.0})
    assert len(shown) <= search.MOST + 2
    inner = shown.strip("…")
    assert inner in text
    assert set(inner.split()) <= set(words)
