"""A call on its way, and the chain of policies it goes through.

The chain of a tool is composed once per session: a policy that has nothing to say about this tool in this
session is left out of it, so a call pays only for what can concern it.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import re
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol

import orjson

from jackfield.contract.errors import ErrorType
from jackfield.contract.response import ToolResponse, fail
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session
from jackfield.session.turn import Turn

_log = logging.getLogger(__name__)

MAX_DEPTH = 4
"""How deep tools may call tools."""


_holds_null = re.compile(b"null").search


def _is_finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(_is_finite(member) for member in value.values())
    return not isinstance(value, list | tuple) or all(_is_finite(item) for item in value)


class Call:
    """One call from its arrival to its answer; everything a policy may look at or change."""

    # Most calls leave these as they are, so they are not set on each.
    confirmed = False
    parent: Call | None = None
    children = 0
    key = ""
    """The name under which it runs once, given by whoever watches over that."""
    stopped = ""
    """Why it was told to stop."""
    task: asyncio.Task[Any] | None = None
    wire: bytes | None = None
    policies: tuple[str, ...] = ()
    """What stands in its way, in order."""
    ended_by = ""
    _encoded: tuple[Any, bytes] = (None, b"null")
    vouched = ""
    """Why it may run without the user's word where that is left to policies."""
    remarks: tuple[str, ...] = ()
    """What the user is told besides, where he is asked."""
    defaults_filled = False
    """Whether arguments that were left out were given their defaults."""

    def __init__(
        self,
        tool: RegisteredTool,
        session: Session,
        args: dict[str, Any],
        canonical: bytes,
        call_id: str | None,
    ) -> None:
        self.began = time.perf_counter()
        self.tool = tool
        self.session = session
        self.turn: Turn = session.turn
        self.args = args
        self.call_id = call_id
        # Of the arguments as they were written, because a model that repeats itself repeats what it wrote.
        self.fingerprint = hashlib.sha256(tool.name_bytes + canonical).digest()
        self.meta: dict[str, Any] = {}
        self.decisions: dict[str, str] = {}
        self.notes: list[dict[str, Any]] = []

    def decide(self, policy: str, decision: str) -> None:
        """Record what a policy did; one that let the call pass need not say so."""
        self.decisions[policy] = decision

    def end(self, policy: str, decision: str) -> None:
        """Record that a policy answers the call itself, and those behind it are not asked."""
        self.decisions[policy] = decision
        self.ended_by = policy

    def vouch(self, reason: str) -> None:
        """Let it run without asking, where its manifest leaves confirmation to policies."""
        self.vouched = reason

    def remark(self, line: str) -> None:
        """Add a line to what the user is shown, should he be asked."""
        self.remarks = (*self.remarks, line)

    def trail(self) -> dict[str, str]:
        """What each policy decided, in the order in which the call met them."""
        trail: dict[str, str] = {}
        reached = True
        for name in self.policies:
            trail[name] = self.decisions.get(name, "pass") if reached else "not reached"
            reached = reached and name != self.ended_by
        if self.defaults_filled:
            trail["validation"] = "defaults filled in"
        return trail

    @property
    def lineage(self) -> list[str]:
        """The tools that led here, outermost first."""
        return [*(self.parent.lineage if self.parent else ()), self.tool.id]

    def encode(self, response: ToolResponse) -> ToolResponse:
        """Write out a handler's data, once; what is not JSON becomes a failure of the handler's own."""
        try:
            data = orjson.dumps(response.data)
            if _holds_null(data) and not _is_finite(response.data):
                # orjson writes such a number as null, which would be a lie.
                raise ValueError("a number in it is not finite")
        except (TypeError, ValueError, RecursionError) as error:
            _log.error("%s returned data that is not JSON: %s", self.tool.id, error)
            return fail(
                ErrorType.INTERNAL,
                "The tool's answer cannot be passed on.",
                partial_side_effects=not self.tool.reads,
            )
        self._encoded = (response.data, data)
        return response

    def seal(self, response: ToolResponse) -> bytes:
        """The envelope as it is sent, stored and replayed: made once, never changed."""
        if self.wire is not None:
            return self.wire
        if response.failure is not None:
            body = (b'{"ok":false,"error":', orjson.dumps(response.failure.to_wire()), b"")
        else:
            written, data = self._encoded
            if written is not response.data:
                data = orjson.dumps(response.data)
            intents = (
                orjson.dumps([intent.to_wire() for intent in response.intents]) if response.intents else b"[]"
            )
            body = (b'{"ok":true,"data":', data, b',"intents":' + intents)
        duration = b',"duration":%.3f' % ((time.perf_counter() - self.began) * 1000)
        more = {**self.meta, **response.meta} if self.meta or response.meta else None
        # The tool's part of `meta` was written out when the registry was loaded, and is still open.
        meta = (
            b',"meta":',
            self.tool.meta_bytes,
            duration,
            b"," + orjson.dumps(more)[1:] if more else b"}",
            b"}",
        )
        wire = self.wire = b"".join(body + meta)
        return wire


Proceed = Callable[[Call], Awaitable[ToolResponse]]


class Policy(Protocol):
    """One decision about calls: answer one, change one, or wrap what follows."""

    def concerns(self, tool: RegisteredTool, session: Session) -> bool:
        """Whether this policy can ever have something to say about this tool in this session."""

    async def apply(self, call: Call, proceed: Proceed) -> ToolResponse:
        """Decide about one call; `await proceed(call)` lets it go on."""


class Chain:
    """The policies that concern one tool in one session, and what they end in."""

    __slots__ = ("names", "run")

    def __init__(self, policies: Iterable[tuple[str, Policy]], last: Proceed) -> None:
        chosen = list(policies)
        self.names = tuple(name for name, _ in chosen)
        run = last
        for _, policy in reversed(chosen):
            run = _linked(policy.apply, run)
        self.run: Proceed = run


def _linked(apply: Callable[[Call, Proceed], Awaitable[ToolResponse]], proceed: Proceed) -> Proceed:
    return lambda call: apply(call, proceed)
