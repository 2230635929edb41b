"""Duplicates and tokens against a model of what they promise, over sequences that hypothesis draws."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import jackfield_policies
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule
from jackfield import ToolResponse, ok
from jackfield.confirmation import Confirmations
from jackfield.store import MemoryStore
from jackfield_testkit.workbench import Workbench, make_tool

PARAMETERS = {"type": "object", "additionalProperties": False, "properties": {"n": {"type": "integer"}}}
SESSIONS = [("s1", "ada"), ("s2", "ada"), ("s3", "grace")]
EXPIRY = 300


class Hosts(RuleBasedStateMachine):
    """Calls, approvals, restarts and time, in any order; what happened is remembered beside."""

    tokens = Bundle("tokens")

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000_000.0
        self.store = MemoryStore(clock=lambda: self.now)
        self.effects: list[tuple[str, str]] = []
        self.answers: dict[tuple[str, str], tuple[int, bytes]] = {}
        self.used: set[str] = set()
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
        held = self.work.session(session_id=session[0], user=session[1])
        return asyncio.run(self.work.call(held, tool, json.dumps({"n": n}), call_id)).wire

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

    @rule(target=tokens, session=st.sampled_from(SESSIONS), number=st.integers(0, 10**6))
    def ask(self, session: tuple[str, str], number: int) -> tuple[str, tuple[str, str], float]:
        """A call that needs its user's word."""
        before = len(self.effects)
        wire = self._call(session, "ask", 0, f"ask_{number:07}")
        assert json.loads(wire)["error"]["type"] == "CONFIRMATION_REQUIRED"
        assert len(self.effects) == before
        token = str(self.work.events[0][1]["token"]) if self.work.events else "replayed"
        assert token not in wire.decode()
        return token, session, self.now + EXPIRY

    @rule(held=tokens, by=st.sampled_from(SESSIONS))
    def redeem(self, held: tuple[str, tuple[str, str], float], by: tuple[str, str]) -> None:
        """Somebody uses a token: it counts for its owner, once, in time."""
        token, owner, expires = held
        session = self.work.session(session_id=by[0], user=by[1])

        async def use() -> bool:
            pending = await Confirmations(self.store).redeem(session, token)
            if pending is None:
                return False
            return (await self.work.orchestrator.run_confirmed(session, pending)).response.ok

        ran = asyncio.run(use())
        good = token != "replayed" and by == owner and token not in self.used and self.now < expires
        assert ran is good
        if ran:
            self.used.add(token)

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
