"""Which calls back a claim: this turn's, earlier ones, other tools', and none that did not succeed."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jackfield.call_states import CallState
from jackfield.contract.claim_phrases import parse_phrase
from jackfield_sessions.checkpoint import CalledTools
from jackfield_sessions.claim_check import unbacked_claims
from jackfield_sessions.claim_matcher import ClaimMatcher

MATCHER = ClaimMatcher({"book": [parse_phrase("booked")], "write": [parse_phrase("saved file")]})

WRITERS = frozenset({"book", "write", "wire"})

NOT_DONE = [state for state in CallState if state is not CallState.DONE]


def called(*calls: tuple[str, CallState, int]) -> CalledTools:
    tools = CalledTools()
    for tool, state, turn in calls:
        tools.add(tool, state, turn)
    # What is saved and loaded is the same.
    return CalledTools.from_wire(orjson.loads(orjson.dumps(tools)))


def found(text: str, tools: CalledTools, *read: str, turn: int = 2) -> list[tuple[str, str]]:
    unbacked = unbacked_claims(MATCHER.find(text), WRITERS, tools, turn, lambda: read)
    return [(claim.tool, claim.state) for claim in unbacked]


def test_a_call_backs_a_claim_only_if_it_succeeded() -> None:
    assert found("I booked it.", called(("book", CallState.DONE, 2))) == []
    assert found("I booked it.", called()) == [("book", "no_call")]


@pytest.mark.parametrize("state", NOT_DONE)
def test_a_call_that_did_not_succeed_backs_nothing_and_says_how_far_it_got(state: CallState) -> None:
    assert found("I booked it.", called(("book", state, 2))) == [("book", state.value)]
    # Not even if an earlier one succeeded.
    again = called(("book", CallState.DONE, 1), ("book", state, 2))
    assert found("I booked it.", again) == [("book", state.value)]


@pytest.mark.parametrize("state", NOT_DONE)
def test_one_success_in_the_turn_is_enough(state: CallState) -> None:
    both = called(("book", CallState.DONE, 2), ("book", state, 2))
    assert found("I booked one of them.", both) == []


def test_an_earlier_success_may_be_repeated_but_not_as_new() -> None:
    before = called(("book", CallState.DONE, 1))
    assert found("As I said, I booked it.", before) == []
    assert found("I have just booked it.", before) == [("book", "no_call")]


def test_a_write_that_is_not_mentioned_in_its_own_words_may_be_what_was_meant() -> None:
    wired = called(("wire", CallState.DONE, 2))
    assert found("I booked the transfer.", wired) == []
    saved = called(("write", CallState.DONE, 2))
    assert found("I saved the file and booked the room.", saved) == [("book", "no_call")]
    # An earlier write does not back a claim in other words.
    assert found("I booked it.", called(("wire", CallState.DONE, 1))) == [("book", "no_call")]


def test_a_sentence_that_names_nobody_may_report_what_was_read() -> None:
    assert found("The room is booked.", called()) == [("book", "no_call")]
    assert found("The room is booked.", called(), '{"busy": true}') == []
    assert found("The room is now booked.", called(), '{"busy": true}') == [("book", "no_call")]
    assert found("The room has been booked.", called(), '{"busy": true}') == [("book", "no_call")]
    assert found("The room has been booked.", called(), '{"state": "booked"}') == []
    assert found("I booked the room.", called(), '{"state": "booked"}') == [("book", "no_call")]


CALLS = st.lists(
    st.tuples(
        st.sampled_from(["book", "write", "wire", "look"]),
        st.sampled_from(CallState),
        st.sampled_from([1, 2]),
    )
).map(lambda calls: sorted(calls, key=lambda call: call[2]))
TEXTS = st.lists(
    st.sampled_from(["I booked it.", "I just booked it.", "I saved the file.", "It is booked.", "Hello."])
).map(" ".join)


@given(TEXTS, CALLS, st.sampled_from(["book", "write", "wire", "look"]))
def test_a_further_success_never_makes_a_claim_unbacked(
    text: str, calls: list[tuple[str, CallState, int]], tool: str
) -> None:
    before = found(text, called(*calls))
    after = found(text, called(*calls, (tool, CallState.DONE, 2)))
    assert set(after) <= set(before)
    assert tool not in {each for each, _ in after}
