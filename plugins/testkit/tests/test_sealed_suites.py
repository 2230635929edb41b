"""A contract test cannot be removed silently, and a suite rejects classes that test nothing."""

from __future__ import annotations

from typing import Any

import pytest
from jackfield_testkit import Example, ToolContractTests
from jackfield_testkit.suite import contract_tests

GOOD: dict[str, Any] = {"tool_id": "echo", "examples": (Example({}),)}
CONTRACT_TESTS = contract_tests(ToolContractTests)


def subclass(*mixins: type, abstract: bool = False, **members: Any) -> type:
    return type("TestEcho", (*mixins, ToolContractTests), {**GOOD, **members}, abstract=abstract)


def test_tools_have_nine_contract_tests_with_docstrings() -> None:
    assert CONTRACT_TESTS == (
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
    assert all(getattr(ToolContractTests, name).__doc__ for name in CONTRACT_TESTS)


def test_overridable_attributes_exist() -> None:
    assert set(vars(ToolContractTests)) >= ToolContractTests.overridable - {"waived"}


@pytest.mark.parametrize("name", CONTRACT_TESTS)
@pytest.mark.parametrize("instead", [None, lambda self: None, property(lambda self: None)])
@pytest.mark.parametrize("abstract", [False, True])
def test_contract_test_cannot_be_replaced(name: str, instead: object, abstract: bool) -> None:
    with pytest.raises(TypeError, match=f'replaces the contract test {name};.* waived = {{"{name}"'):
        subclass(abstract=abstract, **{name: instead})


def test_contract_test_cannot_be_replaced_by_a_mixin_or_an_intermediate_class() -> None:
    with pytest.raises(TypeError, match="replaces the contract test test_envelope"):
        subclass(type("Quiet", (), {"test_envelope": None}))
    with pytest.raises(TypeError, match="replaces the contract test test_envelope"):
        type("TestMore", (subclass(),), {"test_envelope": None})


@pytest.mark.parametrize("name", ["pytest_generate_tests", "call", "_cases", "_skip_waived"])
def test_code_that_drives_the_tests_cannot_be_replaced(name: str) -> None:
    with pytest.raises(TypeError, match=f"replaces {name}, which drives"):
        type("TestEcho", (ToolContractTests,), {**GOOD, name: lambda self: None})


def test_class_cannot_be_hidden_from_pytest() -> None:
    with pytest.raises(TypeError, match=r"sets __test__.*abstract=True"):
        subclass(__test__=False)
    with pytest.raises(TypeError, match="use an autouse fixture"):
        subclass(__init__=lambda self: None)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"tool_id": ""}, "does not name the tool that it tests"),
        ({"examples": ()}, "has no examples, so nothing is tested"),
        ({"examples": Example({})}, "is not a tuple of Example"),
        ({"examples": ({"text": "ha"},)}, "is not a tuple of Example"),
        ({"examples": (Example({}, error="AUTH"),)}, "has no example that succeeds"),
        ({"waived": {"test_time_budgets": "slow"}}, "did you mean test_time_budget?"),
        ({"waived": {"time": "slow"}}, "the contract tests are test_contract, test_examples"),
        ({"waived": {"test_time_budget": " "}}, "waives test_time_budget without a reason"),
        ({"waived": {"test_time_budget": None}}, "waives test_time_budget without a reason"),
        ({"waived": ["test_time_budget"]}, "is not a mapping"),
    ],
)
def test_invalid_settings_of_a_class_are_rejected(members: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError) as refused:
        subclass(**members)
    assert message in str(refused.value)


def test_abstract_base_class_does_not_run() -> None:
    class OurTools(ToolContractTests, abstract=True):
        max_block_ms = 20

    class TestEcho(OurTools):
        tool_id = "echo"
        examples = (Example({}),)
        waived = {"test_time_budget": "it waits for a person"}  # noqa: RUF012

    assert not OurTools.__test__
    assert TestEcho.__test__
    assert TestEcho.max_block_ms == 20
    with pytest.raises(TypeError, match="does not name the tool"):
        type("TestNothing", (OurTools,), {})


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"arguments": ["ha"]}, "have to be a dict, not list"),
        ({"arguments": {"a": {1}}}, "/a: {1} is a set"),
        ({"arguments": {"a": float("inf")}}, "inf is not a finite number"),
        ({"arguments": {}, "data": 1, "error": "AUTH"}, "data or an error, not both"),
        ({"arguments": {}, "error": "INTERNAL"}, "is not an error type of a tool"),
        ({"arguments": {}, "mode": "video"}, 'has to be "text", "voice" or None'),
    ],
)
def test_invalid_examples_are_rejected(members: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError)) as refused:
        Example(**members)
    assert message in str(refused.value)


def test_example_labels_its_test() -> None:
    assert Example({}).label(3) == "3"
    assert Example({}, mode="voice", error="AUTH").label(0) == "0-voice-AUTH"
    assert Example({}, name="at night").label(0) == "at night"
