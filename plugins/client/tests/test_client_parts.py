"""Addresses, streamed answers, the outbox and saved sessions; limits and advice that match the host's."""

from __future__ import annotations

import stat
from itertools import pairwise
from pathlib import Path

import pytest
from client_events import OUTCOMES, confirmation_required, tool_error
from hypothesis import given
from hypothesis import strategies as st
from jackfield.protocol.close_codes import CLOSE_REASONS, NextStep
from jackfield.protocol.codec import parse_host_message
from jackfield.protocol.messages import (
    AddContext,
    Approve,
    ClientMessage,
    Decline,
    FormDismiss,
    FormFault,
    FormSubmit,
    Text,
)
from jackfield_client import saved_sessions
from jackfield_client.dial import parse_address
from jackfield_client.errors import ClientError
from jackfield_client.inbox import AnswerStream
from jackfield_client.messages import (
    ChatMessage,
    ConfirmationSettled,
    ErrorMessage,
    FormClosed,
    Message,
    TextDelta,
    ToolErrorEvent,
)
from jackfield_client.outbox import MAX_PENDING, Outbox
from jackfield_client.session import MAX_FRAME_BYTES
from jackfield_host.settings import HostSettings


def delta(offset: int, text: str) -> TextDelta:
    return TextDelta(answer=1, offset=offset, text=text)


def complete_answer(text: str) -> ChatMessage:
    return ChatMessage(id=1, at=1.0, speaker="assistant", text=text, turn=1, answer=1, interrupted=False)


def test_the_client_follows_the_advice_of_each_close_code() -> None:
    for each in CLOSE_REASONS:
        resumes = each.next_step not in (NextStep.DONE, NextStep.FAIL)
        assert resumes == any(word in each.advice.lower() for word in ("resume", "again")), each
    failed = {each.name for each in CLOSE_REASONS if each.next_step is NextStep.FAIL}
    assert failed == {"invalid_message", "banned", "conversations_off", "unknown_session"}


def test_the_host_accepts_the_largest_audio_frame_of_the_client() -> None:
    assert HostSettings().message_bytes >= MAX_FRAME_BYTES


@pytest.mark.parametrize(
    ("text", "socket", "origin"),
    [
        ("127.0.0.1:8765", "ws://127.0.0.1:8765/ws/text", "http://127.0.0.1:8765"),
        ("localhost", "ws://localhost/ws/text", "http://localhost"),
        ("https://agent.example/", "wss://agent.example/ws/text", "https://agent.example"),
        ("wss://agent.example:443/ws/voice", "wss://agent.example/ws/text", "https://agent.example"),
        ("https://a.example/desk", "wss://a.example/desk/ws/text", "https://a.example"),
        ("http://[::1]:80", "ws://[::1]/ws/text", "http://[::1]"),
    ],
)
def test_addresses_are_accepted_as_users_write_them(text: str, socket: str, origin: str) -> None:
    address = parse_address(text)
    assert (address.socket("text"), address.origin) == (socket, origin)


@pytest.mark.parametrize(
    "text", ["", "ftp://a", "http://", "http://a:99999", "http://ada:pw@a", "http://a?x=1", "http://a/#b"]
)
def test_an_invalid_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"address|port"):
        parse_address(text)


@given(
    text=st.text(min_size=1, max_size=40).filter(lambda text: text.strip()),
    cuts=st.lists(st.integers(0, 40), max_size=6),
    lost=st.sets(st.integers(0, 6)),
    is_complete=st.booleans(),
)
def test_an_answer_is_complete_despite_lost_and_repeated_deltas(
    text: str, cuts: list[int], lost: set[int], is_complete: bool
) -> None:
    """The partial answer at the start of a connection replaces the deltas that were lost."""
    answers, shown = AnswerStream(), ""
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})

    def show(delta: TextDelta | None) -> None:
        nonlocal shown
        if delta is not None:
            assert delta.text
            assert delta.offset == len(shown)
            shown += delta.text

    for number, (begin, end) in enumerate(pairwise(places)):
        if number in lost:
            show(answers.add_partial(1, text[:end]))
        else:
            show(answers.add(delta(begin, text[begin:end])))
            show(answers.add(delta(begin, text[begin:end])))
    assert shown == text
    if is_complete:
        show(answers.finish(complete_answer(text.strip())))
        assert shown.strip() == text.strip()
        assert answers.add(delta(0, text)) is None


@given(first=st.text(max_size=20), second=st.text(min_size=1, max_size=20), cut=st.integers(0, 20))
def test_a_repeated_answer_replaces_the_first(first: str, second: str, cut: int) -> None:
    answers, shown = AnswerStream(), ""
    final = complete_answer(second.strip())
    pieces = [answers.add(delta(0, first))]
    pieces += [answers.add(delta(0, second[:cut])), answers.add(delta(cut, second[cut:]))]
    pieces += [answers.finish(final)] if second.strip() else []
    for piece in filter(None, pieces):
        shown = piece.text if piece.offset == 0 else shown + piece.text
    if second.strip():
        assert shown.strip() == second.strip()


def test_acknowledged_messages_are_not_resent() -> None:
    outbox = Outbox()
    outbox.observe(confirmation_required())
    first, second = (Text(text="yes", client_id=name) for name in ("first", "second"))
    for message in (first, second, Approve(token="token")):
        outbox.add(message)
    outbox.mark_sent(outbox.add(AddContext(text="a note")))
    outbox.observe(ChatMessage(id=2, at=1.0, speaker="user", text="yes", turn=1, client_id="first"))
    outbox.observe(ConfirmationSettled(id=3, at=1.0, tool="book", call_id="call-1", approved=True))
    assert [each.message for each in outbox.pending()] == [second]
    while len(outbox) < MAX_PENDING:
        outbox.add(Text(text="more"))
    with pytest.raises(ClientError, match="already waiting for the host"):
        outbox.add(Text(text="one too many"))


@pytest.mark.parametrize(
    "message",
    [
        ChatMessage(id=2, at=1.0, speaker="user", text="book: day Monday", turn=1, client_id="first"),
        FormClosed(id=2, at=1.0, form_id="form-1", submitted=True),
        ErrorMessage(code="invalid_values", message="They do not fit.", form_id="form-1"),
    ],
    ids=["echoed", "closed", "refused"],
)
def test_an_acknowledged_form_is_not_resent(message: Message) -> None:
    outbox = Outbox()
    dismissed = outbox.add(FormDismiss(form_id="form-2"))
    outbox.add(FormSubmit(form_id="form-1", values={}, client_id="first"))
    outbox.observe(message)
    assert outbox.pending() == [dismissed]
    outbox.observe(FormClosed(id=3, at=1.0, form_id="form-2", submitted=False))
    assert not outbox.pending()


def test_the_faults_of_a_refused_form_are_parsed() -> None:
    faults = [{"path": "/day", "message": "is not a date"}]
    message = {"type": "error", "code": "invalid_values", "message": "No.", "formId": "f", "faults": faults}
    assert parse_host_message(message) == ErrorMessage(
        code="invalid_values",
        message="No.",
        form_id="f",
        faults=(FormFault(path="/day", message="is not a date"),),
    )
    closed = {"type": "form_closed", "id": 3, "at": 1.0, "formId": "f", "submitted": False}
    assert parse_host_message(closed) == FormClosed(id=3, at=1.0, form_id="f", submitted=False)


@pytest.mark.parametrize(
    "message", [*OUTCOMES, ErrorMessage(code="already_decided", message="Declined before.")]
)
@pytest.mark.parametrize("decision", [Approve(token="token"), Decline(token="token")])
def test_a_decision_about_a_call_with_an_outcome_is_not_resent(
    message: Message, decision: ClientMessage
) -> None:
    outbox = Outbox()
    outbox.observe(confirmation_required())
    outbox.add(decision)
    outbox.observe(tool_error(error="CONFIRMATION_REQUIRED", state="waiting"))
    outbox.observe(tool_error("another-call"))
    assert len(outbox) == 1
    outbox.observe(message)
    assert len(outbox) == 0


def test_a_tool_error_of_an_older_host_has_no_state() -> None:
    wire = {"type": "tool_error", "id": 4, "at": 1.0, "tool": "book", "callId": None, "durationMs": 1.0}
    message = {"errorType": "INTERNAL", "message": "It broke.", "suggestion": None, "recoverable": False}
    without = parse_host_message({**wire, **message})
    with_state = parse_host_message({**wire, **message, "state": "in_doubt"})
    assert isinstance(without, ToolErrorEvent)
    assert isinstance(with_state, ToolErrorEvent)
    assert (without.state, with_state.state) == (None, "in_doubt")


def test_a_saved_session_is_readable_by_its_owner_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert saved_sessions.load("http://a") is None
    saved_sessions.save("http://a", saved_sessions.SavedSession("s.one", "s"))
    saved_sessions.save("http://a", saved_sessions.SavedSession("s.two", "s"))
    assert saved_sessions.load("http://a") == ("s.two", "s")
    assert saved_sessions.load("http://b") is None
    (file,) = saved_sessions.folder().iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    file.write_text("{")
    assert saved_sessions.load("http://a") is None
    saved_sessions.delete("http://a")
    assert not file.exists()
