"""The contract suite for tools: the base class that the author of a tool subclasses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import pytest
from jackfield import Mode, ToolContext, ToolResponse

from jackfield_testkit.context import ToolTestContext
from jackfield_testkit.suite import ContractTests, contract_tests
from jackfield_testkit.tool import handler_checks, report
from jackfield_testkit.tool.envelope import envelope_problems, speech_problems
from jackfield_testkit.tool.examples import Example, check_examples, result_problems
from jackfield_testkit.tool.runner import (
    ExampleCase,
    InstalledTool,
    ToolUnusableError,
    build_findings,
    load_tool,
)


class ToolContractTests(ContractTests, suite=True):
    """Subclass it with a tool id and examples to run the contract tests of a tool.

    A contract test cannot be replaced. `waived = {"test_...": "reason"}` skips one, and the report shows the
    reason. `class OurTools(ToolContractTests, abstract=True)` makes a base class that does not run itself.
    """

    overridable = frozenset(
        {"tool_id", "examples", "waived", "context", "best_of", "max_block_ms", "cancel_grace_ms"},
    )
    override_hint = "give your own a different name, and override context() to change the handler's context"

    tool_id: ClassVar[str] = ""
    """The id under which the tool is installed."""

    examples: ClassVar[Sequence[Example]] = ()
    """Calls and their expected results; the tool gets no other input."""

    best_of: ClassVar[int] = 3
    """How many runs to try before a slow or blocking run counts."""

    max_block_ms: ClassVar[float] = 50
    """How long a handler may block the loop."""

    cancel_grace_ms: ClassVar[float] = 500
    """How long a handler may take to end after cancellation."""

    @classmethod
    def check_settings(cls) -> None:
        """Raise `TypeError` for a class without a tool id or without useful examples."""
        if not (cls.tool_id and isinstance(cls.tool_id, str)):
            raise TypeError(
                f"{cls.__name__} does not name the tool that it tests; "
                'set tool_id = "..." to the id of the tool'
            )
        check_examples(cls.__name__, cls.examples)

    def context(self, mode: Mode) -> ToolContext:
        """Return a new context for every run; override it to pass capabilities."""
        return ToolTestContext(mode)

    def call(self, arguments: Mapping[str, Any], context: ToolContext | None = None) -> ToolResponse:
        """Call the tool as the registry does, for your own tests."""
        tool = self._tool()
        mode = tool.manifest.allowed_modes[0]
        case = ExampleCase(tool, Example(dict(arguments)), mode, lambda mode: context or self.context(mode))
        return case.run().response

    def test_contract(self) -> None:
        """The build accepts the tool; otherwise no registry with it can be frozen."""
        try:
            errors = [finding for finding in build_findings(self.tool_id) if finding.is_error]
        except ToolUnusableError as error:
            raise report.failure(str(error)) from None
        if errors:
            raise report.failure(report.findings(self.tool_id, errors))

    def test_examples(self, example: Example) -> None:
        """Every example has the expected result, and its data matches `returns`."""
        for case in self._cases(example):
            case.fail_on(result_problems(case, case.run()))

    def test_envelope(self, example: Example) -> None:
        """The response is complete, valid JSON, and uses only error types of handlers."""
        for case in self._cases(example):
            case.fail_on(envelope_problems(case.run(), case.tool.manifest))

    def test_defaults(self, example: Example) -> None:
        """The handler assumes the same defaults as the schema."""
        if not self._tool().repeatable:
            pytest.skip(
                f"{self.tool_id} writes and is not idempotent, so it cannot run twice for a comparison"
            )
        for case in self._cases(example):
            case.fail_on(handler_checks.default_problems(case))

    def test_unknown_arguments(self, example: Example) -> None:
        """Unknown arguments are rejected at every level and do not reach the handler."""
        for case in self._cases(example):
            case.fail_on(handler_checks.unknown_argument_problems(case))

    def test_time_budget(self, example: Example) -> None:
        """The tool stays within its latencyBudgetMs, because a user waits for it."""
        for case in self._cases(example):
            case.fail_on(handler_checks.time_problems(case, self.best_of))

    def test_cancellation(self, example: Example) -> None:
        """A cancelled call ends, so an interrupted assistant is ready at once."""
        for case in self._cases(example):
            case.fail_on(handler_checks.cancellation_problems(case, self.cancel_grace_ms))

    def test_no_blocking(self, example: Example) -> None:
        """The tool does not block the event loop, which would make the audio of all sessions stutter."""
        for case in self._cases(example):
            case.fail_on(handler_checks.blocking_problems(case, self.max_block_ms, self.best_of))

    def test_speakable_in_voice(self, example: Example | None) -> None:
        """Results in voice can be spoken: they are short and contain no markup."""
        if "voice" not in self._tool().manifest.allowed_modes:
            pytest.skip(f"{self.tool_id} is not allowed in voice")
        if example is None:
            raise report.failure(
                f"{self.tool_id} is allowed in voice, but no successful example runs there; "
                'add one with mode="voice", or without a mode'
            )
        for case in self._cases(example):
            if case.mode == "voice":
                case.fail_on(speech_problems(case.run().response.data))

    def parametrize(self, metafunc: pytest.Metafunc) -> None:
        """Run a test once for every example that it applies to."""
        if "example" in metafunc.fixturenames:
            metafunc.parametrize("example", list(self._parameters(metafunc.function.__name__)))

    def _parameters(self, test: str) -> Iterator[Any]:
        if test in self.waived:
            yield pytest.param(None, id="waived")
            return
        chosen = [
            pytest.param(example, id=example.label(position))
            for position, example in enumerate(self.examples)
            if applies(test, example)
        ]
        yield from chosen or [pytest.param(None, id="none")]

    def _tool(self) -> InstalledTool:
        try:
            return load_tool(self.tool_id)
        except ToolUnusableError as error:
            raise report.failure(str(error)) from None

    def _cases(self, example: Example) -> Iterator[ExampleCase]:
        tool = self._tool()
        for mode in (example.mode,) if example.mode else tool.manifest.allowed_modes:
            yield ExampleCase(tool, example, mode, self.context)


def applies(test: str, example: Example) -> bool:
    """Return whether a contract test uses an example."""
    match test:
        case "test_time_budget":
            return example.succeeds
        case "test_speakable_in_voice":
            return example.succeeds and example.mode != "text"
        case _ if test in contract_tests(ToolContractTests) and test != "test_examples":
            return example.reaches_handler
        case _:
            return True
