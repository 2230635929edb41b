"""A call on its way, and what policies can do about it."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import orjson

from jackfield.contract.tool import ENVELOPE_META, ErrorType, Failure, ToolResponse, fail
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session, Turn

_log = logging.getLogger(__name__)

MAX_DEPTH = 4
"""How deep tools may call tools."""

DUPLICATES = "duplicates"
"""The name under which it is on record that a call was answered from its claim."""

CONFIRMATION, DECLINED = "confirmation", "declined"
"""Under which name the user's decision is on record, and what it says of a call that was not to be run."""


class Call:
    """One call from its arrival to its answer; everything a policy may look at or change."""

    __slots__ = (
        "_encoded", "approved", "args", "began", "call_id", "cancel_reason", "children", "claimed",
        "client_call_id", "confirmation_waiver", "confirmed", "deadline", "decisions", "defaults_filled",
        "ended", "ended_by", "fingerprint", "held", "invocations", "key", "meta", "notes", "overdue",
        "parent", "policies", "preview_notes", "ran_for", "replayed", "requested", "retried",
        "returns_violations", "runner", "session", "task", "text", "took", "tool", "turn", "wire",
    )  # fmt: skip

    def __init__(
        self,
        tool: RegisteredTool,
        session: Session,
        args: dict[str, Any],
        canonical: bytes,
        call_id: str | None,
    ) -> None:
        self.began = time.perf_counter()
        self.ended = 0.0
        """When it was answered, by the same clock."""
        self.tool = self.requested = tool
        self.session = session
        self.turn: Turn = session.turn
        self.args = args
        self.call_id = call_id
        self.client_call_id = call_id
        """The call that a client knows it by; an approved one runs under a name of its own."""
        # Of the arguments as they were written, because a model that repeats itself repeats what it wrote.
        self.fingerprint = hashlib.blake2b(tool.name_bytes + canonical, digest_size=32).digest()
        self.key = ""
        """The idempotency key, set by the duplicates policy; the kernel sets that of an approved call."""
        self.held: Callable[[str], Awaitable[bool]] | None = None
        """Asks whether the claim under `key` is still held; to be asked before a handler that writes."""
        self.confirmed = False
        self.approved: bytes | None = None
        """The arguments that the user approved, as canonical JSON."""
        # What the ledger, the guards and the deadlines keep: how often the handler began; whether the one
        # retry was used, a policy was cancelled and has not ended yet, and the answer is that of another
        # delivery of the same call; the key under which it was let go on; how far the performance counter may
        # come in this stage; and the task of its policies, until it is answered.
        self.invocations, self.claimed, self.deadline = 0, "", 0.0
        self.retried = self.overdue = self.replayed = False
        self.runner: asyncio.Task[Any] | None = None
        self.parent: Call | None = None
        self.children = 0
        self.task: asyncio.Task[Any] | None = None
        """The task its handler runs in, while it does."""
        self.cancel_reason = ""
        """Why it was told to stop."""
        self.took = 0.0
        """Seconds that its handler took, the last time it ran."""
        self.ran_for = 0.0
        """Seconds that its handler took, all the times it ran."""
        self.wire: bytes | None = None
        self.text = ""
        """The answer as it was sent, once it was."""
        self.policies: tuple[str, ...] = ()
        """What stands in its way, in order."""
        self.ended_by = ""
        self.confirmation_waiver = ""
        """Why it may run without the user's word where that is left to policies."""
        self.preview_notes: tuple[str, ...] = ()
        """What the user is told besides, where he is asked."""
        self.defaults_filled = False
        """Whether arguments that were left out were given their defaults."""
        self.returns_violations = 0
        """How many violations of the tool's `returns` were found in its data; counting stops early."""
        self.meta: dict[str, Any] = {}
        self.decisions: dict[str, str] = {}
        self.notes: list[dict[str, Any]] = []
        self._encoded: tuple[Any, bytes] = (None, b"null")

    def __copy__(self) -> Call:
        """A copy to look at: it is not under way, so the kernel does not run it."""
        copied = Call.__new__(Call)
        for name in Call.__slots__:
            setattr(copied, name, getattr(self, name))
        copied.runner = copied.task = None
        return copied

    def decide(self, policy: str, decision: str) -> None:
        """Record what a policy did; one that let the call pass need not say so."""
        self.decisions[policy] = decision

    def end(self, policy: str, decision: str) -> None:
        """Record that a policy answers the call itself, and those behind it are not asked."""
        self.decisions[policy] = decision
        self.ended_by = policy

    def waive_confirmation(self, reason: str) -> None:
        """Let it run without asking, where its manifest leaves confirmation to policies."""
        self.confirmation_waiver = reason

    def add_preview_note(self, line: str) -> None:
        """Add a line to what the user is shown, should he be asked."""
        self.preview_notes = (*self.preview_notes, line)

    def policy_trace(self) -> dict[str, str]:
        """What each policy decided, in the order in which the call met them."""
        policy_trace: dict[str, str] = {}
        reached = True
        for name in self.policies:
            policy_trace[name] = self.decisions.get(name, "pass") if reached else "not reached"
            reached = reached and name != self.ended_by
        if self.defaults_filled:
            policy_trace["validation"] = "defaults filled in"
        return policy_trace

    @property
    def declined(self) -> bool:
        """Whether this is the user's no to a call that waited, and nothing was to be run."""
        return self.decisions.get(CONFIRMATION) == DECLINED

    @property
    def lineage(self) -> list[str]:
        """The tools that led here, outermost first."""
        return [*(self.parent.lineage if self.parent else ()), self.tool.id]

    def encode(self, response: ToolResponse) -> ToolResponse:
        """Write out a handler's data, once; what is not JSON becomes a failure of the handler's own."""
        try:
            # A number that JSON cannot carry becomes null, as it does in a browser.
            data = orjson.dumps(response.data)
            if response.failure or response.meta:
                # The answer of another tool, passed on, may bring what its own envelope said.
                meta = dict(response.meta)
                response = response._replace(
                    meta={name: meta[name] for name in meta if name not in ENVELOPE_META}
                )
                # These are written when the answer is sealed, which must not fail any more.
                orjson.dumps(response._replace(data=None, intents=()).to_wire())
        except (TypeError, ValueError, RecursionError) as error:
            _log.error("%s returned what is not JSON: %s", self.tool.id, error)
            return fail(
                ErrorType.INTERNAL,
                "The tool's answer cannot be passed on.",
                partial_side_effects=not self.tool.reads,
            )
        self._encoded = (response.data, data)
        return response

    @property
    def encoded_data(self) -> bytes:
        """The data that `encode` wrote out last."""
        return self._encoded[1]

    def seal(self, response: ToolResponse) -> bytes:
        """The envelope as it is sent, stored and replayed: made once, never changed."""
        if self.wire is not None:
            return self.wire
        answer, failure, intents, meta = response
        microseconds = int((time.perf_counter() - self.began) * 1_000_000)
        # The tool's part of `meta` was written out when the registry was loaded, and ends before its number.
        own, duration = self.tool.meta_bytes, orjson.dumps(microseconds / 1000)
        more = b",%b}" % orjson.dumps({**self.meta, **meta})[1:] if self.meta or meta else b"}}"
        if failure is not None:
            error = orjson.dumps(failure.to_wire())
            wire = b"".join((b'{"ok":false,"error":', error, own, duration, more))
        else:
            written, data = self._encoded
            if written is not answer:
                data = orjson.dumps(answer)
            told = orjson.dumps([intent.to_wire() for intent in intents]) if intents else b"[]"
            wire = b"".join((b'{"ok":true,"data":', data, b',"intents":', told, own, duration, more))
        self.wire = wire
        return wire


Proceed = Callable[[Call], Awaitable[ToolResponse]]


class Policy(Protocol):
    """One decision about calls: answer one, change one, or wrap what follows."""

    def applies_to(self, tool: RegisteredTool, session: Session) -> bool:
        """Whether this policy can ever have something to say about this tool in this session."""

    async def apply(self, call: Call, proceed: Proceed) -> ToolResponse:
        """Decide about one call; `await proceed(call)` lets it go on."""


class SyncPolicy:
    """A policy that waits for nothing: it looks at a call before it goes on, at its answer after, or at both.

    It can also have a call that failed tried once more. Neighbours in a chain are asked one after the other,
    without a coroutine for each.
    """

    def applies_to(self, tool: RegisteredTool, session: Session) -> bool:  # noqa: ARG002
        """Whether this policy can ever have something to say about this tool in this session."""
        return True

    def before(self, call: Call) -> ToolResponse | None:  # noqa: ARG002
        """The answer to a call that goes no further, or nothing to let it go on."""
        return None

    def after(self, call: Call, response: ToolResponse) -> ToolResponse:  # noqa: ARG002
        """What becomes of the answer that came back, from the handler or from a policy behind this one."""
        return response

    def retry_after(self, call: Call, failure: Failure) -> float | None:  # noqa: ARG002
        """Seconds after which a call that failed is tried once more, or nothing to let the failure stand."""
        return None


def policy_failed(*, writes: bool) -> ToolResponse:
    """The answer to a call in which a policy broke: nobody knows how far it got."""
    return fail(
        ErrorType.INTERNAL, "The host failed while it decided about this call.", partial_side_effects=writes
    )
