"""What a library holds, in figures."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from jackfield_kb.files import size
from jackfield_kb.indexes import Indexes
from jackfield_kb.truth import reading
from jackfield_kb.truth.database import Database
from jackfield_kb.truth.reading import Position


class Stats(NamedTuple):
    """What a library holds."""

    records: dict[tuple[str, str], int]
    """How many, by namespace and type."""

    sources: int
    passages: int
    """How many passages can be found by their words at this moment."""

    bytes: dict[str, int]
    """On disk: of the `records`, the `text` index and the `vectors`."""

    indexes: dict[str, str]
    """Of `text` and `vectors`: `up to date`, `12 records behind`, `missing`, or why there is none."""

    model: str | None
    """The model whose vectors are searched; None when the words alone are."""


def stats(folder: Path, database: Database, indexes: Indexes) -> Stats:
    """Count and measure."""
    text, vectors = indexes.text(), indexes.vectors()
    with database.reading() as db:
        records = reading.counts(db)
        sources = sum(1 for _ in reading.sources(db, None))
        target = reading.position(db)

        def state(position: Position | None) -> str:
            if position is None:
                return "missing" if records else "empty"
            lacking = reading.count_after(db, position.number)
            if lacking:
                return f"{lacking} record{'s' if lacking > 1 else ''} behind"
            return "up to date" if position.step == target.step else "behind on removals"

        states = {"text": state(None if text is None else text.position), "vectors": "off: no embeddings"}
        if indexes.embedder is not None:
            states["vectors"] = state(None if vectors is None else vectors.position)
    return Stats(
        records=records,
        sources=sources,
        passages=0 if text is None else text.passages,
        bytes={
            "records": sum(path.stat().st_size for path in folder.glob("knowledge.db*")),
            "text": size(folder / "text"),
            "vectors": size(folder / "vectors"),
        },
        indexes=states,
        model=None if indexes.embedder is None else indexes.embedder.model,
    )
