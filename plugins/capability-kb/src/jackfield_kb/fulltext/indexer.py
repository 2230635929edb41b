"""Keeps the full-text index up to date with the records."""

from __future__ import annotations

from jackfield_kb.errors import DamagedIndexError
from jackfield_kb.fulltext import index
from jackfield_kb.fulltext.index import TextIndex, TextIndexState
from jackfield_kb.index_worker import Count, IncrementalIndex, Notice
from jackfield_kb.records.interface import Position, RecordLog

_BATCH = 1_000
_COMMIT = 50_000
"""Commit after this many records, so that an interrupted run keeps its progress."""


class TextIndexer(IncrementalIndex[TextIndexState]):
    """Updates the full-text index."""

    def __init__(self, log: RecordLog, index: TextIndex, notice: Notice) -> None:
        super().__init__(log, index.folder, notice)
        self._index = index

    def _begun(self) -> TextIndexState:
        return self._index.start_rebuild()

    def _extend(self, state: TextIndexState, count: Count) -> None:
        try:
            self._fill(state, count, publish=True)
        except DamagedIndexError as error:
            self._notice(f"the full-text index is damaged and is being rebuilt: {error}")
            self._fill(self._index.start_rebuild(), count, publish=False)

    def _discard(self) -> None:
        self._index.discard()

    def _usable(self) -> TextIndexState | None:
        try:
            return self._index.state()
        except DamagedIndexError as error:
            self._notice(f"the full-text index cannot be used and is being rebuilt: {error}")
            self._index.discard()
            return None

    def _fill(self, state: TextIndexState, count: Count, *, publish: bool) -> None:
        target, gone = self._log.changes(state.position)
        with index.damage_reported():
            writer = index.writer(self._index.open(state, check=False))
            index.remove(writer, gone)
            index.remove_after(writer, state.position.number)
            number, pending = state.position.number, 0
            while batch := self._log.after(number, _BATCH):
                index.add(writer, batch)
                number, pending = batch[-1].number, pending + len(batch)
                count(len(batch))
                if publish and pending >= _COMMIT:
                    writer.commit()
                    state = self._index.record(state, Position(number, target.step))
                    pending = 0
            writer.commit()
            writer.wait_merging_threads()
        position = Position(max(number, target.number), target.step)
        state = self._index.record(state._replace(complete=True), position)
        self._index.tidy(state)
