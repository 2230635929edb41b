"""The tool in a kernel session: the request to the client, and the handover to the voice session."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from importlib import resources
from types import SimpleNamespace
from typing import Any, cast

import pytest
from jackfield import ErrorType, Failure, Intent, Mode, ToolResponse, fail, set_pending_message
from jackfield.contract.manifest import ToolManifest
from jackfield.governance import Call
from jackfield.invocation import HandlerContext
from jackfield.session.session import Session, State
from jackfield_tool_start_voice_session.handler import execute

PACKAGE = resources.files("jackfield_tool_start_voice_session")
MANIFEST = ToolManifest.from_wire(json.loads(PACKAGE.joinpath("schema.json").read_text("utf-8")))


class ToolSession:
    """One session with the messages to its client and its audit records."""

    def __init__(self, mode: Mode = "text") -> None:
        self.sent: list[tuple[str, Mapping[str, Any]]] = []
        self.connected = True
        self.session = Session(mode, "1.0.0", session_id="s-1", user="ann", publish=self._publish)
        self.notes: list[dict[str, Any]] = []

    def _publish(self, event: str, fields: Mapping[str, Any], *, once: bool = False) -> None:
        if not self.connected:
            raise ConnectionResetError("the socket is closed")
        self.sent.append((event, fields))

    def start(self, pending_request: str = "") -> ToolResponse:
        args = {"pending_request": pending_request}
        tool = SimpleNamespace(id="start_voice_session", manifest=MANIFEST)
        call = cast("Call", SimpleNamespace(tool=tool, session=self.session, notes=self.notes))
        return asyncio.run(execute(args, HandlerContext(call, {}, _no_other_tool)))


async def _no_other_tool(call: Call, tool_id: str, arguments: Mapping[str, Any]) -> ToolResponse:
    return fail(ErrorType.NOT_FOUND, tool_id)


def failure_of(response: ToolResponse) -> Failure:
    assert response.failure is not None
    return response.failure


def test_the_manifest_matches_the_tool_table() -> None:
    assert (MANIFEST.category, MANIFEST.side_effects, MANIFEST.idempotent) == ("utility", "writes", False)
    assert (MANIFEST.allowed_modes, MANIFEST.latency_budget_ms) == (("text",), 500)
    assert MANIFEST.requires_confirmation is False


def test_a_request_is_sent_to_the_client_and_the_next_session() -> None:
    conversation = ToolSession()
    response = conversation.start("  tell a joke ")
    assert conversation.sent == [
        ("voice_session_start", {"fromSession": "s-1", "pendingRequest": "tell a joke"})
    ]
    assert response.intents == (set_pending_message("tell a joke"),)
    assert response.data == {"status": "requested", "pending_request": "tell a joke"}


@pytest.mark.parametrize("blank", ["", "   ", "\n\t"])
def test_without_a_request_nothing_is_pending(blank: str) -> None:
    conversation = ToolSession()
    response = conversation.start(blank)
    none: tuple[Intent, ...] = ()
    assert conversation.sent == [("voice_session_start", {"fromSession": "s-1", "pendingRequest": None})]
    assert response.intents == none
    assert response.data == {"status": "requested", "pending_request": None}


def test_in_a_voice_session_nothing_is_sent() -> None:
    conversation = ToolSession("voice")
    failure = failure_of(conversation.start("tell a joke"))
    assert failure.type is ErrorType.SESSION_ACTIVE
    assert not failure.retryable
    assert (conversation.sent, conversation.notes) == ([], [])


@pytest.mark.parametrize("mode", ["text", "voice"])
def test_an_ended_session_starts_nothing(mode: Mode) -> None:
    conversation = ToolSession(mode)
    conversation.session.transition(State.TERMINATED)
    assert failure_of(conversation.start()).type is ErrorType.SESSION_INACTIVE
    assert conversation.sent == []


def test_a_disconnected_client_is_a_retryable_failure() -> None:
    conversation = ToolSession()
    conversation.connected = False
    failure = failure_of(conversation.start("tell a joke"))
    assert failure.type is ErrorType.TRANSIENT
    assert failure.retryable
    assert not failure.partial_side_effects
    assert conversation.notes == []


def test_the_audit_shows_whether_a_request_was_passed_but_not_its_text() -> None:
    conversation = ToolSession()
    conversation.start("tell a joke about my boss")
    conversation.start()
    assert conversation.notes == [
        {"event": "voice_session_requested", "has_pending_request": True},
        {"event": "voice_session_requested", "has_pending_request": False},
    ]
