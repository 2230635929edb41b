"""Checks of JSON values, envelopes and spoken results."""

from __future__ import annotations

import datetime as dt
import enum
from typing import Any, NamedTuple

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jackfield import ErrorType, Intent, ToolResponse, end_voice_session, fail, ok, set_pending_message
from jackfield.contract.manifest import ToolManifest
from jackfield_testkit import ToolTestContext
from jackfield_testkit.json_values import json_faults, objects, same_json
from jackfield_testkit.tool.envelope import envelope_problems, speech_problems
from jackfield_testkit.tool.runner import Run

JSON = st.recursive(
    st.none() | st.booleans() | st.text() | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


class Pair(NamedTuple):
    x: int


class Colour(enum.StrEnum):
    RED = "red"


@given(JSON)
def test_json_has_no_faults_and_survives_a_round_trip(value: Any) -> None:
    assert list(json_faults(value)) == []
    assert same_json(orjson.loads(orjson.dumps(value)), value)


@pytest.mark.parametrize("value", [(1, [2]), {"a": Colour.RED}, {}, "", 0, None])
def test_python_values_that_json_represents(value: object) -> None:
    assert list(json_faults(value)) == []
    assert same_json(orjson.loads(orjson.dumps(value)), value)


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({"a": [0, float("nan")]}, "/a/1: nan is not a finite number"),
        (float("-inf"), "/: -inf is not a finite number"),
        (2**64, "/: 18446744073709551616 does not fit into 64 bits"),
        ({1: "x"}, "/: the key 1 is an int, not a str"),
        ("\ud800", "/: '\\ud800' contains an unpaired surrogate"),
        ({"\udc00": 1}, "/: the key '\\udc00' contains an unpaired surrogate"),
        ({1}, "/: {1} is a set, which is not JSON"),
        (Pair(1), "/: Pair(x=1) is a Pair, which is not JSON"),
        (b"x", "/: b'x' is a bytes, which is not JSON"),
        (dt.date(2026, 1, 2), "/: datetime.date(2026, 1, 2) is a date, which is not JSON"),
    ],
)
def test_python_values_that_json_does_not_represent(value: object, fault: str) -> None:
    assert list(json_faults(value)) == [fault]


def test_recursive_value_is_a_fault() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert list(json_faults(endless)) == ["/0/0/0: nested deeper than 64 levels"]


@pytest.mark.parametrize(
    ("one", "other"), [(1, True), (0, False), ([1], [1, 2]), ({"a": 1}, {"b": 1}), ("1", 1)]
)
def test_different_json(one: object, other: object) -> None:
    assert not same_json(one, other)
    assert not same_json({"a": [one]}, {"a": [other]})


def test_integers_and_floats_of_the_same_value_are_the_same_json() -> None:
    assert same_json({"a": (1, 2.0)}, {"a": [1.0, 2]})


def test_objects_finds_every_object() -> None:
    found = dict(objects({"a": [{"b": {}}], "c": 1}))
    assert list(found) == [(), ("a", 0), ("a", 0, "b")]


def check(response: Any, *, raised: Exception | None = None, effects: str = "none") -> list[str]:
    manifest = ToolManifest(
        tool_id="echo",
        version="1.0.0",
        description="",
        category="utility",
        side_effects=effects,  # type: ignore[arg-type]
        idempotent=True,
        requires_confirmation=False,
        allowed_modes=("text",),
        latency_budget_ms=1,
        parameters={},
    )
    run = Run(response, ToolTestContext(), reached=True, returned=response, raised=raised)
    return envelope_problems(run, manifest)


@pytest.mark.parametrize(
    "response",
    [
        ok(),
        ok({"a": (1, 2)}, end_voice_session("farewell_spoken"), set_pending_message("Later.")),
        ok(None, Intent("RING_THE_BELL", {"times": 3})),
        fail(
            ErrorType.CONFLICT, "Taken.", retryable=True, suggestion="Try four o'clock.", details={"at": [15]}
        ),
    ],
)
def test_valid_envelopes(response: ToolResponse) -> None:
    assert check(response) == []


@pytest.mark.parametrize(
    ("response", "message"),
    [
        (None, "the handler returned None"),
        (ok(1, "END_VOICE_SESSION"), "intent 0: it is str"),  # type: ignore[arg-type]
        (ok(1, Intent("endSession")), "not in UPPER_CASE"),
        (ok(1, Intent("RING", [3])), "parameters are list"),  # type: ignore[arg-type]
        (ok(1, Intent("RING", {"type": 3})), "named type"),
        (ok(1, Intent("RING", {"at": {1}})), "/at: {1} is a set"),
        (ok(1, Intent("SUPPRESS_AUDIO", {"value": "yes"})), "value is 'yes', not bool"),
        (ok(1, Intent("SET_PENDING_MESSAGE")), "missing a required argument: 'message'"),
        (fail(ErrorType.INTERNAL, "Oh."), "a handler must not return INTERNAL"),
        (fail(ErrorType.VALIDATION, "Oh."), "a handler must not return VALIDATION"),
        (fail(ErrorType.AUTH, ""), "has no message"),
        (fail(ErrorType.AUTH, "No.", retryable=1), "retryable is 1"),  # type: ignore[arg-type]
        (fail(ErrorType.AUTH, "No.", suggestion=""), "not a sentence"),
        (fail(ErrorType.AUTH, "No.", details={"a": b""}), "details /a: b''"),
        (fail(ErrorType.AUTH, "No.", partial_side_effects=True), "sideEffects is 'none'"),
        (fail(ErrorType.AUTH, "No.")._replace(data=1), "has data or intents"),
        (ok(1)._replace(meta={"took": {1}}), "cannot be written as JSON"),
    ],
)
def test_invalid_envelopes(response: Any, message: str) -> None:
    (problem,) = check(response)
    assert message in problem


def test_tool_that_writes_may_report_partial_side_effects() -> None:
    assert check(fail(ErrorType.TRANSIENT, "Half.", partial_side_effects=True), effects="writes") == []


@pytest.mark.parametrize(
    "text",
    [
        "Three are left, at a < b and c > d.",
        "Ann <ann@example.com> | Bob",
        "Read [1] (the first) and f[0](x); see https://example.com/a_b.",
        "Line one\n- line two\tand -- so on",
        "السبت، 4 يوليو \u200f(UTC)",
    ],
)
def test_speakable_text(text: str) -> None:
    assert speech_problems({"text": [text]}) == []


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("<b>now</b>", "a tag"),
        ("so<br/>on", "a tag"),
        ('<a href="https://example.com">here</a>', "a tag"),
        ("</speak>", "a tag"),
        ("Run\n```sh\nls\n```", "a Markdown fence"),
        ("| a | b |\n|---|:-:|\n| 1 | 2 |", "a Markdown table"),
        ("a | b\n--- | ---\n1 | 2", "a Markdown table"),
        ("See [the page](https://example.com/x).", "a Markdown link"),
        ("![plan](plan.png)", "a Markdown link"),
        ("\x1b[31mred", "the control character '\\x1b'"),
        ("a\x00b", "the control character '\\x00'"),
    ],
)
def test_unspeakable_text(text: str, what: str) -> None:
    problems = speech_problems({"items": [{"text": text}]})
    assert len(problems) == 1
    assert f"data /items/0/text contains {what}" in problems[0]


def test_length_is_measured_in_characters() -> None:
    assert speech_problems("ü" * 1498) == []
    (problem,) = speech_problems("ü" * 1499)
    assert "1501 characters" in problem
