"""A standard test cannot disappear without a word."""

from __future__ import annotations

from typing import Any

import pytest
from jackfield_testkit import Example, ToolContractTests
from jackfield_testkit.sealing import standard_tests

GOOD: dict[str, Any] = {"tool_id": "echo", "examples": (Example({}),)}
STANDARD = standard_tests(ToolContractTests)


def subclass(*mixins: type, abstract: bool = False, **members: Any) -> type:
    return type("TestEcho", (*mixins, ToolContractTests), {**GOOD, **members}, abstract=abstract)


def test_there_are_nine_standard_tests_and_each_says_what_it_is_for() -> None:
    assert STANDARD == (
        "test_contract",
        "test_examples",
        "test_envelope",
        "test_defaults",
        "test_unknown_arguments",
        "test_time_budget",
        "test_cancellation",
        "test_no_blocking",
        "test_speakable_in_voice",
    )
    assert all(getattr(ToolContractTests, name).__doc__ for name in STANDARD)


def test_what_is_open_exists() -> None:
    assert set(vars(ToolContractTests)) >= ToolContractTests.decides - {"waived"}


@pytest.mark.parametrize("name", STANDARD)
@pytest.mark.parametrize("instead", [None, lambda self: None, property(lambda self: None)])
@pytest.mark.parametrize("abstract", [False, True])
def test_a_standard_test_cannot_be_replaced(name: str, instead: object, abstract: bool) -> None:
    with pytest.raises(TypeError, match=f'replaces the standard test {name};.* waived = {{"{name}"'):
        subclass(abstract=abstract, **{name: instead})


def test_nor_by_a_mixin_nor_through_a_class_in_between() -> None:
    with pytest.raises(TypeError, match="replaces the standard test test_envelope"):
        subclass(type("Quiet", (), {"test_envelope": None}))
    with pytest.raises(TypeError, match="replaces the standard test test_envelope"):
        type("TestMore", (subclass(),), {"test_envelope": None})


@pytest.mark.parametrize("name", ["pytest_generate_tests", "call", "_cases", "_skip_what_is_waived"])
def test_what_drives_the_tests_cannot_be_replaced(name: str) -> None:
    with pytest.raises(TypeError, match=f"replaces {name}, which drives"):
        type("TestEcho", (ToolContractTests,), {**GOOD, name: lambda self: None})


def test_the_class_cannot_be_hidden_from_pytest() -> None:
    with pytest.raises(TypeError, match=r"sets __test__.*abstract=True"):
        subclass(__test__=False)
    with pytest.raises(TypeError, match="use an autouse fixture"):
        subclass(__init__=lambda self: None)


@pytest.mark.parametrize(
    ("members", "complaint"),
    [
        ({"tool_id": ""}, "does not say which tool it tests"),
        ({"examples": ()}, "has no examples, and without one nothing is tested"),
        ({"examples": Example({})}, "is not a tuple of Example"),
        ({"examples": ({"text": "ha"},)}, "is not a tuple of Example"),
        ({"examples": (Example({}, error="AUTH"),)}, "has no example that succeeds"),
        ({"waived": {"test_time_budgets": "slow"}}, "did you mean test_time_budget?"),
        ({"waived": {"time": "slow"}}, "there are test_contract, test_examples"),
        ({"waived": {"test_time_budget": " "}}, "waives test_time_budget without a reason"),
        ({"waived": {"test_time_budget": None}}, "waives test_time_budget without a reason"),
        ({"waived": ["test_time_budget"]}, "is not a mapping"),
    ],
)
def test_what_a_class_says_has_to_make_sense(members: dict[str, Any], complaint: str) -> None:
    with pytest.raises(TypeError) as refused:
        subclass(**members)
    assert complaint in str(refused.value)


def test_a_shared_base_says_nothing_yet_and_is_not_run() -> None:
    class OurTools(ToolContractTests, abstract=True):
        max_block_ms = 20

    class TestEcho(OurTools):
        tool_id = "echo"
        examples = (Example({}),)
        waived = {"test_time_budget": "it waits for a person"}  # noqa: RUF012

    assert not OurTools.__test__
    assert TestEcho.__test__
    assert TestEcho.max_block_ms == 20
    with pytest.raises(TypeError, match="does not say which tool"):
        type("TestNothing", (OurTools,), {})


@pytest.mark.parametrize(
    ("members", "complaint"),
    [
        ({"arguments": ["ha"]}, "are a dict, not list"),
        ({"arguments": {"a": {1}}}, "/a: {1} is a set"),
        ({"arguments": {"a": float("inf")}}, "inf is not a finite number"),
        ({"arguments": {}, "data": 1, "error": "AUTH"}, "data or an error, not both"),
        ({"arguments": {}, "error": "INTERNAL"}, "no failure a tool can make"),
        ({"arguments": {}, "mode": "video"}, 'mode is "text", "voice" or left out'),
    ],
)
def test_an_example_has_to_make_sense(members: dict[str, Any], complaint: str) -> None:
    with pytest.raises((TypeError, ValueError)) as refused:
        Example(**members)
    assert complaint in str(refused.value)


def test_an_example_names_its_test() -> None:
    assert Example({}).label(3) == "3"
    assert Example({}, mode="voice", error="AUTH").label(0) == "0-voice-AUTH"
    assert Example({}, name="at night").label(0) == "at night"
