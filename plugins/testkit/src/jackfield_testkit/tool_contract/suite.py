"""The base class that the author of a tool subclasses, with the standard tests as its methods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import pytest
from jackfield import Mode, ToolContext, ToolResponse

from jackfield_testkit.context import ToolTestContext
from jackfield_testkit.sealing import SealedTests, standard_tests
from jackfield_testkit.tool_contract import (
    blocking,
    cancelling,
    defaults,
    envelope,
    expectation,
    installed,
    speech,
    timing,
    unknown,
    wording,
)
from jackfield_testkit.tool_contract.case import Case
from jackfield_testkit.tool_contract.example import Example, check_examples
from jackfield_testkit.tool_contract.installed import InstalledTool, ToolUnusableError


class ToolContractTests(SealedTests, suite=True):
    """Subclass it, name the tool, give examples: the standard tests come with it.

    A standard test cannot be replaced. `waived = {"test_...": "reason"}` skips one, and the report says why.
    `class OurTools(ToolContractTests, abstract=True)` makes a base of your own, which is not run itself.
    """

    decides = frozenset(
        {"tool_id", "examples", "waived", "context", "best_of", "max_block_ms", "cancel_grace_ms"},
    )
    otherwise = "give your own another name, and override context() to change what a handler is given"

    tool_id: ClassVar[str] = ""
    """The tool, by the name of its entry point."""

    examples: ClassVar[Sequence[Example]] = ()
    """Calls and what has to come of them; nothing is called with anything else."""

    best_of: ClassVar[int] = 3
    """How often a run that was too slow, or held the loop, is tried before it counts."""

    max_block_ms: ClassVar[float] = 50
    """How long a handler may hold the loop."""

    cancel_grace_ms: ClassVar[float] = 500
    """How long a handler may take to end once it is cancelled."""

    @classmethod
    def check_statements(cls) -> None:
        """Refuse a class that does not say which tool it is about, or from which nothing could be learnt."""
        if not (cls.tool_id and isinstance(cls.tool_id, str)):
            raise TypeError(
                f"{cls.__name__} does not say which tool it tests; "
                'set tool_id = "..." to the name of its entry point'
            )
        check_examples(cls.__name__, cls.examples)

    def context(self, mode: Mode) -> ToolContext:
        """What the handler is given, made anew for every run; override it to pass capabilities."""
        return ToolTestContext(mode)

    def call(self, arguments: Mapping[str, Any], context: ToolContext | None = None) -> ToolResponse:
        """Call the tool as the registry would, for tests of your own."""
        tool = self._tool()
        mode = tool.manifest.allowed_modes[0]
        case = Case(tool, Example(dict(arguments)), mode, lambda mode: context or self.context(mode))
        return case.run().response

    def test_contract(self) -> None:
        """The build accepts the tool; otherwise no registry that includes it can be frozen."""
        try:
            errors = [finding for finding in installed.findings(self.tool_id) if finding.is_error]
        except ToolUnusableError as error:
            raise wording.failure(str(error)) from None
        if errors:
            raise wording.failure(wording.findings(self.tool_id, errors))

    def test_examples(self, example: Example) -> None:
        """Every example comes out as its author expects, and as `returns` promises the model."""
        for case in self._cases(example):
            case.refuse(expectation.problems(case, case.run()))

    def test_envelope(self, example: Example) -> None:
        """The answer reaches the model as it was meant: whole, as JSON, with a handler's kind of failure."""
        for case in self._cases(example):
            case.refuse(envelope.problems(case.run(), case.tool.manifest))

    def test_defaults(self, example: Example) -> None:
        """Leaving an argument out means what the schema says it means, in the handler too."""
        if not self._tool().repeatable:
            pytest.skip(f"{self.tool_id} writes and is not idempotent, so it is not run again to compare")
        for case in self._cases(example):
            case.refuse(defaults.problems(case))

    def test_unknown_arguments(self, example: Example) -> None:
        """An argument that a model makes up is refused, at every level, and does not reach the handler."""
        for case in self._cases(example):
            case.refuse(unknown.problems(case))

    def test_time_budget(self, example: Example) -> None:
        """The tool is as quick as latencyBudgetMs says; somebody in a conversation waits for it."""
        for case in self._cases(example):
            case.refuse(timing.problems(case, self.best_of))

    def test_cancellation(self, example: Example) -> None:
        """A call ends when it is cancelled, so that an interrupted assistant is free at once."""
        for case in self._cases(example):
            case.refuse(cancelling.problems(case, self.cancel_grace_ms))

    def test_no_blocking(self, example: Example) -> None:
        """Other sessions go on while the tool works; one that holds the loop makes all voices stutter."""
        for case in self._cases(example):
            case.refuse(blocking.problems(case, self.max_block_ms, self.best_of))

    def test_speakable_in_voice(self, example: Example | None) -> None:
        """What the tool answers in voice can be listened to: it is short, and free of markup."""
        if "voice" not in self._tool().manifest.allowed_modes:
            pytest.skip(f"{self.tool_id} is not allowed in voice")
        if example is None:
            raise wording.failure(
                f"{self.tool_id} is allowed in voice, and no example that succeeds runs there; "
                'add one with mode="voice", or without a mode'
            )
        for case in self._cases(example):
            if case.mode == "voice":
                case.refuse(speech.problems(case.run().response.data))

    def parametrize(self, metafunc: pytest.Metafunc) -> None:
        """One test for every example that the test is about."""
        if "example" in metafunc.fixturenames:
            metafunc.parametrize("example", list(self._parameters(metafunc.function.__name__)))

    def _parameters(self, test: str) -> Iterator[Any]:
        if test in self.waived:
            yield pytest.param(None, id="waived")
            return
        chosen = [
            pytest.param(example, id=example.label(position))
            for position, example in enumerate(self.examples)
            if _concerns(test, example)
        ]
        yield from chosen or [pytest.param(None, id="none")]

    def _tool(self) -> InstalledTool:
        try:
            return installed.load(self.tool_id)
        except ToolUnusableError as error:
            raise wording.failure(str(error)) from None

    def _cases(self, example: Example) -> Iterator[Case]:
        tool = self._tool()
        for mode in (example.mode,) if example.mode else tool.manifest.allowed_modes:
            yield Case(tool, example, mode, self.context)


def _concerns(test: str, example: Example) -> bool:
    match test:
        case "test_time_budget":
            return example.succeeds
        case "test_speakable_in_voice":
            return example.succeeds and example.mode != "text"
        case _ if test in standard_tests(ToolContractTests) and test != "test_examples":
            return example.reaches_handler
        case _:
            return True
