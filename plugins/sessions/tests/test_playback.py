"""How much of the assistant's speech was played."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from jackfield_sessions.playback import BYTES_PER_MS, PlaybackTracker


@given(st.lists(st.tuples(st.sampled_from(["sent", "played"]), st.sampled_from("ab"), st.integers(0, 5000))))
def test_no_more_is_played_than_was_sent(steps: list[tuple[str, str, int]]) -> None:
    playback = PlaybackTracker()
    for kind, item, number in steps:
        if kind == "sent":
            playback.add_sent(item, number * BYTES_PER_MS)
        else:
            playback.report(item, number)
        assert 0 <= playback.played_ms <= playback.sent_ms
        assert 0 <= playback.fraction <= 1
