"""Keeps the full-text index up to date with the records."""

from __future__ import annotations

from jackfield_kb.errors import DamagedIndexError
from jackfield_kb.fulltext import index
from jackfield_kb.fulltext.index import TextIndex, TextState
from jackfield_kb.index_worker import Count, IncrementalIndex, Notice
from jackfield_kb.records import statements
from jackfield_kb.records.database import RecordDatabase
from jackfield_kb.records.statements import Position

_BATCH = 1_000
_COMMIT = 50_000
"""Commit after this many records, so that an interrupted run keeps its progress."""


class TextIndexer(IncrementalIndex[TextState]):
    """Updates the full-text index."""

    def __init__(self, database: RecordDatabase, index: TextIndex, notice: Notice) -> None:
        super().__init__(database, index.folder, notice)
        self._index = index

    def _begun(self) -> TextState:
        return self._index.start_rebuild()

    def _extend(self, state: TextState, count: Count) -> None:
        try:
            self._fill(state, count, publish=True)
        except DamagedIndexError as error:
            self._notice(f"the full-text index is damaged and is being rebuilt: {error}")
            self._fill(self._index.start_rebuild(), count, publish=False)

    def _usable(self) -> TextState | None:
        try:
            return self._index.state()
        except DamagedIndexError as error:
            self._notice(f"the full-text index cannot be used and is being rebuilt: {error}")
            self._index.discard()
            return None

    def _fill(self, state: TextState, count: Count, *, publish: bool) -> None:
        with self._database.reading() as db:
            target = statements.position(db)
            gone = statements.removed_after(db, state.position.step) if state.position.number else []
        with index.damage_reported():
            writer = index.writer(self._index.open(state, check=False))
            index.remove(writer, gone)
            number, pending = state.position.number, 0
            while batch := self._next(number):
                index.add(writer, batch)
                number, pending = batch[-1].number, pending + len(batch)
                count(len(batch))
                if publish and pending >= _COMMIT:
                    writer.commit()
                    state = self._index.record(state, Position(number, target.step))
                    pending = 0
            writer.commit()
            writer.wait_merging_threads()
        state = self._index.record(state, Position(max(number, target.number), target.step))
        self._index.tidy(state)

    def _next(self, number: int) -> list[statements.Numbered]:
        with self._database.reading() as db:
            return statements.after(db, number, _BATCH)
