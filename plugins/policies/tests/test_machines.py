"""Duplicates and approvals against a model of what they promise, over sequences that hypothesis draws."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import jackfield_policies
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule
from jackfield import ToolResponse, ok
from jackfield.session.session import Session
from jackfield.store import MemoryStore
from jackfield_testkit.workbench import Workbench, make_tool

PARAMETERS = {"type": "object", "additionalProperties": False, "properties": {"n": {"type": "integer"}}}
SESSIONS = [("s1", "ada"), ("s2", "ada"), ("s3", "grace")]
EXPIRY = 300


@dataclass(eq=False)
class Question:
    """What a user was asked, and what became of it."""

    token: str
    owner: tuple[str, str]
    expires: float
    first: bytes
    outcome: bytes | None = None


class Hosts(RuleBasedStateMachine):
    """Calls, approvals, restarts and time, in any order; what happened is remembered beside."""

    questions = Bundle("questions")

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000_000.0
        self.store = MemoryStore(clock=lambda: self.now)
        self.effects: list[tuple[str, str]] = []
        self.answers: dict[tuple[str, str], tuple[int, bytes]] = {}
        self.asked: dict[tuple[tuple[str, str], int], Question] = {}
        self.restart()

    @rule()
    def restart(self) -> None:
        """A host ends and another begins on the same store."""
        fields: dict[str, Any] = {"sideEffects": "writes", "idempotent": False, "parameters": PARAMETERS}
        self.work = Workbench(
            make_tool("write", self._execute, **fields),
            make_tool("ask", self._execute, requiresConfirmation=True, **fields),
            policies=jackfield_policies.jackfield_policies(),
            settings={"loops": {"identical_calls": 10_000}},
            store=self.store,
        )

    async def _execute(self, args: dict[str, Any], ctx: Any) -> ToolResponse:
        self.effects.append((ctx.session.id, ctx._call.key))
        return ok({"n": args.get("n", 0), "at": len(self.effects)})

    def _call(self, session: tuple[str, str], tool: str, n: int, call_id: str) -> bytes:
        self.work.events.clear()
        return asyncio.run(self.work.call(self._session(session), tool, json.dumps({"n": n}), call_id)).wire

    def _session(self, session: tuple[str, str]) -> Session:
        return self.work.session(session_id=session[0], user=session[1], secret=f"secret of {session[0]}")

    @rule(
        session=st.sampled_from(SESSIONS),
        n=st.integers(0, 1),
        call_id=st.sampled_from(["call_000001", "call_000002"]),
    )
    def deliver(self, session: tuple[str, str], n: int, call_id: str) -> None:
        """A call arrives, perhaps again, perhaps with other arguments."""
        wire = self._call(session, "write", n, call_id)
        first_n, first = self.answers.setdefault((session[0], call_id), (n, wire))
        if first_n == n:
            assert wire == first
        else:
            assert json.loads(wire)["error"]["type"] == "CONFLICT"

    @rule(target=questions, session=st.sampled_from(SESSIONS), number=st.integers(0, 3))
    def ask(self, session: tuple[str, str], number: int) -> Question:
        """A call that needs its user's approval arrives, perhaps again."""
        before = len(self.effects)
        wire = self._call(session, "ask", 0, f"ask_{number:07}")
        assert len(self.effects) == before
        question = self.asked.get((session, number))
        if question is None:
            assert json.loads(wire)["error"]["type"] == "CONFIRMATION_REQUIRED"
            token = str(self.work.events[0][1]["token"])
            assert token not in wire.decode()
            question = self.asked[session, number] = Question(token, session, self.now + EXPIRY, wire)
        assert wire == self._told(question, wire)
        return question

    @rule(question=questions, by=st.sampled_from(SESSIONS), approve=st.booleans())
    def decide(self, question: Question, by: tuple[str, str], approve: bool) -> None:
        """Somebody uses a token: the first decision of its owner counts, and a yes only in time."""
        before = len(self.effects)
        answer = asyncio.run(self.work.resolve(self._session(by), question.token, approve=approve))
        if by != question.owner:
            assert answer is None
            return
        assert answer is not None
        # A late no is recorded as one, unless somebody was told before that the question has expired.
        decides = question.outcome is None and (not approve or self.now < question.expires)
        if decides:
            question.outcome = answer.wire
            state = json.loads(answer.wire)["meta"].get("state", "done")
            assert state == ("done" if approve else "declined")
        assert answer.wire == self._told(question, answer.wire)
        assert len(self.effects) == before + (decides and approve)

    def _told(self, question: Question, wire: bytes) -> bytes:
        """What is to be said about a call that needed approval; expiry is final once it was said."""
        if question.outcome is None and self.now >= question.expires:
            assert json.loads(wire)["meta"]["state"] == "expired"
            question.outcome = wire
        return question.outcome or question.first

    @rule(seconds=st.sampled_from([1, 100, EXPIRY + 1]))
    def wait(self, seconds: int) -> None:
        """Time goes by."""
        self.now += seconds

    @invariant()
    def nothing_took_effect_twice(self) -> None:
        """One effect for each call that ran, whoever delivered it and how often."""
        assert len(self.effects) == len(set(self.effects))


TestHosts = Hosts.TestCase
TestHosts.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
