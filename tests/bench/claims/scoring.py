"""Scores claim checking on transcripts: the messages it marks, and the reports of a write it recognises."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from jackfield.call_states import CallState
from jackfield.contract.claim_phrases import parse_phrase
from jackfield.protocol.messages import UnbackedClaim
from jackfield_sessions.checkpoint import CALL_LIMIT, CalledTools
from jackfield_sessions.claim_check import unbacked_claims
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
    known: dict[tuple[str, ...], ClaimMatcher] = {}
    for conversation in conversations:
        writers = conversation.writers
        matcher = known.setdefault(tuple(writers), _matcher(writers, says))
        _score_one(conversation, matcher, found)
    return found


def _matcher(writers: Mapping[str, str], says: str | None) -> ClaimMatcher:
    if says is not None:
        given = {tool: [parse_phrase(each) for each in phrases(says)[tool]] for tool in writers}
    else:
        derived = {tool: summary_phrase(description) for tool, description in writers.items()}
        given = {tool: [phrase] for tool, phrase in derived.items() if phrase is not None}
    return ClaimMatcher(given)


def _score_one(conversation: Conversation, matcher: ClaimMatcher, found: ClaimScore) -> None:
    called, read, writers = CalledTools(), list[str](), frozenset(conversation.writers)
    for message in conversation.messages:
        wrote = False
        for call in message.calls:
            called.add(call.tool, call.state, message.turn)
            done = call.state is CallState.DONE
            wrote = wrote or (done and call.tool in writers)
            if done and call.tool not in writers:
                # As much as a session keeps of a result.
                read.append(call.result[:CALL_LIMIT])
        began = time.thread_time()
        stated = matcher.find(message.text)
        claims = unbacked_claims(stated, writers, called, message.turn, lambda: read)
        found.seconds.append(time.thread_time() - began)
        found.messages += 1
        if claims:
            found.marked.append((conversation.name, claims[0]))
        if wrote:
            found.reports += 1
            found.recognised += bool(stated)
