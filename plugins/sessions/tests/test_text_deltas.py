"""The pieces of an answer on their way to the clients."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jackfield.protocol import messages
from jackfield.protocol.codec import encode
from jackfield_sessions.model_loop import encode_text_delta


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(answer=st.integers(1), offset=st.integers(0), text=st.text() | st.just("half \ud83d of a pair"))
def test_a_text_delta_is_encoded_like_every_other_message(answer: int, offset: int, text: str) -> None:
    delta = messages.TextDelta(answer=answer, offset=offset, text=text)
    frame = encode_text_delta(answer=answer, offset=offset, text=text)
    assert json.loads(frame) == json.loads(encode(delta))
    frame.encode()
