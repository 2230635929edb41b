"""Examples: calls with the result that the author of a tool expects, and their verification."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson
from jackfield import ErrorType, Mode

from jackfield_testkit.context import ToolTestContext
from jackfield_testkit.json_values import json_faults, same_json
from jackfield_testkit.tool import report

if TYPE_CHECKING:
    from jackfield_testkit.tool.runner import ExampleCase, InstalledTool, Run

_ALWAYS_PROVIDED = frozenset({"messaging"})
"""Capabilities that a handler may use without naming them in `requires`."""

HANDLER_ERRORS = frozenset(
    {
        ErrorType.SESSION_INACTIVE,
        ErrorType.SESSION_ACTIVE,
        ErrorType.TRANSIENT,
        ErrorType.PERMANENT,
        ErrorType.CONFLICT,
        ErrorType.AUTH,
        ErrorType.RATE_LIMIT,
    }
)
"""The error types that a handler may return; the others belong to the registry and the orchestrator."""


class _Anything:
    """Marks an expectation that was not given, because `None` is a valid result."""

    def __repr__(self) -> str:
        return "anything"


ANYTHING: Final = _Anything()


@dataclass(frozen=True)
class Example:
    """Arguments as a model would write them, and the expected result.

    `data` is the expected data, or a function that takes the data and returns whether it is correct; without
    it, the call only has to succeed. `error` is the expected error type instead; `"VALIDATION"` means that
    the schema rejects the arguments. Without a `mode` the example applies to every mode of the tool.
    """

    arguments: Mapping[str, Any]
    _: KW_ONLY
    data: Any = ANYTHING
    error: str | None = None
    mode: Mode | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.arguments, dict):
            raise TypeError(
                f"the arguments of an example have to be a dict, not {type(self.arguments).__name__}"
            )
        if faults := list(json_faults(self.arguments)):
            raise TypeError(f"the arguments of an example must be JSON: {'; '.join(faults)}")
        if self.error is not None:
            self._check_error(self.error)
        if self.mode not in (None, "text", "voice"):
            raise ValueError(f'the mode of an example has to be "text", "voice" or None, not {self.mode!r}')

    def _check_error(self, error: str) -> None:
        if self.data is not ANYTHING:
            raise TypeError("an example expects data or an error, not both; a failure has no data")
        possible = sorted(HANDLER_ERRORS | {ErrorType.VALIDATION})
        if error not in possible:
            raise ValueError(f"{error!r} is not an error type of a tool; choose one of {', '.join(possible)}")

    @property
    def succeeds(self) -> bool:
        """True if the call is expected to succeed."""
        return self.error is None

    @property
    def reaches_handler(self) -> bool:
        """True if the arguments are expected to be valid."""
        return self.error != ErrorType.VALIDATION

    def label(self, position: int) -> str:
        """Return the example's part of the test id."""
        return self.name or "-".join(filter(None, (str(position), self.mode, self.error)))


def check_examples(name: str, examples: Any) -> None:
    """Raise `TypeError` for examples that test nothing."""
    if not isinstance(examples, tuple | list) or not all(isinstance(each, Example) for each in examples):
        raise TypeError(f"{name}.examples is not a tuple of Example(...)")
    if not examples:
        raise TypeError(
            f"{name} has no examples, so nothing is tested; set examples = (Example({{...}}, data={{...}}),)"
        )
    if not any(example.succeeds for example in examples):
        raise TypeError(f"{name} has no example that succeeds; add one without error=")


def result_problems(case: ExampleCase, run: Run) -> Iterator[str]:
    """Yield every difference between the result of a run and the example or the schema."""
    tool, example = case.tool, case.example
    if case.mode not in tool.manifest.allowed_modes:
        yield f"the tool is not allowed in {case.mode}; change the example's mode, or allowedModes"
    if run.crashed and run.raised is not None:
        crash = report.crash(run.raised, tool.source.folder)
        yield f"the handler raised {type(run.raised).__name__}\n{crash}"
    else:
        yield from _outcome_problems(example, run)
    if run.response.ok:
        yield from _data_problems(tool, example, run.response.data)
    yield from _capability_problems(tool, run)


def _outcome_problems(example: Example, run: Run) -> Iterator[str]:
    failure = run.response.failure
    if failure is None:
        if example.error == ErrorType.VALIDATION:
            yield "the schema accepts these arguments, but the example expects that it rejects them"
        elif example.error:
            yield f"expected a failure of type {example.error}, got {report.response(run.response)}"
    elif run.reached and run.raised is None and run.returned is None:
        yield "the handler returned None, and the model gets INTERNAL"
    elif failure.type != example.error:
        expected = f"a failure of type {example.error}" if example.error else "success"
        yield f"expected {expected}, got {report.response(run.response)}"


def _data_problems(tool: InstalledTool, example: Example, data: Any) -> Iterator[str]:
    if callable(example.data):
        verdict = example.data(data)
        if not verdict:
            yield f"data= returned {verdict!r} for {report.data(data)}"
    elif example.data is not ANYTHING and not same_json(example.data, data):
        yield f"the data is not what the example expects\n{report.difference(example.data, data)}"
    # Data that is not JSON cannot be checked here; test_envelope rejects it.
    if tool.returns is not None and not any(json_faults(data)):
        for violation in tool.returns.violations(orjson.loads(orjson.dumps(data))):
            yield f"data {violation.path} breaks `returns` in schema.json: {violation.message}"


def _capability_problems(tool: InstalledTool, run: Run) -> Iterator[str]:
    if isinstance(run.context, ToolTestContext):
        for name in sorted(run.context.used - _ALWAYS_PROVIDED - set(tool.manifest.requires)):
            yield f"the handler uses ctx.{name}, but `requires` in schema.json does not name it"
