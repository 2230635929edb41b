"""Scores claim checking on transcripts: the messages it marks, and the reports of a write it recognises."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from jackfield.contract.claim_phrases import parse_phrase
from jackfield.outcomes import CallState
from jackfield.protocol.messages import UnbackedClaim
from jackfield_sessions.called_tools import CalledTools
from jackfield_sessions.checkpoint import CALL_LIMIT
from jackfield_sessions.claim_check import SpokenFor, unbacked_claims
from jackfield_sessions.claim_matcher import ClaimMatcher, summary_phrase

from bench.claims.transcripts import Conversation, phrases


@dataclass
class ClaimScore:
    """What the check found in a collection."""

    messages: int = 0
    marked: list[tuple[str, UnbackedClaim]] = field(default_factory=list)
    """The first unbacked claim of each marked message, with the name of its conversation."""
    reports: int = 0
    """How many messages follow a successful write."""
    recognised: int = 0
    """In how many of these a claim was found, so that they would be marked without the write."""
    seconds: list[float] = field(default_factory=list)

    def row(self) -> list[float]:
        """Return the figures of the table."""
        recognised = 100 * self.recognised / self.reports if self.reports else 0.0
        per_message = 1e6 * statistics.mean(self.seconds) if self.seconds else 0.0
        return [self.messages, len(self.marked), self.reports, recognised, per_message]


def score(conversations: Iterable[Conversation], says: str | None) -> ClaimScore:
    """Check every message; `says` names the phrases of the tools, None takes those of their descriptions."""
    found = ClaimScore()
    known: dict[tuple[str, ...], SpokenFor] = {}
    for conversation in conversations:
        writers = conversation.writers
        spoken = known.setdefault(tuple(writers), _spoken(writers, says))
        _score_one(conversation, spoken, found)
    return found


def _spoken(writers: Mapping[str, str], says: str | None) -> SpokenFor:
    if says is not None:
        given = {tool: [parse_phrase(each) for each in phrases(says)[tool]] for tool in writers}
    else:
        derived = {tool: summary_phrase(description) for tool, description in writers.items()}
        given = {tool: [phrase] for tool, phrase in derived.items() if phrase is not None}
    return SpokenFor(ClaimMatcher(given), frozenset(writers))


def _score_one(conversation: Conversation, spoken: SpokenFor, found: ClaimScore) -> None:
    called, read = CalledTools(), list[str]()
    for message in conversation.messages:
        wrote = False
        for call in message.calls:
            called.add(call.tool, call.state, message.turn)
            done = call.state is CallState.DONE
            wrote = wrote or (done and call.tool in spoken.writers)
            if done and call.tool not in spoken.writers:
                # As much as a session keeps of a result.
                read.append(call.result[:CALL_LIMIT])
        began = time.thread_time()
        claims = unbacked_claims(message.text, spoken, called, message.turn, lambda: read)
        found.seconds.append(time.thread_time() - began)
        found.messages += 1
        if claims:
            found.marked.append((conversation.name, claims[0]))
        if wrote:
            found.reports += 1
            found.recognised += bool(spoken.matcher.find(message.text))
