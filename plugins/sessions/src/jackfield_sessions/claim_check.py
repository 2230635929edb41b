"""Compares what the assistant says it did with the calls that ran.

A claim is backed if a tool that it may refer to was called successfully: in this turn, or in an earlier one
if the sentence may refer to that. A call that waits for approval, failed, is in doubt or was refused backs no
claim. The model is told about unbacked claims once per turn, so that it can correct itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal, NamedTuple
from weakref import WeakKeyDictionary

from jackfield.call_states import CallState
from jackfield.contract.claim_phrases import ClaimPhrase, parse_phrase
from jackfield.protocol.messages import UnbackedClaim
from jackfield.registry.registry import RegisteredTool, ToolCatalog
from jackfield.runtime import Runtime
from jackfield.session.session import Session

from jackfield_sessions.checkpoint import CalledTools, Checkpoint
from jackfield_sessions.claim_matcher import ActionClaim, ClaimMatcher, summary_phrase

ClaimChecking = Literal["correct", "report", "off"]
"""What to do about unbacked claims: mark them and have the model correct them, only mark them, or nothing."""

NO_CALL = "no_call"
"""The state of a claim whose tools were not called."""

_STATES = {
    NO_CALL: "was not called",
    CallState.WAITING: "is waiting for the user's approval and has not run",
    CallState.RUNNING: "is still running",
    CallState.FAILED: "failed",
    CallState.DECLINED: "was declined by the user and has not run",
    CallState.EXPIRED: "was not approved in time and has not run",
    CallState.NEVER_RUN: "has not run",
    CallState.IN_DOUBT: "may or may not have taken effect",
    CallState.UNKNOWN: "has an unknown outcome",
}


class ClaimCheck:
    """Checks the answers of one session."""

    def __init__(
        self, runtime: Runtime, session: Session, checkpoint: Checkpoint, checking: ClaimChecking
    ) -> None:
        self._runtime = runtime
        self._session = session
        self._checkpoint = checkpoint
        self._checking = checking
        self._spoken: SpokenFor | None = None

    def find(self, answer: str) -> Sequence[UnbackedClaim]:
        """Return the unbacked claims in an answer."""
        session, checkpoint = self._session, self._checkpoint
        # Clients do not get an answer that an intent suppresses.
        if not answer or self._checking == "off" or session.flags.get("suppress_transcript"):
            return ()
        registry, toolset = self._runtime.registry, session.toolset
        catalog = registry if toolset is None else registry.catalog(toolset)
        spoken = self._spoken
        # A catalog's tools change when some are suspended or reloaded.
        if spoken is None or spoken.tools is not catalog.tools:
            self._spoken = spoken = spoken_for(catalog)
        claims = spoken.matcher.find(answer)
        if not claims:
            return ()
        results = partial(checkpoint.history.results, without=spoken.writers)
        return unbacked_claims(claims, spoken.writers, checkpoint.called, session.turn.number, results)

    def report(self, claims: Sequence[UnbackedClaim]) -> None:
        """Notify the observers of unbacked claims."""
        for claim in claims:
            self._runtime.orchestrator.observers.claim_unbacked(self._session, claim)

    def correction(self, claims: Sequence[UnbackedClaim]) -> str:
        """Return the correction for the model; empty if it had one in this turn, or must not get one."""
        turn = self._session.turn.number
        if self._checking != "correct" or self._checkpoint.corrected_turn == turn:
            return ""
        if "end" in self._session.flags:
            return ""  # The session ends with this answer.
        self._checkpoint.corrected_turn = turn
        said = " ".join(
            f"You said {claim.text!r}, but {claim.tool} {_STATES[claim.state]}." for claim in claims
        )
        return (
            f"A check of your last answer against the calls that ran: {said} Correct this in one or two "
            "sentences: tell the user what has and has not been done. If the user asked for it and the call "
            "was never made, you may make it now; do not repeat a call that failed or is waiting."
        )


class SpokenFor(NamedTuple):
    """A catalog's tools, prepared for the check."""

    tools: Mapping[str, RegisteredTool]
    matcher: ClaimMatcher
    writers: frozenset[str]


_known: WeakKeyDictionary[ToolCatalog, SpokenFor] = WeakKeyDictionary()


def spoken_for(catalog: ToolCatalog) -> SpokenFor:
    """Return a catalog's tools, prepared for the check; sessions share the result."""
    known = _known.get(catalog)
    if known is None or known.tools is not catalog.tools:
        known = _known[catalog] = _read(catalog.tools)
    return known


def _read(tools: Mapping[str, RegisteredTool]) -> SpokenFor:
    phrases: dict[str, tuple[ClaimPhrase, ...]] = {}
    for tool in tools.values():
        if tool.manifest.says:
            phrases[tool.id] = tuple(map(parse_phrase, tool.manifest.says))
        elif not tool.reads and (phrase := summary_phrase(tool.frozen.summary)):
            phrases[tool.id] = (phrase,)
    writers = frozenset(tool.id for tool in tools.values() if not tool.reads)
    return SpokenFor(tools, ClaimMatcher(phrases), writers)


def unbacked_claims(
    claims: Sequence[ActionClaim],
    writers: frozenset[str],
    called: CalledTools,
    turn: int,
    read: Callable[[], Sequence[str]],
) -> tuple[UnbackedClaim, ...]:
    """Return the claims of a message that no call backs; `read` returns what the model has read so far."""
    states = called.in_turn(turn)
    done = {tool_id for tool_id, state in states.items() if state is CallState.DONE}
    if (done & writers).difference(*(claim.tools for claim in claims)):
        # A write that no claim mentions in its own words: one of the claims may mean it.
        return ()
    unbacked = []
    for claim in claims:
        if done.intersection(claim.tools) or (claim.passive and _is_report(claim, read())):
            continue
        tried = next((tool_id for tool_id in claim.tools if tool_id in states), None)
        if tried is None and not claim.recent and set(called.succeeded).intersection(claim.tools):
            continue
        state = states[tried].value if tried else NO_CALL
        unbacked.append(
            UnbackedClaim(tool=tried or claim.tools[0], says=claim.phrase, text=claim.sentence, state=state)
        )
    return tuple(unbacked)


def _is_report(claim: ActionClaim, results: Sequence[str]) -> bool:
    """Return whether a sentence that does not say who acted may report what the model has read.

    `The room is booked` may if anything was read; `has been cancelled` may if a result contains that verb.
    """
    if not claim.perfect:
        return bool(results)
    return any(claim.verb in result.lower() for result in results)
