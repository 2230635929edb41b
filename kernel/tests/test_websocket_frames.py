"""Splitting a stream into WebSocket frames, however the network cuts it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jackfield.transport.websocket_frames import BINARY, TEXT, FrameSplitter, frame_head, payload_start

KEY = b"\1\2\3\4"
CONTINUED_TEXT, LAST_PART, PING, CLOSE = 0x01, 0x80, 0x89, 0x88


def frame(first: int, payload: bytes, *, masked: bool = True) -> bytes:
    return frame_head(first, len(payload), masked=masked) + (KEY if masked else b"") + payload


def split(splitter: FrameSplitter, stream: bytes, sizes: list[int]) -> list[tuple[int, bytes]]:
    frames: list[tuple[int, bytes]] = []
    place = 0
    for size in [*sizes, len(stream)]:
        frames += splitter.split(stream[place : place + size])
        place += size
    return frames


payloads = st.one_of(st.binary(max_size=200), st.integers(65_530, 65_540).map(bytes))


@given(
    st.lists(st.tuples(st.sampled_from([TEXT, BINARY, PING, CLOSE]), payloads), max_size=6),
    st.lists(st.integers(1, 300), max_size=30),
    st.booleans(),
)
def test_every_frame_comes_out_as_it_was_sent(
    sent: list[tuple[int, bytes]], sizes: list[int], masked: bool
) -> None:
    frames = [frame(first, payload, masked=masked) for first, payload in sent]
    got = split(FrameSplitter(1 << 20, masked=masked), b"".join(frames), sizes)
    assert [each for _, each in got] == frames
    assert [message for message, _ in got] == [first if first in (TEXT, BINARY) else 0 for first, _ in sent]
    assert [each[payload_start(each) :] for _, each in got] == [payload for _, payload in sent]


def test_parts_of_a_message_are_not_complete_messages() -> None:
    stream = [frame(CONTINUED_TEXT, b"a"), frame(PING, b""), frame(BINARY, b"b"), frame(LAST_PART, b"c")]
    got = list(FrameSplitter(100, masked=True).split(b"".join(stream)))
    # A message inside another one is an error that the parser has to see.
    assert got[:3] == [(0, each) for each in stream[:3]]
    after = FrameSplitter(100, masked=True)
    stream = [frame(CONTINUED_TEXT, b"a"), frame(PING, b""), frame(LAST_PART, b"c"), frame(BINARY, b"d")]
    assert list(after.split(b"".join(stream)))[-1] == (BINARY, stream[-1])


@pytest.mark.parametrize(
    "fault",
    [
        frame(BINARY, b"abc", masked=False),
        frame_head(BINARY, 101, masked=True),
        frame_head(TEXT, 1 << 40, masked=True),
    ],
    ids=["not masked", "too long", "far too long"],
)
def test_a_faulty_stream_reaches_the_parser_as_it_is(fault: bytes) -> None:
    splitter = FrameSplitter(100, masked=True)
    good = frame(BINARY, b"good")
    assert list(splitter.split(good + fault)) == [(BINARY, good), (0, fault)]
    # Nothing is held back, and nothing counts as a message any more.
    assert list(splitter.split(good)) == [(0, good)]
