"""The checks: what must not happen to a call, regardless of what happened to its hosts.

An answer is compared with the effect log by time. An effect counts as done before a question only if its line
was seen in the log before the question was sent, so an answer and an effect that cross are never a fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from faults.effect_log import Effect
from faults.record import NO_ANSWER, CallRecord, Statement


class Fault(NamedTuple):
    """A violated guarantee."""

    kind: str
    call: str
    message: str


DOUBLED = "effects doubled"
UNAPPROVED = "effects without approval"
CONTRADICTS = "answers that contradict the effect log"
LOST = "acknowledged outcomes lost"
DIFFERS = "outcomes that differ"
CARD = "confirmations that changed or are missing"
REFUSED = "questions refused"
EVENTS = "event streams with gaps or repeats"
UNTOLD = "outcomes that a resumed session did not get"
UNSETTLED = "calls without an outcome at the end"
DOUBTS = "calls in doubt not listed, or listed wrongly"

KINDS = (DOUBLED, UNAPPROVED, CONTRADICTS, LOST, DIFFERS, CARD, REFUSED, EVENTS, UNTOLD, UNSETTLED, DOUBTS)
"""Everything that has to be zero."""


def check_call(call: CallRecord, effects: Sequence[Effect]) -> list[Fault]:
    """Return every violated guarantee of one call."""
    found = [
        *_effects(call, effects),
        *_against_the_log(call, effects),
        *_against_each_other(call),
        *_cards(call),
        *_history(call, effects),
    ]
    return [Fault(kind, call.name, message) for kind, message in found]


_Broken = Iterator[tuple[str, str]]


def _effects(call: CallRecord, effects: Sequence[Effect]) -> _Broken:
    if len(effects) > 1:
        yield DOUBLED, f"{len(effects)} effects: {', '.join(each.name for each in effects)}"
    if effects and call.needs_approval and "approve" not in call.sent:
        yield UNAPPROVED, "it took effect although nobody approved it"


def _against_the_log(call: CallRecord, effects: Sequence[Effect]) -> _Broken:
    seen = min((each.before for each in effects), default=None)
    began = min((each.after for each in effects), default=None)
    names = {each.name for each in effects}
    for each in call.statements:
        if each.state == "refused":
            yield REFUSED, _say(each)
        if each.state == "done":
            if began is None:
                yield CONTRADICTS, f"{_say(each)}, and there is no effect"
            elif began > each.answered:
                yield CONTRADICTS, f"{_say(each)}, {began - each.answered:.3f} s before its effect"
            elif not isinstance(each.data, dict) or each.data.get("effect") not in names:
                yield CONTRADICTS, f"{_say(each)} with {each.data}, and the log has {names}"
        if each.denies_effects and seen is not None:
            if seen <= each.asked:
                yield CONTRADICTS, f"{_say(each)}, {each.asked - seen:.3f} s after its effect was logged"
            elif each.is_final:
                yield CONTRADICTS, f"{_say(each)}, and later it took effect"


def _against_each_other(call: CallRecord) -> _Broken:
    told = sorted((each for each in call.statements if each.state not in NO_ANSWER), key=lambda s: s.answered)
    finals = [each for each in told if each.is_final]
    if not finals:
        return
    first = finals[0]
    envelope = next((each.envelope for each in finals if each.envelope), None)
    for each in told:
        if each.is_final:
            if each.state != first.state:
                yield DIFFERS, f"{_say(first)}, but {_say(each)}"
            elif each.envelope and each.envelope != envelope:
                yield DIFFERS, f"{_say(each)} as {each.envelope}, and before as {envelope}"
            elif each.data is not None and first.data is not None and each.data != first.data:
                yield DIFFERS, f"{_say(each)} with {each.data}, and before with {first.data}"
        elif each.asked >= first.answered:
            yield LOST, f"{_say(first)}, and later {_say(each)}"


def _cards(call: CallRecord) -> _Broken:
    tokens = {each.token for each in call.statements} | {each.token for each in call.event_records}
    if len(tokens - {None}) > 1:
        yield CARD, f"{len(tokens - {None})} different tokens"
    for each in call.statements:
        if each.state == "waiting" and not each.token:
            yield CARD, f"{_say(each)} without a card"


def _history(call: CallRecord, effects: Sequence[Effect]) -> _Broken:
    """Check the events: they are sent once and stay, so outcomes in them have to agree."""
    outcomes = {each.state for each in call.statements if each.is_final}
    for each in call.event_records:
        if each.state == "done" and not effects:
            yield CONTRADICTS, "an event says done, and there is no effect"
        if each.state in ("declined", "expired", "never_run") and effects:
            yield CONTRADICTS, f"an event says {each.state}, and it took effect"
        if each.state in ("done", "failed", "declined", "expired", "never_run") and outcomes - {each.state}:
            yield DIFFERS, f"an event says {each.state}, and answers say {', '.join(sorted(outcomes))}"


def _say(statement: Statement) -> str:
    detail = f" ({statement.detail})" if statement.detail else ""
    return f"{statement.how} at host {statement.host} said {statement.state}{detail}"
