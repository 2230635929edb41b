"""Every library survives an export and a load unchanged."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from jackfield_capability_types.knowledge import NAMESPACES, TYPES, Record
from jackfield_kb.cli.terminal import NoProgress
from jackfield_kb.library import Library
from jackfield_kb.loader.drafts import to_line
from jackfield_kb.loader.load import LoadPlan, LoadRun

# Everything except lone surrogates, which UTF-8 cannot represent.
characters = st.characters(exclude_categories=["Cs"])
words = st.text(characters, max_size=40)
name = st.text(characters, min_size=1, max_size=30).filter(lambda text: not any(c.isspace() for c in text))
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def records(draw: st.DrawFn) -> Record:
    type_ = draw(st.sampled_from(TYPES))
    namespace = draw(st.sampled_from(NAMESPACES))
    moments = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001
    return Record(
        id=draw(name | name.map(lambda rest: f"{type_}:{rest}")),
        title=draw(words),
        text=draw(words),
        type=type_,
        namespace=namespace,
        owner=draw(st.text(characters, min_size=1, max_size=10)) if namespace == "personal" else None,
        tags=tuple(draw(st.lists(st.text(characters, min_size=1, max_size=10), max_size=3))),
        url=draw(st.none() | st.just("https://halden.example/ü?q=1#part")),
        source_type=draw(words),
        last_updated=draw(st.none() | moments),
        metadata=draw(st.dictionaries(words, values, max_size=4)),
    )


@settings(max_examples=20, deadline=None)
@given(st.lists(records(), min_size=5, max_size=20, unique_by=lambda record: record.id))
def test_an_export_loads_back_without_loss(made: list[Record]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        first = Library(Path(folder, "first"), embedder=None, notice=lambda line: None)
        second = Library(Path(folder, "second"), embedder=None, notice=lambda line: None)
        try:
            first.write([(None, made)])
            kept = list(first)
            export = Path(folder, "export.jsonl")
            export.write_text("".join(map(to_line, kept)), "utf-8", newline="")
            summary = LoadRun(second, LoadPlan(), NoProgress(), lambda: False).run([export])
            assert not summary.problems
            assert list(second) == kept
        finally:
            first.close()
            second.close()
