"""The contract suite for a family: the contract tests of a tool, for each of its tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

import pytest
from jackfield import ToolContext, ToolResponse

from jackfield_testkit.suite import contract_tests
from jackfield_testkit.tool import report
from jackfield_testkit.tool.examples import Example, check_examples
from jackfield_testkit.tool.runner import ToolUnusableError, family_tools
from jackfield_testkit.tool.suite import ToolContractTests, applies


class FamilyContractTests(ToolContractTests, suite=True):
    """Subclass it with a family and examples for each of its tools to run all their contract tests.

    The id of each test names the tool. While a test runs, `self.tool_id` is its tool, so that `context()` can
    pass different capabilities to different tools.
    """

    overridable = (ToolContractTests.overridable - {"tool_id"}) | {"family"}

    family: ClassVar[str] = ""
    """The name of the family's entry point."""

    examples: ClassVar[Mapping[str, Sequence[Example]]] = MappingProxyType({})  # type: ignore[assignment]
    """Calls and their expected results, by tool."""

    @classmethod
    def check_settings(cls) -> None:
        """Raise `TypeError` for a class without a family or without useful examples."""
        name = cls.__name__
        if not (cls.family and isinstance(cls.family, str)):
            raise TypeError(
                f"{name} does not name the family that it tests; "
                'set family = "..." to the name of its entry point'
            )
        given: object = cls.examples
        if not isinstance(given, Mapping) or not given:
            raise TypeError(f'{name}.examples is not a mapping such as {{"tool_id": (Example({{...}}),)}}')
        for tool_id, examples in cls.examples.items():
            check_examples(f"{name}, {tool_id}", examples)

    @pytest.fixture(autouse=True)
    def _choose_tool(self, family_tool: str) -> None:
        self.tool_id = family_tool  # type: ignore[misc]

    def call_tool(
        self, tool_id: str, arguments: Mapping[str, Any], context: ToolContext | None = None
    ) -> ToolResponse:
        """Call one tool as the registry does, for your own tests."""
        self.tool_id = tool_id  # type: ignore[misc]
        return self.call(arguments, context)

    def test_every_tool_has_examples(self) -> None:
        """Every tool of the family is tested, including tools that are added later."""
        try:
            tools = set(family_tools(self.family))
        except ToolUnusableError as error:
            raise report.failure(str(error)) from None
        if missing := sorted(tools - set(self.examples)):
            raise report.failure(
                f"{self.family} has tools without examples: {', '.join(missing)}; add them to examples"
            )
        if unknown := sorted(set(self.examples) - tools):
            raise report.failure(
                f"there are examples for tools that {self.family} does not have: {', '.join(unknown)}"
            )

    def parametrize(self, metafunc: pytest.Metafunc) -> None:
        """Run a contract test once for every tool and example that it applies to."""
        test = metafunc.function.__name__
        if test not in contract_tests(ToolContractTests):
            metafunc.parametrize("family_tool", [pytest.param(self.family, id=self.family)])
        elif "example" in metafunc.fixturenames:
            metafunc.parametrize(("family_tool", "example"), list(self._tool_examples(test)))
        else:
            metafunc.parametrize("family_tool", list(self.examples))

    def _tool_examples(self, test: str) -> Iterator[Any]:
        for tool_id, examples in self.examples.items():
            if test in self.waived:
                yield pytest.param(tool_id, None, id=f"{tool_id}-waived")
                continue
            chosen = [
                pytest.param(tool_id, example, id=f"{tool_id}-{example.label(position)}")
                for position, example in enumerate(examples)
                if applies(test, example)
            ]
            yield from chosen or [pytest.param(tool_id, None, id=f"{tool_id}-none")]
