"""A call in progress, and the interface of the policies that govern it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any, Protocol

import orjson

from jackfield.contract.tool import ENVELOPE_META, ErrorType, Failure, ToolResponse, fail
from jackfield.handler_types import model_data
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session, Turn

_log = logging.getLogger(__name__)

MAX_DEPTH = 4
"""Maximum depth of tools that call other tools."""

DUPLICATES = "duplicates"
"""The name in the policy trace for calls that are answered from their claim."""

CONFIRMATION, DECLINED = "confirmation", "declined"
"""The name in the policy trace for the user's decision, and its value for a declined call."""


class Call:
    """One call, from its arrival to its response, with everything that a policy may read or change."""

    __slots__ = (
        "_encoded", "approved_args", "args", "call_id", "cancel_reason", "check_claim", "children",
        "claimed_key", "client_call_id", "confirmation_waiver", "confirmed", "deadline", "decisions",
        "defaults_filled", "duration_ms", "ended_by", "fingerprint", "finished_at", "handler_seconds",
        "handler_task", "invocations", "key", "meta", "notes", "parent", "policies", "policy_task",
        "policy_timed_out", "preview_notes", "replayed", "requested", "retried", "returns_violations",
        "session", "started_at", "text", "tool", "total_handler_seconds", "turn", "wire",
    )  # fmt: skip

    def __init__(  # noqa: PLR0915 - one statement for each attribute
        self,
        tool: RegisteredTool,
        session: Session,
        args: dict[str, Any],
        canonical: bytes,
        call_id: str | None,
    ) -> None:
        self.started_at = perf_counter()
        """When the call arrived, by the performance counter."""
        self.finished_at = 0.0
        """When the call was answered, by the same clock."""
        self.tool = self.requested = tool
        self.session = session
        self.turn: Turn = session.turn
        self.args = args
        self.call_id = call_id
        self.client_call_id = call_id
        """The id that clients know the call by."""
        # Hashes the arguments before policies change them, so that a repeated call has the same fingerprint.
        fingerprint = tool.hashed_name.copy()
        fingerprint.update(canonical)
        self.fingerprint = fingerprint.digest()
        self.key = ""
        """The idempotency key, set by the duplicates policy; the kernel sets that of an approved call."""
        self.check_claim: Callable[[str], Awaitable[bool]] | None = None
        """Checks that the claim under `key` is still held; called before a handler that writes."""
        self.confirmed = False
        """True if the user approved the call."""
        self.approved_args: bytes | None = None
        """The arguments that the user approved, as canonical JSON."""
        self.invocations = 0
        """How many times the handler was started."""
        self.retried = False
        """True if the one allowed retry was used."""
        self.replayed = False
        """True if the response is that of another delivery of the same call."""
        self.claimed_key = ""
        """The value of `key` when the call last passed a check of the chain."""
        self.deadline = 0.0
        """When the current stage times out, by the performance counter."""
        self.policy_timed_out = False
        """True if a policy was cancelled at its deadline and has not ended yet."""
        self.policy_task: asyncio.Task[Any] | None = None
        """The task in which the policies run; None before the start and after the response."""
        self.handler_task: asyncio.Task[Any] | None = None
        """The task in which the handler runs; None while it does not run."""
        self.parent: Call | None = None
        """The call whose handler made this call."""
        self.children = 0
        """How many calls the handler has made."""
        self.cancel_reason = ""
        """Why the handler was cancelled; empty if it was not."""
        self.handler_seconds = 0.0
        """How long the last run of the handler took."""
        self.total_handler_seconds = 0.0
        """How long all runs of the handler took together."""
        self.wire: bytes | None = None
        """The sealed envelope."""
        self.duration_ms = 0.0
        """The duration in the envelope that was sealed here, in milliseconds."""
        self.text = ""
        """The envelope as text, once the call has been answered."""
        self.policies: tuple[str, ...] = ()
        """The names of the policies of the chain, in order."""
        self.ended_by = ""
        """The policy that answered the call itself."""
        self.confirmation_waiver = ""
        """Why the call may run without confirmation, if its manifest leaves that to policies."""
        self.preview_notes: tuple[str, ...] = ()
        """Lines that are added to the confirmation preview."""
        self.defaults_filled = False
        """True if defaults were filled in for missing arguments."""
        self.returns_violations = 0
        """How many violations of the tool's `returns` were found; counting stops early."""
        self.meta: dict[str, Any] = {}
        self.decisions: dict[str, str] = {}
        self.notes: list[dict[str, Any]] = []
        self._encoded: tuple[Any, bytes] = (None, b"null")

    def __copy__(self) -> Call:
        """Copy the call for inspection; the kernel refuses to run a copy, because it has no task."""
        copied = Call.__new__(Call)
        for name in Call.__slots__:
            setattr(copied, name, getattr(self, name))
        copied.policy_task = copied.handler_task = None
        return copied

    def decide(self, policy: str, decision: str) -> None:
        """Record the decision of a policy; a policy that lets the call pass need not call this."""
        self.decisions[policy] = decision

    def end(self, policy: str, decision: str) -> None:
        """Record that a policy answers the call itself, so that later policies are not reached."""
        self.decisions[policy] = decision
        self.ended_by = policy

    def waive_confirmation(self, reason: str) -> None:
        """Allow the call without confirmation, if its manifest leaves that to policies."""
        self.confirmation_waiver = reason

    def add_preview_note(self, line: str) -> None:
        """Add a line to the confirmation preview, in case the user is asked."""
        self.preview_notes = (*self.preview_notes, line)

    def policy_trace(self) -> dict[str, str]:
        """Return the decision of each policy in the order of the chain."""
        trace: dict[str, str] = {}
        reached = True
        for name in self.policies:
            trace[name] = self.decisions.get(name, "pass") if reached else "not reached"
            reached = reached and name != self.ended_by
        if self.defaults_filled:
            trace["validation"] = "defaults filled in"
        return trace

    @property
    def declined(self) -> bool:
        """True if this records that the user declined a pending call; nothing was run."""
        return self.decisions.get(CONFIRMATION) == DECLINED

    @property
    def lineage(self) -> list[str]:
        """The ids of the calling tools and of this tool, outermost first."""
        return [*(self.parent.lineage if self.parent else ()), self.tool.id]

    def encode(self, response: ToolResponse) -> ToolResponse:
        """Encode a handler's data once; data that is not JSON becomes an internal failure."""
        try:
            # A number that JSON cannot represent becomes null, as it does in a browser.
            data, failure, _, given_meta = response
            encoded = orjson.dumps(data, model_data)
            if failure or given_meta:
                # If the handler passes on another tool's response, it may contain that envelope's `meta`.
                meta = dict(given_meta)
                response = response._replace(
                    meta={name: meta[name] for name in meta if name not in ENVELOPE_META}
                )
                # These are encoded when the response is sealed, and sealing must not fail.
                orjson.dumps(response._replace(data=None, intents=()).to_wire())
        except (TypeError, ValueError, RecursionError) as error:
            _log.error("%s returned data that is not JSON: %s", self.tool.id, error)
            return fail(
                ErrorType.INTERNAL,
                "The tool returned data that cannot be encoded as JSON.",
                partial_side_effects=not self.tool.reads,
            )
        self._encoded = (data, encoded)
        return response

    @property
    def encoded_data(self) -> bytes:
        """The data that was encoded last; once a success is sealed, the data in its envelope."""
        return self._encoded[1]

    def seal(self, response: ToolResponse) -> bytes:
        """Return the envelope as it is sent, stored and replayed; it is built once and never changes."""
        if self.wire is not None:
            return self.wire
        data, failure, intents, meta = response
        # In milliseconds, with whole microseconds; float arithmetic is faster than a conversion.
        self.duration_ms = milliseconds = (perf_counter() - self.started_at) * 1e6 // 1.0 / 1e3
        duration = orjson.dumps(milliseconds)
        # The tool's part of `meta` is encoded once per tool and ends where the duration follows.
        tool_meta = self.tool.meta_bytes
        rest = b",%b}" % orjson.dumps({**self.meta, **meta})[1:] if self.meta or meta else b"}}"
        if failure is not None:
            error = orjson.dumps(failure.to_wire())
            wire = b"".join((b'{"ok":false,"error":', error, tool_meta, duration, rest))
        else:
            encoded, encoded_data = self._encoded
            if encoded is not data:
                encoded_data = orjson.dumps(data, model_data)
                self._encoded = (data, encoded_data)
            applied = orjson.dumps([intent.to_wire() for intent in intents]) if intents else b"[]"
            wire = b"".join(
                (b'{"ok":true,"data":', encoded_data, b',"intents":', applied, tool_meta, duration, rest)
            )
        self.wire = wire
        return wire


Proceed = Callable[[Call], Awaitable[ToolResponse]]


class Policy(Protocol):
    """Middleware for calls: answers a call, changes it, or wraps the rest of the chain."""

    def applies_to(self, tool: RegisteredTool, session: Session) -> bool:
        """Return whether this policy can affect calls to this tool in this session."""

    async def apply(self, call: Call, proceed: Proceed) -> ToolResponse:
        """Decide on a call; `await proceed(call)` runs the rest of the chain."""


class SyncPolicy:
    """A policy that does not await: it checks the call before it runs, the response after, or both.

    It can also request one retry of a failed call. Adjacent checks of a chain run in one coroutine.
    """

    def applies_to(self, tool: RegisteredTool, session: Session) -> bool:  # noqa: ARG002
        """Return whether this policy can affect calls to this tool in this session."""
        return True

    def before(self, call: Call) -> ToolResponse | None:  # noqa: ARG002
        """Return a response to stop the call, or None to let it pass."""
        return None

    def after(self, call: Call, response: ToolResponse) -> ToolResponse:  # noqa: ARG002
        """Return the response of the handler or a later policy, changed or not."""
        return response

    def retry_after(self, call: Call, failure: Failure) -> float | None:  # noqa: ARG002
        """Return the seconds after which to retry a failed call, or None to accept the failure."""
        return None


def policy_failed(*, writes: bool) -> ToolResponse:
    """Return the response to a call in which a policy failed; how far the call got is unknown."""
    return fail(ErrorType.INTERNAL, "A host policy failed during this call.", partial_side_effects=writes)
