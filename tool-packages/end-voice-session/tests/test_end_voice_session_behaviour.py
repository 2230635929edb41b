"""The tool in a kernel session: when the session ends, what is spoken, and what is sent to the chat."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from importlib import resources
from types import SimpleNamespace
from typing import Any, cast

import pytest
from jackfield import ErrorType, Failure, Mode, ToolResponse, end_voice_session, fail
from jackfield.contract.manifest import ToolManifest
from jackfield.governance import Call
from jackfield.invocation import HandlerContext
from jackfield.session.session import Session, State
from jackfield_tool_end_voice_session.handler import execute

PACKAGE = resources.files("jackfield_tool_end_voice_session")
MANIFEST = ToolManifest.from_wire(json.loads(PACKAGE.joinpath("schema.json").read_text("utf-8")))


class ToolSession:
    """One session with the messages to its client and its audit records."""

    def __init__(self, mode: Mode = "voice") -> None:
        self.sent: list[tuple[str, Mapping[str, Any]]] = []
        self.connected = True
        self.session = Session(mode, "1.0.0", session_id="s-1", user="ann", publish=self._publish)
        self.notes: list[dict[str, Any]] = []

    def _publish(self, event: str, fields: Mapping[str, Any], *, once: bool = False) -> None:
        if not self.connected:
            raise ConnectionResetError("the socket is closed")
        self.sent.append((event, fields))

    def end(self, reason: str = "user_request", closing: str = "", text: str = "") -> ToolResponse:
        args = {"reason": reason, "closing_message": closing, "text_message": text}
        tool = SimpleNamespace(id="end_voice_session", manifest=MANIFEST)
        call = cast("Call", SimpleNamespace(tool=tool, session=self.session, notes=self.notes))
        return asyncio.run(execute(args, HandlerContext(call, {}, _no_other_tool)))


async def _no_other_tool(call: Call, tool_id: str, arguments: Mapping[str, Any]) -> ToolResponse:
    return fail(ErrorType.NOT_FOUND, tool_id)


def failure_of(response: ToolResponse) -> Failure:
    assert response.failure is not None
    return response.failure


def test_the_manifest_matches_the_tool_table() -> None:
    assert (MANIFEST.category, MANIFEST.side_effects) == ("utility", "none")
    assert (MANIFEST.allowed_modes, MANIFEST.latency_budget_ms) == (("voice",), 500)
    assert MANIFEST.requires_confirmation is False


@pytest.mark.parametrize("blank", ["", "  ", "\n"])
def test_without_a_closing_message_the_session_ends_after_the_turn(blank: str) -> None:
    response = ToolSession().end(closing=blank)
    assert response.intents == (end_voice_session(after="current_turn"),)
    assert response.data["say"] is None


def test_a_closing_message_is_spoken_before_the_end() -> None:
    response = ToolSession().end(closing=" Goodbye! ")
    assert response.intents == (end_voice_session(after="farewell_spoken"),)
    assert response.data["ends_after"] == "farewell_spoken"
    assert response.data["say"] == "Goodbye!"


def test_a_text_is_sent_to_the_chat_and_not_spoken() -> None:
    conversation = ToolSession()
    response = conversation.end(text="Booked for Friday.")
    assert conversation.sent == [("chat_message", {"text": "Booked for Friday."})]
    assert (response.data["text_sent"], response.data["say"]) == (True, None)
    assert response.intents == (end_voice_session(after="current_turn"),)


@pytest.mark.parametrize("blank", ["", "  "])
def test_nothing_is_sent_to_the_chat_without_a_text(blank: str) -> None:
    conversation = ToolSession()
    assert conversation.end(text=blank).data["text_sent"] is False
    assert conversation.sent == []


def test_a_disconnected_chat_does_not_keep_the_session_open() -> None:
    conversation = ToolSession()
    conversation.connected = False
    response = conversation.end(text="Booked for Friday.", closing="Goodbye!")
    assert response.data["text_sent"] is False
    assert response.intents == (end_voice_session(after="farewell_spoken"),)


@pytest.mark.parametrize("reason", ["user_request", "task_complete", "inactivity", "other"])
def test_the_reason_is_audited(reason: str) -> None:
    conversation = ToolSession()
    assert conversation.end(reason).data["reason"] == reason
    assert conversation.notes == [
        {
            "event": "voice_session_end_requested",
            "reason": reason,
            "after": "current_turn",
            "text_sent": False,
        }
    ]


def test_an_ended_session_is_not_ended_again() -> None:
    conversation = ToolSession()
    conversation.session.transition(State.TERMINATED)
    failure = failure_of(conversation.end(text="Booked for Friday."))
    assert failure.type is ErrorType.SESSION_INACTIVE
    assert not failure.retryable
    assert (conversation.sent, conversation.notes) == ([], [])


def test_a_text_session_has_no_voice_to_end() -> None:
    conversation = ToolSession("text")
    assert failure_of(conversation.end(text="Booked for Friday.")).type is ErrorType.SESSION_INACTIVE
    assert conversation.sent == []
