"""Parts that must hold for every order of events."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st
from jackfield_openai.chat.history import Reply
from jackfield_openai.realtime.responses import AudioLengths, ResponseScheduler
from jackfield_scripted.openai.chat import DeltaStyle, deltas

arguments = st.dictionaries(
    st.text(max_size=8), st.integers(-9, 9) | st.text(max_size=8) | st.none(), max_size=4
)
made_calls = st.lists(st.tuples(st.sampled_from(["look_up", "add_note"]), arguments), max_size=5)
styles: list[DeltaStyle] = ["pieces", "whole", "no_index", "no_id", "gemini"]


def as_sdk(value: Any) -> Any:
    """Dictionaries as objects, with what was left out left out."""
    if isinstance(value, dict):
        return SimpleNamespace(**{key: as_sdk(each) for key, each in value.items()})
    return [as_sdk(each) for each in value] if isinstance(value, list) else value


@given(made_calls, st.sampled_from(styles))
def test_streamed_calls_are_assembled(calls: list[tuple[str, dict[str, Any]]], style: DeltaStyle) -> None:
    written = [(f"call_{n}", tool, orjson.dumps(given).decode()) for n, (tool, given) in enumerate(calls)]
    reply = Reply()
    for chunk in deltas(written, style):
        reply.take(as_sdk({"choices": [{"delta": {"tool_calls": chunk}, "finish_reason": None}]}))
    assert [(each.name, each.arguments) for each in reply.calls] == [each[1:] for each in written]
    expected = [None if style == "no_id" else each[0] for each in written]
    assert [each.id for each in reply.calls] == expected


def pieces(*parts: dict[str, Any]) -> list[tuple[str, str]]:
    """The names and arguments of the calls that these pieces make up."""
    reply = Reply()
    for part in parts:
        reply.take(as_sdk({"choices": [{"delta": {"tool_calls": [part]}, "finish_reason": None}]}))
    return [(each.name, each.arguments) for each in reply.calls]


def test_complete_calls_without_index_and_id_are_distinguished() -> None:
    whole = {"function": {"name": "look_up", "arguments": '{"title":"a"}'}}
    assert pieces(whole, whole) == [("look_up", '{"title":"a"}')] * 2


def test_malformed_calls_with_the_same_index_are_distinguished_by_id() -> None:
    broken = {"index": 0, "function": {"name": "look_up", "arguments": '{"title":'}}
    assert pieces({**broken, "id": "a"}, {**broken, "id": "b"}) == [("look_up", '{"title":')] * 2


def test_a_name_repeated_with_every_fragment_is_one_call() -> None:
    begun = {"function": {"name": "look_up", "arguments": '{"title":'}}
    rest = {"function": {"name": "look_up", "arguments": '"a"}'}}
    assert pieces(begun, rest) == [("look_up", '{"title":"a"}')]


def test_arguments_sent_as_an_object_become_text() -> None:
    reply = Reply()
    call = SimpleNamespace(
        index=0, id="x", function=SimpleNamespace(name="look_up", arguments={"title": "a"})
    )
    delta = SimpleNamespace(tool_calls=[call], content="Let me see.")
    assert reply.take(SimpleNamespace(choices=[SimpleNamespace(delta=delta)])) == "Let me see."
    assert reply.calls[0].arguments == '{"title":"a"}'


def test_empty_chunks_are_ignored() -> None:
    reply = Reply()
    for chunk in (
        SimpleNamespace(),
        SimpleNamespace(choices=None),
        SimpleNamespace(choices=[SimpleNamespace()]),
    ):
        assert reply.take(chunk) == ""
    assert (reply.calls, reply.finish) == ([], None)


class Server:
    """What a Realtime server does with what it is sent, one message at a time."""

    def __init__(self) -> None:
        self.inbound: list[str] = []
        self.outbound: list[str] = []
        self.active = False
        self.speaking = False
        self.refused = 0
        self.unanswered: set[str] = set()

    def take(self) -> None:
        """Handle the client's next message."""
        if not self.inbound:
            return
        message = self.inbound.pop(0)
        if message != "create":
            self.unanswered.add(message)
            self.outbound.append(f"added {message}")
        elif self.active:
            self.refused += 1
            self.outbound.append("refused")
        else:
            self.begin("ours")

    def begin(self, whose: str) -> None:
        self.active = True
        self.unanswered.clear()
        self.outbound.append(f"created {whose}")

    def end(self) -> None:
        if self.active:
            self.active = False
            self.outbound.append("done")

    def hear(self) -> None:
        self.speaking = True
        self.outbound.append("speech")
        self.end()

    def answer_speech(self) -> None:
        self.speaking = False
        self.outbound.append("silence")
        if not self.active:
            self.begin("its own")


class Crossing:
    """A client and a server whose messages are under way for any time."""

    def __init__(self) -> None:
        self.responses = ResponseScheduler()
        self.server = Server()
        self.said = 0
        self.now = 0.0

    def step(self, name: str) -> None:
        """One thing happens, wherever it happens."""
        happen: dict[str, Callable[[], None]] = {
            "say": self.say,
            "deliver": self.server.take,
            "end": self.server.end,
            "speech": self.server.answer_speech if self.server.speaking else self.server.hear,
            "read": self.read,
        }
        happen[name]()
        self.now += 0.01
        if self.responses.try_request(self.now):
            assert "create" not in self.server.inbound
            self.server.inbound.append("create")

    def say(self) -> None:
        self.said += 1
        self.server.inbound.append(f"item{self.said}")
        self.responses.want(f"item{self.said}")

    def read(self) -> None:
        if not self.server.outbound:
            return
        kind, _, item = self.server.outbound.pop(0).partition(" ")
        follow: dict[str, Callable[[], None]] = {
            "added": lambda: self.responses.item_added(item),
            "created": lambda: self.responses.began("resp", ours=item == "ours"),
            "done": self.responses.ended,
            "refused": self.responses.refused,
            "speech": self.responses.speech_started,
            "silence": lambda: self.responses.speech_stopped(self.now),
        }
        follow[kind]()


@given(st.lists(st.sampled_from(["say", "deliver", "read", "end", "speech"]), max_size=60))
def test_every_message_is_answered_in_any_order_of_events(steps: list[str]) -> None:
    """In the end the model has answered everything, and nothing is wanted any more."""
    crossing = Crossing()
    for name in steps:
        crossing.step(name)
    if crossing.server.speaking:
        crossing.step("speech")
    for _ in range(2):
        for _ in range(160):
            for name in ("deliver", "read", "end"):
                crossing.step(name)
        # Time for what the server was expected to do and did not.
        crossing.now += 10
    assert not crossing.server.unanswered
    assert not crossing.responses.try_request(crossing.now)


@given(st.lists(st.integers(0, 9600), min_size=1, max_size=20), st.integers(-10, 10_000))
def test_a_truncation_point_lies_within_the_sent_audio(pieces: list[int], heard: int) -> None:
    spoken = AudioLengths()
    for length in pieces:
        spoken.add("item", length)
    cut = spoken.clamped("item", heard)
    assert cut is not None
    assert 0 <= cut <= sum(pieces) / 48
    assert cut == max(0, min(heard, sum(pieces) // 48))
    assert spoken.clamped("another", heard) is None


def test_after_a_failed_response_the_next_one_can_be_cancelled() -> None:
    turns = ResponseScheduler()
    turns.want("item1")
    assert turns.try_request(0.0)
    assert turns.try_cancel()
    turns.failed()
    turns.want("item2")
    assert turns.try_request(1.0)
    assert turns.try_cancel()
    assert not turns.try_cancel()


def test_a_response_of_the_server_answers_the_items_it_knew() -> None:
    """Ours crossed it and was refused; asking again would make the model say everything twice."""
    turns = ResponseScheduler()
    turns.want("item1")
    assert turns.try_request(0.0)
    turns.item_added("item1")
    turns.began("its own", ours=False)
    turns.refused()
    turns.ended()
    assert not turns.try_request(100.0)


def test_a_response_is_requested_if_the_server_starts_none_after_speech() -> None:
    turns = ResponseScheduler()
    turns.speech_started()
    turns.want("item1")
    turns.speech_stopped(10.0)
    assert not turns.try_request(10.0)
    assert turns.deadline == 15.0
    assert turns.try_request(15.0)
