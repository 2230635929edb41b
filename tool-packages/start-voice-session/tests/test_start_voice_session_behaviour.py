"""What the tool does in a session of the kernel: what the client is asked, and what is handed over."""

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


class Conversation:
    """One session, what its client was sent, and what the audit record got."""

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


def test_the_manifest_says_what_the_table_of_tools_says() -> None:
    assert (MANIFEST.category, MANIFEST.side_effects, MANIFEST.idempotent) == ("utility", "writes", False)
    assert (MANIFEST.allowed_modes, MANIFEST.latency_budget_ms) == (("text",), 500)
    assert MANIFEST.requires_confirmation is False


def test_a_request_goes_to_the_client_and_into_the_next_session() -> None:
    talk = Conversation()
    response = talk.start("  tell a joke ")
    assert talk.sent == [("voice_session_start", {"fromSession": "s-1", "pendingRequest": "tell a joke"})]
    assert response.intents == (set_pending_message("tell a joke"),)
    assert response.data == {"status": "requested", "pending_request": "tell a joke"}


@pytest.mark.parametrize("blank", ["", "   ", "\n\t"])
def test_without_a_request_nothing_is_pending(blank: str) -> None:
    talk = Conversation()
    response = talk.start(blank)
    none: tuple[Intent, ...] = ()
    assert talk.sent == [("voice_session_start", {"fromSession": "s-1", "pendingRequest": None})]
    assert response.intents == none
    assert response.data == {"status": "requested", "pending_request": None}


def test_in_a_voice_session_it_says_so_and_sends_nothing() -> None:
    talk = Conversation("voice")
    failure = failure_of(talk.start("tell a joke"))
    assert failure.type is ErrorType.SESSION_ACTIVE
    assert not failure.retryable
    assert (talk.sent, talk.notes) == ([], [])


@pytest.mark.parametrize("mode", ["text", "voice"])
def test_a_session_that_is_over_starts_nothing(mode: Mode) -> None:
    talk = Conversation(mode)
    talk.session.transition(State.TERMINATED)
    assert failure_of(talk.start()).type is ErrorType.SESSION_INACTIVE
    assert talk.sent == []


def test_a_client_that_is_gone_can_be_tried_again() -> None:
    talk = Conversation()
    talk.connected = False
    failure = failure_of(talk.start("tell a joke"))
    assert failure.type is ErrorType.TRANSIENT
    assert failure.retryable
    assert not failure.partial_side_effects
    assert talk.notes == []


def test_the_audit_says_whether_something_was_handed_over_but_not_what() -> None:
    talk = Conversation()
    talk.start("tell a joke about my boss")
    talk.start()
    assert talk.notes == [
        {"event": "voice_session_requested", "has_pending_request": True},
        {"event": "voice_session_requested", "has_pending_request": False},
    ]
