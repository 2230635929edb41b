"""One example in one mode: all it takes to run it, and to say what was wrong with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import orjson
from jackfield import Mode, ToolContext

from jackfield_testkit.tool_contract import wording
from jackfield_testkit.tool_contract.example import Example
from jackfield_testkit.tool_contract.installed import InstalledTool
from jackfield_testkit.tool_contract.running import Run, call, on_a_loop


@dataclass(frozen=True, slots=True)
class Case:
    """A call that a standard test makes."""

    tool: InstalledTool
    example: Example
    mode: Mode
    context_in: Callable[[Mode], ToolContext]

    def context(self) -> ToolContext:
        """A context that no run has touched."""
        return self.context_in(self.mode)

    def arguments(self) -> dict[str, Any]:
        """The arguments as the model sends them, to be changed at will."""
        sent: dict[str, Any] = orjson.loads(orjson.dumps(self.example.arguments))
        return sent

    def completed(self) -> dict[str, Any]:
        """The arguments as the handler gets them, with the defaults filled in; to be changed at will."""
        given = self.arguments()
        self.tool.arguments.complete(given)
        return given

    @property
    def valid(self) -> bool:
        """Whether the schema accepts the arguments; test_examples says it when it should and does not."""
        return not self.tool.arguments.violations(self.arguments())

    def run(self) -> Run:
        """Call the tool once, as the registry would."""
        return on_a_loop(call(self.tool, self.arguments(), self.context()))

    def refuse(self, problems: Iterable[str]) -> None:
        """Fail the test when there is a problem, and name the call that shows it."""
        listed = list(problems)
        if listed:
            sent = wording.cut(json.dumps(self.example.arguments, ensure_ascii=False))
            heading = f"{self.tool.manifest.tool_id} in {self.mode}, called with {sent}"
            raise wording.failure("\n".join([heading, *map(wording.item, listed)]))
