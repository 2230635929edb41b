"""Properties of the events for any sequence of Live messages."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from jackfield.transport.events import (
    Audio,
    Event,
    Interrupted,
    SpeechStarted,
    SpeechStopped,
    TextDelta,
    ToolCalls,
    Transcript,
    TurnComplete,
)
from jackfield_gemini.live.calls import LiveCalls
from jackfield_gemini.live.events import LiveEvents
from jackfield_schemas.names import ToolNames

AUDIO = {"modelTurn": {"parts": [{"inlineData": {"mimeType": "audio/pcm;rate=24000", "data": "AAAA"}}]}}
CONTENTS: list[dict[str, Any]] = [
    AUDIO,
    {"outputTranscription": {"text": "word "}},
    {"inputTranscription": {"text": "said "}},
    {"inputTranscription": {"text": "said.", "finished": True}},
    {"interrupted": True},
    {"generationComplete": True},
    {"turnComplete": True},
    {**AUDIO, "turnComplete": True},
    {"turnComplete": True, "interactionStatus": "IN_PROGRESS"},
]
ids = st.sampled_from(["call-1", "call-2", None])


def call(call_id: str | None) -> dict[str, Any]:
    return {"name": "look_up", "args": {}} | ({"id": call_id} if call_id else {})


messages = st.one_of(
    st.sampled_from(CONTENTS).map(lambda content: {"serverContent": content}),
    ids.map(lambda each: {"toolCall": {"functionCalls": [call(each)]}}),
    ids.map(lambda each: {"serverContent": {"modelTurn": {"parts": [{"functionCall": call(each)}]}}}),
    st.just({"toolCallCancellation": {"ids": ["call-1"]}}),
    st.sampled_from(["ACTIVITY_START", "ACTIVITY_END"]).map(
        lambda kind: {"voiceActivity": {"voiceActivityType": kind}}
    ),
    st.just("we interrupt"),
)


@given(st.lists(messages, max_size=40))
def test_any_sequence_of_messages_gives_consistent_events(sent: list[Any]) -> None:
    reader = LiveEvents(LiveCalls(ToolNames({}), None))
    events: list[Event] = []
    for message in sent:
        events.extend(reader.mute() if message == "we interrupt" else reader.read(message))

    speech = [type(each) for each in events if isinstance(each, SpeechStarted | SpeechStopped)]
    assert speech == [SpeechStarted, SpeechStopped] * (len(speech) // 2) + [SpeechStarted] * (len(speech) % 2)

    made = Counter(each.get("id") for each in _calls(sent, "toolCall"))
    shown = Counter(each.get("id") for each in _calls(sent, "shown"))
    delivered = Counter(
        each.call_id for event in events if isinstance(event, ToolCalls) for each in event.calls
    )
    for call_id in ("call-1", "call-2", None):
        assert made[call_id] <= delivered[call_id] <= made[call_id] + shown[call_id]

    for speaker in ("user", "assistant"):
        pieces = [each for each in events if isinstance(each, Transcript) and each.speaker == speaker]
        whole = "".join(each.text for each in pieces if each.final)
        assert "".join(each.text for each in pieces if not each.final).startswith(whole)


@given(st.lists(messages, max_size=40))
def test_nothing_of_a_turn_follows_its_interruption(sent: list[Any]) -> None:
    reader = LiveEvents(LiveCalls(ToolNames({}), None))
    ours = False
    for message in sent:
        if message == "we interrupt":
            ours = ours or bool(list(reader.mute()))
            continue
        events = reader.read(message)
        content = message.get("serverContent", {})
        ends = "interrupted" in content or content.get("turnComplete")
        if ours:
            said = [
                each for each in events if isinstance(each, Audio | TextDelta | Interrupted | TurnComplete)
            ]
            assert said == []
        if ends and content.get("interactionStatus") != "IN_PROGRESS":
            ours = False


def _calls(sent: list[Any], where: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for message in sent:
        if message == "we interrupt":
            continue
        if where == "toolCall":
            found += message.get("toolCall", {}).get("functionCalls", [])
        else:
            parts = message.get("serverContent", {}).get("modelTurn", {}).get("parts", [])
            found += [part["functionCall"] for part in parts if "functionCall" in part]
    return found
