"""A stream's entries answer like a list that is scanned, however they are divided into blocks."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jackfield import stream_entries
from jackfield.stream_entries import StreamEntries

NEVER = float("inf")
EXPIRIES = st.one_of(st.integers(1, 20).map(float), st.just(NEVER))
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("append"), EXPIRIES),
        st.tuples(st.just("remove"), st.integers(0, 21).map(float)),
    ),
    max_size=60,
)


class Kept(NamedTuple):
    id: int
    value: bytes
    expires: float


class Model:
    """The entries that have not been removed, in one list."""

    def __init__(self, last: int) -> None:
        self.last = last
        self.kept: list[Kept] = []

    def append(self, value: bytes, expires: float) -> int:
        self.last += 1
        self.kept.append(Kept(self.last, value, expires))
        return self.last

    def remove_expired(self, now: float) -> int:
        before = len(self.kept)
        self.kept = [each for each in self.kept if each.expires > now]
        return before - len(self.kept)

    def read(self, after: int, limit: int, now: float) -> list[tuple[int, bytes]]:
        return [(each.id, each.value) for each in self.kept if each.id > after and each.expires > now][:limit]


@pytest.mark.parametrize("block", [1, 2, 5, 128])
def test_any_changes_match_a_list_that_is_scanned(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Small blocks, so that few entries fill and empty them.
    monkeypatch.setattr(stream_entries, "BLOCK_ENTRIES", block)

    @settings(max_examples=150, deadline=None)
    @given(st.integers(0, 3), CHANGES, st.integers(0, 70), st.integers(0, 10), st.integers(0, 21))
    def compare(last: int, changes: list[tuple[str, float]], after: int, limit: int, now: float) -> None:
        found, model = StreamEntries(last), Model(last)
        for number, (act, time) in enumerate(changes):
            if act == "append":
                value = b"x" * number
                assert found.append(value, time) == model.append(value, time)
            else:
                assert found.remove_expired(time) == model.remove_expired(time)
            assert found.next_expiry == min((each.expires for each in model.kept), default=NEVER)
        assert found.last == model.last
        assert (found.count, found.is_empty) == (len(model.kept), not model.kept)
        assert found.bytes == sum(len(each.value) for each in model.kept)
        assert found.read(0, 100, 0.0) == model.read(0, 100, 0.0)
        assert found.read(after, limit, now) == model.read(after, limit, now)
        # The clock does not go back to before the last removal.
        now = max([now, *(time for act, time in changes if act == "remove")])
        current = [each for each in model.kept if each.expires > now]
        assert found.is_readable(now) == bool(current)
        assert found.count_current(now) == len(current)

    compare()
