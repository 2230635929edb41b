"""The parts of the client by themselves, and that they agree with the host's published protocol."""

from __future__ import annotations

import asyncio
import os
import stat
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
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
from jackfield_client import keepsakes
from jackfield_client.answers import Answers
from jackfield_client.dial import parse_address
from jackfield_client.errors import ClientError
from jackfield_client.messages import (
    ChatMessage,
    ConfirmationRequired,
    ConfirmationSettled,
    ErrorMessage,
    FormClosed,
    Message,
    TextDelta,
    ToolComplete,
    ToolErrorEvent,
)
from jackfield_client.session import LARGEST_FRAME
from jackfield_client.terminal.decisions import Decisions
from jackfield_client.terminal.lines import Lines
from jackfield_client.terminal.screen import Screen
from jackfield_client.terminal.wording import duration, one_line, plain, tool_error
from jackfield_client.unsettled import MOST, Unsettled
from jackfield_host.settings import HostSettings


def delta(offset: int, text: str) -> TextDelta:
    return TextDelta(answer=1, offset=offset, text=text)


def answered(text: str) -> ChatMessage:
    return ChatMessage(id=1, at=1.0, speaker="assistant", text=text, turn=1, answer=1, interrupted=False)


def test_the_client_does_what_the_advice_of_each_close_says() -> None:
    for each in CLOSE_REASONS:
        resumes = each.next_step not in (NextStep.DONE, NextStep.FAIL)
        assert resumes == any(word in each.advice.lower() for word in ("resume", "again")), each
    failed = {each.name for each in CLOSE_REASONS if each.next_step is NextStep.FAIL}
    assert failed == {"invalid_message", "banned", "unknown_session"}


def test_the_host_accepts_the_largest_audio_frame_of_the_client() -> None:
    assert HostSettings().message_bytes >= LARGEST_FRAME


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
def test_addresses_as_people_write_them(text: str, socket: str, origin: str) -> None:
    read = parse_address(text)
    assert (read.socket("text"), read.origin) == (socket, origin)


@pytest.mark.parametrize(
    "text", ["", "ftp://a", "http://", "http://a:99999", "http://ada:pw@a", "http://a?x=1", "http://a/#b"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"address|port"):
        parse_address(text)


@given(
    text=st.text(min_size=1, max_size=40).filter(lambda text: text.strip()),
    cuts=st.lists(st.integers(0, 40), max_size=6),
    losses=st.sets(st.integers(0, 6)),
    said=st.booleans(),
)
def test_an_answer_is_whole_whatever_is_lost_or_told_twice(
    text: str, cuts: list[int], losses: set[int], said: bool
) -> None:
    """Pieces that came while the line was down are made up for by what a connection begins with."""
    answers, shown = Answers(), ""
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})

    def take(delta: TextDelta | None) -> None:
        nonlocal shown
        if delta is not None:
            assert delta.text
            assert delta.offset == len(shown)
            shown += delta.text

    for number, (begin, end) in enumerate(pairwise(places)):
        if number in losses:
            take(answers.returned(1, text[:end]))
        else:
            take(answers.add(delta(begin, text[begin:end])))
            take(answers.add(delta(begin, text[begin:end])))
    assert shown == text
    if said:
        take(answers.finish(answered(text.strip())))
        assert shown.strip() == text.strip()
        assert answers.add(delta(0, text)) is None


@given(first=st.text(max_size=20), second=st.text(min_size=1, max_size=20), cut=st.integers(0, 20))
def test_an_answer_that_is_given_anew_replaces_the_first(first: str, second: str, cut: int) -> None:
    answers, shown = Answers(), ""
    final = answered(second.strip())
    pieces = [answers.add(delta(0, first))]
    pieces += [answers.add(delta(0, second[:cut])), answers.add(delta(cut, second[cut:]))]
    pieces += [answers.finish(final)] if second.strip() else []
    for piece in filter(None, pieces):
        shown = piece.text if piece.offset == 0 else shown + piece.text
    if second.strip():
        assert shown.strip() == second.strip()


def test_what_is_acknowledged_is_not_resent() -> None:
    unsettled = Unsettled()
    unsettled.see(asked())
    first, second = (Text(text="yes", client_id=name) for name in ("first", "second"))
    for message in (first, second, Approve(token="token")):
        unsettled.add(message)
    unsettled.sent(unsettled.add(AddContext(text="a note")))
    unsettled.see(ChatMessage(id=2, at=1.0, speaker="user", text="yes", turn=1, client_id="first"))
    unsettled.see(ConfirmationSettled(id=3, at=1.0, tool="book", call_id="call-1", approved=True))
    assert [each.message for each in unsettled.again()] == [second]
    while len(unsettled) < MOST:
        unsettled.add(Text(text="more"))
    with pytest.raises(ClientError, match="wait for the host already"):
        unsettled.add(Text(text="too much"))


@pytest.mark.parametrize(
    "told",
    [
        ChatMessage(id=2, at=1.0, speaker="user", text="book: day Monday", turn=1, client_id="first"),
        FormClosed(id=2, at=1.0, form_id="form-1", submitted=True),
        ErrorMessage(code="invalid_values", message="They do not fit.", form_id="form-1"),
    ],
    ids=["said", "closed", "refused"],
)
def test_a_form_that_was_answered_is_not_sent_again(told: Message) -> None:
    unsettled = Unsettled()
    dismissed = unsettled.add(FormDismiss(form_id="form-2"))
    unsettled.add(FormSubmit(form_id="form-1", values={}, client_id="first"))
    unsettled.see(told)
    assert unsettled.again() == [dismissed]
    unsettled.see(FormClosed(id=3, at=1.0, form_id="form-2", submitted=False))
    assert not unsettled.again()


def test_a_refused_form_is_read_with_its_faults() -> None:
    faults = [{"path": "/day", "message": "is not a date"}]
    told = {"type": "error", "code": "invalid_values", "message": "No.", "formId": "f", "faults": faults}
    assert parse_host_message(told) == ErrorMessage(
        code="invalid_values",
        message="No.",
        form_id="f",
        faults=(FormFault(path="/day", message="is not a date"),),
    )
    closed = {"type": "form_closed", "id": 3, "at": 1.0, "formId": "f", "submitted": False}
    assert parse_host_message(closed) == FormClosed(id=3, at=1.0, form_id="f", submitted=False)


def failed(
    call_id: str | None = "call-1", error: str = "INTERNAL", state: str | None = None
) -> ToolErrorEvent:
    return ToolErrorEvent(
        id=4,
        at=1.0,
        tool="book",
        call_id=call_id,
        duration_ms=1.0,
        error_type=error,
        message="It broke.",
        suggestion=None,
        recoverable=False,
        state=state,
    )


def asked(expires_at: float = 9.0) -> ConfirmationRequired:
    return ConfirmationRequired(
        id=1,
        at=1.0,
        confirmation="c",
        tool="book",
        call_id="call-1",
        preview="Book?",
        args={},
        expires_at=expires_at,
        token="token",
    )


OUTCOMES = [
    ToolComplete(id=4, at=1.0, tool="book", call_id="call-1", duration_ms=1.0, data={}),
    failed(),
    failed(error="PERMANENT", state="expired"),
    failed(state="in_doubt"),
]


@pytest.mark.parametrize(
    "told", [*OUTCOMES, ErrorMessage(code="already_decided", message="Declined before.")]
)
@pytest.mark.parametrize("decision", [Approve(token="token"), Decline(token="token")])
def test_a_decision_about_a_call_with_an_outcome_is_not_sent_again(
    told: Message, decision: ClientMessage
) -> None:
    unsettled = Unsettled()
    unsettled.see(asked())
    unsettled.add(decision)
    unsettled.see(failed(error="CONFIRMATION_REQUIRED", state="waiting"))
    unsettled.see(failed("another-call"))
    assert len(unsettled) == 1
    unsettled.see(told)
    assert len(unsettled) == 0


@pytest.mark.parametrize("told", OUTCOMES)
def test_nobody_is_asked_about_a_call_that_has_an_outcome(told: Message) -> None:
    async def main() -> None:
        session: Any = None
        decisions = Decisions(session, Screen(prompting=False), None, approve=True)
        decisions.see(asked(expires_at=2e10))
        decisions.see(told)
        assert not await decisions.next(lambda: None)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (failed(), "· book failed after 0.0 s: It broke."),
        (failed(state="of a newer host"), "· book failed after 0.0 s: It broke."),
        (failed(error="CONFIRMATION_REQUIRED", state="waiting"), "· book waits for your decision"),
        (failed(state="declined"), "· book was declined; it was not run"),
        (failed(state="in_doubt"), "· book is in doubt: it may or may not have taken effect."),
    ],
)
def test_a_call_is_said_to_have_failed_only_if_it_did(event: ToolErrorEvent, words: str) -> None:
    assert tool_error(event).startswith(words)


def test_an_older_host_says_no_state() -> None:
    wire = {"type": "tool_error", "id": 4, "at": 1.0, "tool": "book", "callId": None, "durationMs": 1.0}
    told = {"errorType": "INTERNAL", "message": "It broke.", "suggestion": None, "recoverable": False}
    without = parse_host_message({**wire, **told})
    with_state = parse_host_message({**wire, **told, "state": "in_doubt"})
    assert isinstance(without, ToolErrorEvent)
    assert isinstance(with_state, ToolErrorEvent)
    assert (without.state, with_state.state) == (None, "in_doubt")


@given(st.text())
def test_nothing_that_is_shown_steers_the_terminal(text: str) -> None:
    shown = plain(text)
    assert not any(ord(each) < 32 and each not in "\n\t" for each in shown)
    assert not any(0x7F <= ord(each) < 0xA0 for each in shown)
    assert "\n" not in one_line(text)


def test_times_as_people_say_them() -> None:
    said = [duration(seconds) for seconds in (0.04, 9.94, 42.2, 60, 61, 3600, 3725)]
    assert said == ["0.0 s", "9.9 s", "42 s", "1 min", "1 min 1 s", "1 h", "1 h 2 min"]


def test_a_kept_session_is_its_owners_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert keepsakes.kept("http://a") is None
    keepsakes.keep("http://a", keepsakes.Keepsake("s.one", "s"))
    keepsakes.keep("http://a", keepsakes.Keepsake("s.two", "s"))
    assert keepsakes.kept("http://a") == ("s.two", "s")
    assert keepsakes.kept("http://b") is None
    (file,) = keepsakes.folder().iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    file.write_text("{")
    assert keepsakes.kept("http://a") is None
    keepsakes.forget("http://a")
    assert not file.exists()


def test_lines_come_from_pipes_and_files_whole(tmp_path: Path) -> None:
    async def lines_of(fd: int) -> list[str]:
        async with Lines(fd) as lines:
            found = []
            while (line := await lines.next()) is not None:
                found.append(line)
            return found

    async def main() -> None:
        (tmp_path / "lines.txt").write_bytes("eins\r\nzw\u00f6lf\n\nende".encode())
        with (tmp_path / "lines.txt").open("rb") as file:
            assert await lines_of(file.fileno()) == ["eins", "zw\u00f6lf", "", "ende"]
        reading, writing = os.pipe()
        waiting = asyncio.create_task(lines_of(reading))
        for piece in ("a", "b\nzw\u00f6".encode()[:-1], "\u00f6".encode()[1:], b"lf\n"):
            await asyncio.sleep(0)
            os.write(writing, piece if isinstance(piece, bytes) else piece.encode())
        os.close(writing)
        assert await waiting == ["ab", "zw\u00f6lf"]
        os.close(reading)

    asyncio.run(main())
