"""What came of an example, held against what the author expects of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
from jackfield import ErrorType, ToolResponse

from jackfield_testkit.context import ToolTestContext
from jackfield_testkit.json_values import json_faults, same_json
from jackfield_testkit.tool_contract import wording
from jackfield_testkit.tool_contract.case import Case
from jackfield_testkit.tool_contract.example import ANYTHING, Example
from jackfield_testkit.tool_contract.installed import InstalledTool
from jackfield_testkit.tool_contract.running import Run

_GIVEN_TO_ALL = frozenset({"messaging"})
"""What every handler has without naming it under `requires`."""


def problems(case: Case, run: Run) -> Iterator[str]:
    """Every way in which a run of an example is not what it should be."""
    tool, example = case.tool, case.example
    if case.mode not in tool.manifest.allowed_modes:
        yield f"the tool is not allowed in {case.mode}; change the example's mode, or allowedModes"
    if run.crashed and run.raised is not None:
        told = wording.crash(run.raised, tool.source.folder)
        yield f"the handler raised {type(run.raised).__name__}\n{told}"
    else:
        yield from _outcome_problems(example, run)
    if run.response.ok:
        yield from _data_problems(tool, example, run.response.data)
    yield from _capability_problems(tool, run)


def _outcome_problems(example: Example, run: Run) -> Iterator[str]:
    failure = run.response.failure
    if failure is None:
        if example.error == ErrorType.VALIDATION:
            yield "the schema accepts these arguments, and the example expects that it refuses them"
        elif example.error:
            yield f"expected a failure of type {example.error}, got {wording.answer(run.response)}"
    elif run.reached and run.raised is None and not isinstance(run.returned, ToolResponse):
        returned = type(run.returned).__name__
        yield f"the handler returned {returned}, not ok(...) or fail(...), and the model is told INTERNAL"
    elif failure.type != example.error:
        expected = f"a failure of type {example.error}" if example.error else "success"
        yield f"expected {expected}, got {wording.answer(run.response)}"


def _data_problems(tool: InstalledTool, example: Example, data: Any) -> Iterator[str]:
    if callable(example.data):
        verdict = example.data(data)
        if not verdict:
            yield f"data= returned {verdict!r} for {wording.data(data)}"
    elif example.data is not ANYTHING and not same_json(example.data, data):
        yield f"the data is not what the example expects\n{wording.difference(example.data, data)}"
    # What is no JSON cannot be judged as such; test_envelope refuses it.
    if tool.returns is not None and not any(json_faults(data)):
        for violation in tool.returns.violations(orjson.loads(orjson.dumps(data))):
            yield f"data {violation.path} breaks `returns` in schema.json: {violation.message}"


def _capability_problems(tool: InstalledTool, run: Run) -> Iterator[str]:
    if isinstance(run.context, ToolTestContext):
        for name in sorted(run.context.used - _GIVEN_TO_ALL - set(tool.manifest.requires)):
            yield f"the handler uses ctx.{name}, and `requires` in schema.json does not name it"
