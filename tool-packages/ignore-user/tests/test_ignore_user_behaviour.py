"""The tool in a kernel session: who is banned, for how long, and what the client gets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from importlib import resources
from types import SimpleNamespace
from typing import Any, cast

import pytest
from jackfield import ErrorType, Failure, Intent, Mode, ToolResponse, end_voice_session, fail
from jackfield.contract.manifest import ToolManifest
from jackfield.governance import Call
from jackfield.invocation import HandlerContext
from jackfield.session.session import Session, State
from jackfield.store import StoreUnavailableError
from jackfield_tool_ignore_user.handler import execute

PACKAGE = resources.files("jackfield_tool_ignore_user")
MANIFEST = ToolManifest.from_wire(json.loads(PACKAGE.joinpath("schema.json").read_text("utf-8")))
FAREWELL = "That is not a tone I accept. You can come back in a minute."


class Bans:
    """The capability with a clock that a test can set."""

    def __init__(self) -> None:
        self.now = 1_777_636_800.0
        self.until: dict[tuple[str | None, str], float] = {}
        self.fails_at = ""

    async def add(self, user: str | None, seconds: float, session: str = "") -> float:
        self._fail("add")
        self.until[user, session] = max(self.now, self.until.get((user, session), 0.0)) + seconds
        return self.until[user, session]

    async def remaining(self, user: str | None, session: str = "") -> float:
        self._fail("remaining")
        return max(0.0, self.until.get((user, session), 0.0) - self.now)

    def _fail(self, step: str) -> None:
        if step == self.fails_at:
            raise StoreUnavailableError(step)


class ToolSession:
    """One session with the messages to its client and its audit records."""

    def __init__(self, mode: Mode = "voice", user: str | None = "ann") -> None:
        self.sent: list[tuple[str, Mapping[str, Any]]] = []
        self.connected = True
        self.bans = Bans()
        self.session = Session(mode, "1.0.0", session_id="s-1", user=user, publish=self._publish)
        self.notes: list[dict[str, Any]] = []

    def _publish(self, event: str, fields: Mapping[str, Any], *, once: bool = False) -> None:
        if not self.connected:
            raise ConnectionResetError("the socket is closed")
        self.sent.append((event, fields))

    def ignore(self, seconds: float = 60, farewell: str = FAREWELL, reason: str = "") -> ToolResponse:
        args = {"duration_seconds": seconds, "farewell_message": farewell, "reason": reason}
        tool = SimpleNamespace(id="ignore_user", manifest=MANIFEST)
        call = cast("Call", SimpleNamespace(tool=tool, session=self.session, notes=self.notes))
        return asyncio.run(execute(args, HandlerContext(call, {"bans": self.bans}, _no_other_tool)))


async def _no_other_tool(call: Call, tool_id: str, arguments: Mapping[str, Any]) -> ToolResponse:
    return fail(ErrorType.NOT_FOUND, tool_id)


def failure_of(response: ToolResponse) -> Failure:
    assert response.failure is not None
    return response.failure


def test_the_manifest_matches_the_tool_table() -> None:
    assert (MANIFEST.category, MANIFEST.side_effects, MANIFEST.idempotent) == ("action", "writes", False)
    assert (MANIFEST.allowed_modes, MANIFEST.latency_budget_ms) == (("text", "voice"), 1000)
    assert (MANIFEST.requires_confirmation, MANIFEST.requires) == (False, ("bans",))


def test_in_voice_the_session_ends_after_the_closing_sentence() -> None:
    response = ToolSession("voice").ignore()
    assert response.intents == (end_voice_session(after="farewell_spoken"),)
    assert response.data["say"] == FAREWELL


def test_the_closing_sentence_is_never_suppressed() -> None:
    kinds = {intent.type for intent in ToolSession("voice").ignore().intents}
    assert kinds.isdisjoint({"SUPPRESS_AUDIO", "SUPPRESS_TRANSCRIPT"})


def test_in_text_the_client_shows_the_closing_sentence() -> None:
    conversation = ToolSession("text")
    response = conversation.ignore()
    none: tuple[Intent, ...] = ()
    assert response.intents == none
    assert response.data["say"] is None
    ((event, fields),) = conversation.sent
    assert (event, fields["message"]) == ("ban", FAREWELL)


@pytest.mark.parametrize("mode", ["text", "voice"])
def test_the_client_gets_the_end_and_duration_of_the_ban(mode: Mode) -> None:
    conversation = ToolSession(mode)
    assert conversation.ignore(90).data["client_told"] is True
    assert conversation.sent == [
        ("ban", {"until": conversation.bans.now + 90, "seconds": 90, "message": FAREWELL})
    ]


def test_a_known_user_is_banned_by_name() -> None:
    conversation = ToolSession(user="ann")
    assert conversation.ignore().data["scope"] == "user"
    assert list(conversation.bans.until) == [("ann", "s-1")]


def test_an_unknown_user_is_banned_by_session() -> None:
    conversation = ToolSession(user=None)
    assert conversation.ignore().data["scope"] == "session"
    assert list(conversation.bans.until) == [(None, "s-1")]


def test_a_second_call_extends_the_ban_and_reports_the_total_time() -> None:
    conversation = ToolSession()
    conversation.ignore(60)
    conversation.bans.now += 10
    data = conversation.ignore(300).data
    assert data["seconds_remaining"] == 350
    assert conversation.sent[-1][1]["seconds"] == 350
    assert data["until"] == "2026-05-01T12:06:00+00:00"


def test_an_expired_ban_does_not_count() -> None:
    conversation = ToolSession()
    conversation.ignore(3600)
    conversation.bans.now += 3601
    assert conversation.ignore(30).data["seconds_remaining"] == 30


def test_the_remaining_time_comes_from_the_clock_of_the_store() -> None:
    conversation = ToolSession()
    conversation.bans.now = 4_000_000_000.25
    data = conversation.ignore(60).data
    assert (data["seconds_remaining"], data["until"]) == (60, "2096-10-02T07:07:40+00:00")


def test_closing_the_window_does_not_avoid_the_ban() -> None:
    conversation = ToolSession()
    conversation.connected = False
    response = conversation.ignore()
    assert response.ok
    assert response.data["client_told"] is False
    assert response.intents == (end_voice_session(after="farewell_spoken"),)
    assert conversation.bans.until == {("ann", "s-1"): conversation.bans.now + 60}
    assert [note["event"] for note in conversation.notes] == ["user_banned", "ban_notice_lost"]


def test_an_ended_session_bans_nobody() -> None:
    conversation = ToolSession()
    conversation.session.transition(State.TERMINATED)
    failure = failure_of(conversation.ignore())
    assert failure.type is ErrorType.SESSION_INACTIVE
    assert not failure.retryable
    assert not failure.partial_side_effects
    assert (conversation.bans.until, conversation.sent, conversation.notes) == ({}, [], [])


@pytest.mark.parametrize("step", ["add", "remaining"])
def test_a_ban_that_cannot_be_confirmed_is_reported_as_in_doubt(step: str) -> None:
    conversation = ToolSession()
    conversation.bans.fails_at = step
    response = conversation.ignore()
    failure = failure_of(response)
    assert failure.type is ErrorType.TRANSIENT
    assert failure.partial_side_effects
    # Not retryable: if the ban was recorded after all, a retry would double it.
    assert not failure.retryable
    assert conversation.sent == []


def test_the_reason_is_only_in_the_audit() -> None:
    conversation = ToolSession()
    response = conversation.ignore(reason=" insult after a warning ")
    (note,) = conversation.notes
    assert note == {
        "event": "user_banned",
        "scope": "user",
        "duration_seconds": 60,
        "until": conversation.bans.now + 60,
        "reason": "insult after a warning",
    }
    assert "insult" not in json.dumps([response.to_wire(), conversation.sent])


def test_a_missing_reason_is_audited_as_none() -> None:
    conversation = ToolSession()
    conversation.ignore(reason="  ")
    assert conversation.notes[0]["reason"] is None
