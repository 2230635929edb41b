"""Intents are applied completely or refused completely, for any content."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import jackfield_policies.intents
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jackfield import (
    Intent,
    Mode,
    end_voice_session,
    set_pending_message,
    suppress_audio,
    suppress_transcript,
)
from jackfield.offers import Services
from jackfield.session.intents import IntentHandler, apply_intents
from jackfield.session.session import Session, State
from jackfield.settings import SettingsError, parse_offer
from jackfield.store import MemoryStore

SERVICES = Services(MemoryStore())
OFFERS = {offer.name: offer for offer in jackfield_policies.intents.jackfield_intent_handlers()}
HANDLERS: dict[str, IntentHandler] = {name: offer.create({}, SERVICES) for name, offer in OFFERS.items()}


def session(mode: Mode = "voice") -> Session:
    return Session(mode, "1.0.0", session_id="s-1", user="ann")


def applied(to: Session, *intents: Intent) -> list[Intent]:
    """Return the intents that were applied."""
    done, refused = apply_intents(intents, to, HANDLERS)
    assert len(done) + len(refused) == len(intents)
    return list(done)


def reason(to: Session, intent: Intent) -> str:
    """Return the reason for refusing an intent, which changed nothing."""
    before = dict(to.flags)
    done, refused = apply_intents((intent,), to, HANDLERS)
    assert not done
    assert to.flags == before
    (one,) = refused
    return one.reason


# Valid intents


@pytest.mark.parametrize("mode", ["text", "voice"])
@pytest.mark.parametrize(
    ("intent", "change"),
    [
        (suppress_audio(), {"suppress_audio": True}),
        (suppress_audio(False), {"suppress_audio": False}),
        (suppress_transcript(), {"suppress_transcript": True}),
        (suppress_transcript(False), {"suppress_transcript": False}),
        (set_pending_message("tell a joke"), {"pending_message": "tell a joke"}),
        (set_pending_message("x" * 500), {"pending_message": "x" * 500}),
        (set_pending_message("😀" * 500), {"pending_message": "😀" * 500}),
        (set_pending_message(""), {"pending_message": ""}),
    ],
)
def test_an_intent_is_recorded_in_both_modes(mode: Mode, intent: Intent, change: dict[str, Any]) -> None:
    talk = session(mode)
    assert applied(talk, intent) == [intent]
    assert talk.flags == change


@pytest.mark.parametrize("after", ["current_turn", "farewell_spoken"])
def test_a_voice_session_can_be_ended(after: Any) -> None:
    talk = session()
    assert applied(talk, end_voice_session(after))
    assert talk.flags == {"end": after}
    assert talk.active


@pytest.mark.parametrize("state", [state for state in State if state is not State.TERMINATED])
def test_intents_are_accepted_until_the_session_ends(state: State) -> None:
    talk = session()
    talk.state = state
    assert applied(talk, end_voice_session(), suppress_audio(), set_pending_message("x"))
    assert set(talk.flags) == {"end", "suppress_audio", "pending_message"}


def test_the_last_value_wins() -> None:
    talk = session()
    assert len(applied(talk, suppress_audio(), suppress_audio(False))) == 2
    assert len(applied(talk, set_pending_message("one"), set_pending_message("two"))) == 2
    assert talk.flags == {"suppress_audio": False, "pending_message": "two"}


def test_a_farewell_replaces_an_earlier_end() -> None:
    talk = session()
    assert len(applied(talk, end_voice_session("current_turn"), end_voice_session("farewell_spoken"))) == 2
    assert talk.flags == {"end": "farewell_spoken"}


# Invalid intents


def test_an_earlier_end_does_not_replace_a_farewell() -> None:
    talk = session()
    applied(talk, end_voice_session("farewell_spoken"))
    assert (
        reason(talk, end_voice_session("current_turn"))
        == "the session is already ending, after farewell_spoken"
    )


@pytest.mark.parametrize("after", ["current_turn", "farewell_spoken"])
def test_the_same_end_is_refused_the_second_time(after: Any) -> None:
    talk = session()
    applied(talk, end_voice_session(after))
    assert reason(talk, end_voice_session(after)) == f"the session is already ending, after {after}"


def test_a_text_session_has_no_voice_to_end() -> None:
    assert reason(session("text"), end_voice_session()) == "a text session has no voice session to end"


@pytest.mark.parametrize(
    "intent", [end_voice_session(), suppress_audio(), suppress_transcript(), set_pending_message("x")]
)
@pytest.mark.parametrize("mode", ["text", "voice"])
def test_a_closed_session_refuses_intents(mode: Mode, intent: Intent) -> None:
    talk = session(mode)
    talk.transition(State.TERMINATED)
    assert reason(talk, intent) == "the session has ended"


@pytest.mark.parametrize(
    ("kind", "params", "why"),
    [
        ("END_VOICE_SESSION", {}, "the parameter after is missing"),
        ("END_VOICE_SESSION", {"after": "now"}, "after is 'now', not one of current_turn, farewell_spoken"),
        ("END_VOICE_SESSION", {"after": "Current_Turn"}, "not one of current_turn"),
        ("END_VOICE_SESSION", {"after": None}, "after is null, not one of"),
        ("END_VOICE_SESSION", {"after": ["current_turn"]}, "after is of type list, not one of"),
        ("END_VOICE_SESSION", {"after": "current_turn", "at": 5}, "it has no parameter 'at'"),
        ("SUPPRESS_AUDIO", {}, "the parameter value is missing"),
        ("SUPPRESS_AUDIO", {"value": 1}, "value is of type int, not true or false"),
        ("SUPPRESS_AUDIO", {"value": "true"}, "value is of type str, not true or false"),
        ("SUPPRESS_TRANSCRIPT", {"value": None}, "value is null, not true or false"),
        ("SUPPRESS_TRANSCRIPT", {"value": True, "message": "x"}, "it has no parameter 'message'"),
        ("SET_PENDING_MESSAGE", {}, "the parameter message is missing"),
        ("SET_PENDING_MESSAGE", {"message": "x" * 501}, "message has 501 characters; at most 500"),
        ("SET_PENDING_MESSAGE", {"message": b"x"}, "message is of type bytes, not text"),
        ("SET_PENDING_MESSAGE", {"message": "\ud83d"}, "message contains an unpaired surrogate"),
        ("SET_PENDING_MESSAGE", {"value": "x"}, "it has no parameter 'value'; its only parameter is message"),
        ("SET_PENDING_MESSAGE", None, "its parameters are null, not an object"),
        ("SUPPRESS_AUDIO", [("value", True)], "its parameters are of type list, not an object"),
        ("SUPPRESS_AUDIO", {1: True, (): 2}, "it has no parameter (), 1; its only parameter is value"),
        ("HANG_UP", {}, "no plugin handles it"),
    ],
)
def test_an_invalid_intent_is_refused_with_a_reason(kind: str, params: Any, why: str) -> None:
    assert why in reason(session(), Intent(kind, params))


def test_a_refusal_reason_is_always_short() -> None:
    for params in ({"after": "x" * 10_000}, {"y" * 10_000 + str(n): n for n in range(100)}):
        assert len(reason(session(), Intent("END_VOICE_SESSION", params))) < 250


def test_a_refused_intent_does_not_stop_the_others() -> None:
    talk = session("text")
    assert applied(talk, end_voice_session(), suppress_audio()) == [suppress_audio()]
    assert talk.flags == {"suppress_audio": True}


# Random intents

LEGAL = {
    "END_VOICE_SESSION": ("after", "end"),
    "SET_PENDING_MESSAGE": ("message", "pending_message"),
    "SUPPRESS_AUDIO": ("value", "suppress_audio"),
    "SUPPRESS_TRANSCRIPT": ("value", "suppress_transcript"),
}
VALUES = st.one_of(
    st.sampled_from(["current_turn", "farewell_spoken", "x" * 500, "x" * 501, True, False]),
    st.text(),
    st.text(st.characters(categories=["Cs", "L"]), min_size=1),
    st.none() | st.integers() | st.floats() | st.binary(),
    st.lists(st.booleans()),
    st.dictionaries(st.text(), st.integers()),
)
NAMES = st.sampled_from(["after", "value", "message", "type", "After", ""]) | st.text() | st.integers()
PARAMS = st.dictionaries(NAMES, VALUES, max_size=3) | VALUES
STATES = st.sampled_from(State)
MODES: st.SearchStrategy[Mode] = st.sampled_from(["text", "voice"])


class RecordingHandler:
    """A handler that records what reached `apply`."""

    def __init__(self, handler: IntentHandler) -> None:
        self._handler = handler
        self.applied: list[Any] = []

    def refusal(self, session: Session, params: Mapping[str, Any]) -> str | None:
        before = dict(session.flags)
        answer = self._handler.refusal(session, params)
        assert session.flags == before
        return answer

    def apply(self, session: Session, params: Mapping[str, Any]) -> None:
        self.applied.append(params)
        self._handler.apply(session, params)


def is_legal(kind: str, params: Any, talk: Session) -> bool:
    """Check the rules independently of the implementation."""
    name, _ = LEGAL[kind]
    if talk.state is State.TERMINATED or not isinstance(params, dict) or list(params) != [name]:
        return False
    value = params[name]
    match kind:
        case "END_VOICE_SESSION":
            order = [None, "current_turn", "farewell_spoken"]
            later = value in order[1:] and order.index(value) > order.index(talk.flags.get("end"))
            return talk.mode == "voice" and later
        case "SET_PENDING_MESSAGE":
            return isinstance(value, str) and len(value) <= 500 and _is_unicode(value)
        case _:
            return value is True or value is False


def _is_unicode(text: str) -> bool:
    try:
        return bool(text.encode()) or not text
    except UnicodeEncodeError:
        return False


@given(
    mode=MODES,
    state=STATES,
    intents=st.lists(st.tuples(st.sampled_from(sorted(LEGAL)), PARAMS), min_size=1, max_size=6),
)
def test_only_valid_intents_are_applied(mode: Mode, state: State, intents: list[tuple[str, Any]]) -> None:
    talk = session(mode)
    talk.state = state
    for kind, params in intents:
        before, legal = dict(talk.flags), is_legal(kind, params, talk)
        watched = RecordingHandler(HANDLERS[kind])

        done, refused = apply_intents((Intent(kind, params),), talk, {kind: watched})

        assert (len(done), len(refused), watched.applied) == ((1, 0, [params]) if legal else (0, 1, []))
        name, change = LEGAL[kind]
        assert talk.flags == ({**before, change: params[name]} if legal else before)
    kept = asyncio.run(_kept(talk))
    assert kept.flags == talk.flags


@given(mode=MODES, name=st.sampled_from(sorted(LEGAL)), value=VALUES)
def test_a_value_of_the_wrong_type_is_refused(mode: Mode, name: str, value: Any) -> None:
    talk = session(mode)
    params = {LEGAL[name][0]: value}
    legal = is_legal(name, params, talk)
    done, _ = apply_intents((Intent(name, params),), talk, HANDLERS)
    assert bool(done) is legal


async def _kept(talk: Session) -> Session:
    store = MemoryStore()
    await talk.save(store)
    kept = await Session.resume(talk.id, store)
    assert kept is not None
    return kept


# The plugin itself


@pytest.mark.parametrize("name", sorted(LEGAL))
def test_an_intent_has_no_settings(name: str) -> None:
    fault = rf"^\[intents.{name}\] loud: unknown setting; this table has no settings$"
    with pytest.raises(SettingsError, match=fault):
        parse_offer("intents", OFFERS[name], {"loud": True})


class _UncheckedHandler:
    """A handler without checks, which fails on request."""

    def __init__(self, fails: str) -> None:
        self._fails = fails
        self.applied: list[Mapping[str, Any]] = []

    def refusal(self, session: Session, params: Mapping[str, Any]) -> str | None:
        if self._fails == "refusal":
            raise RuntimeError("a handler of somebody else")
        return None

    def apply(self, session: Session, params: Mapping[str, Any]) -> None:
        if self._fails == "apply":
            raise RuntimeError("a handler of somebody else")
        self.applied.append(params)


@pytest.mark.parametrize(
    ("intent", "fails"),
    [
        (None, ""),
        ({"type": "SUPPRESS_AUDIO", "value": True}, ""),
        (Intent(["SUPPRESS_AUDIO"]), ""),  # type: ignore[arg-type]
        (Intent("CARELESS", {"at": object()}), ""),
        (Intent("CARELESS"), "refusal"),
        (Intent("CARELESS"), "apply"),
    ],
    ids=["nothing", "dictionary", "type", "unwritable", "refusal", "apply"],
)
def test_an_intent_without_a_handler_is_refused_and_the_others_apply(intent: Any, fails: str) -> None:
    careless = _UncheckedHandler(fails)
    talk = session()
    both = (intent, set_pending_message("tell a joke"))
    done, refused = apply_intents(both, talk, {**HANDLERS, "CARELESS": careless})
    assert done == both[1:]
    assert talk.flags == {"pending_message": "tell a joke"}
    assert len(refused) == 1
    assert not careless.applied
