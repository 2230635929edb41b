"""The protocol's messages: their form on the wire, and how a client parses them."""

from __future__ import annotations

import json

import pytest
from jackfield.invocation import RESERVED_EVENTS
from jackfield.protocol import PROTOCOL, messages
from jackfield.protocol.close_codes import CLOSE_REASONS
from jackfield.protocol.codec import (
    InvalidMessageError,
    decode,
    encode,
    event_fields,
    members,
    message_type,
    parse_host_message,
    to_wire,
)
from jackfield.protocol.messages import CLIENT_MESSAGES, HOST_MESSAGES, SESSION_EVENTS

SAMPLES = [
    messages.SessionInfo(
        session="s1",
        token="s1.secret",
        mode="text",
        user="ada",
        provider="local",
        registry="1.0",
        resumed=True,
        tools=(messages.OfferedTool(id="kb_search", summary="Searches."),),
        state="ready",
        last_event=4,
        partial=messages.PartialAnswer(answer=2, text="Room"),
        provider_hints=("set a key",),
    ),
    messages.Reset(reason="expired"),
    messages.CaughtUp(),
    messages.TextDelta(answer=1, offset=4, text="four"),
    messages.AudioItem(item="item_1"),
    messages.Transcript(speaker="user", text="hello", final=True, item=""),
    messages.SpeechStarted(),
    messages.SpeechStopped(),
    messages.TurnComplete(),
    messages.Interrupted(),
    messages.GoingAway(reason="the host is restarting"),
    messages.ErrorMessage(
        code="invalid_values",
        message="No.",
        form_id="f",
        faults=(messages.FormFault(path="/day", message="?"),),
    ),
    messages.ToolDecisions(tool="t", call_id="c", decisions={"bans": "pass"}),
    messages.ChatMessage(id=8, at=1.5, speaker="assistant", text="Yes.", turn=2, answer=1, interrupted=False),
    messages.ToolStart(id=9, at=2, tool="t", call_id=None, description="d", arguments="{}", budget_ms=None),
    messages.ToolProgress(id=1, at=2, tool="t", call_id="c", message="half", fraction=0.5),
    messages.ToolComplete(id=1, at=2, tool="t", call_id="c", duration_ms=1.5, data=[{"a": 1}]),
    messages.ToolErrorEvent(
        id=1,
        at=2,
        tool="t",
        call_id="c",
        duration_ms=1,
        error_type="TRANSIENT",
        message="m",
        suggestion=None,
        recoverable=True,
        state="in_doubt",
    ),
    messages.ConfirmationRequired(
        id=1,
        at=2,
        confirmation="n",
        tool="t",
        call_id="c",
        preview="Book?",
        args={"a": [1]},
        expires_at=9.5,
        token="secret",
    ),
    messages.ConfirmationSettled(id=1, at=2, tool="t", call_id="c", approved=True),
    messages.FormRequest(
        id=1, at=2, form_id="f", tool="t", values={"a": 1}, description="d", parameters={"type": "object"}
    ),
    messages.FormClosed(id=1, at=2, form_id="f", submitted=True, values={"a": 1}),
    messages.SessionStatus(id=1, at=2, state="ready", active=True, tokens_used=3, age_seconds=0.5),
    messages.Notification(id=1, at=2, code="working", text="A moment.", suggestion=""),
    messages.CustomEvent(id=1, at=2, name="ban", fields={"seconds": 60}),
]


def test_there_is_a_sample_of_every_host_message() -> None:
    assert [type(each) for each in SAMPLES] == list(HOST_MESSAGES)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: type(sample).__name__)
def test_every_host_message_survives_a_round_trip_to_the_client(sample: messages.HostMessage) -> None:
    wire = decode(encode(sample))
    assert wire["type"] == message_type(type(sample))
    assert not any("_" in name for name in wire)
    assert parse_host_message({**wire, "newMember": 1}) == sample


def test_types_names_and_codes_are_unique() -> None:
    for direction in (CLIENT_MESSAGES, HOST_MESSAGES):
        types = [message_type(kind) for kind in direction]
        assert len(set(types)) == len(types)
    assert len({each.name for each in CLOSE_REASONS}) == len(CLOSE_REASONS)
    assert len({each.code for each in CLOSE_REASONS}) == len(CLOSE_REASONS)


def test_tools_cannot_publish_under_the_name_of_a_message() -> None:
    published = (*SESSION_EVENTS, messages.ToolDecisions)
    assert {message_type(kind) for kind in published} - {"custom"} == RESERVED_EVENTS


def test_optional_members_are_left_out_and_nullable_ones_are_null() -> None:
    error = to_wire(messages.ErrorMessage(code="internal", message="No."))
    assert error == {"type": "error", "code": "internal", "message": "No."}
    start = messages.ToolStart(tool="t", call_id=None, description="", arguments="", budget_ms=None)
    assert to_wire(start)["callId"] is None
    info = to_wire(
        messages.SessionInfo(
            session="s",
            token="t",
            mode="text",
            user="u",
            provider="p",
            registry="r",
            tools=(),
            resumed=False,
            state="ready",
            last_event=0,
        )
    )
    assert (info["protocol"], info["partial"], info["providerReason"]) == (PROTOCOL, None, None)


def test_an_event_is_published_without_the_members_that_the_log_adds() -> None:
    event = messages.ConfirmationSettled(tool="t", call_id="c", approved=True)
    assert event_fields(event) == ("confirmation_settled", {"tool": "t", "callId": "c", "approved": True})
    assert set(to_wire(event)) == {"type", "tool", "callId", "approved"}


def test_values_that_json_cannot_carry_are_replaced() -> None:
    data = {"half": "\ud83d", "large": 2**70, "nan": float("nan"), 5: "key", (1,): "dropped", "set": {1}}
    wire = json.loads(encode(messages.ToolComplete(tool="t", call_id="c", duration_ms=1, data=data)))
    assert wire["data"] == {"half": "?", "large": 2**70, "nan": None, "5": "key", "set": "{1}"}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("no json", "it is not JSON"),
        ("[]", "it is not a JSON object with a `type`"),
        ('{"type": 3}', "it is not a JSON object with a `type`"),
        ('{"type": "text_delta", "answer": 1, "text": "a"}', "`offset` is missing"),
        (
            '{"type": "text_delta", "answer": true, "offset": 0, "text": ""}',
            "`answer` is not an integer",
        ),
        ('{"type": "session_status", "id": 1, "at": "noon"}', "`at` is not a number"),
        ('{"type": "custom", "id": 1, "at": 1, "name": "a", "fields": []}', "`fields` is not an object"),
        (
            '{"type": "error", "code": "c", "message": "m", "faults": [{"path": 1}]}',
            "in `faults`: `path` is not a string",
        ),
        (
            '{"type": "error", "code": "c", "message": "m", "faults": [1]}',
            "`faults` has an item that is",
        ),
        ('{"type": "error", "code": "c", "message": "m", "faults": {}}', "`faults` is not an array"),
    ],
)
def test_an_invalid_host_message_is_rejected_with_the_reason(text: str, fault: str) -> None:
    with pytest.raises(InvalidMessageError) as refused:
        parse_host_message(decode(text))
    assert fault in str(refused.value)


def test_a_message_of_an_unknown_type_is_ignored() -> None:
    assert parse_host_message({"type": "telepathy", "strength": 3}) is None


def test_members_state_whether_they_are_required() -> None:
    required = {each.wire for each in members(messages.ChatMessage) if each.required}
    assert required == {"id", "at", "type", "speaker", "text", "turn"}
    assert {each.wire for each in members(messages.Start) if each.required} == {"type"}
