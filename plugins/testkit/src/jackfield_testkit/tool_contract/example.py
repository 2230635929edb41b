"""An example: a call that the author of a tool vouches for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final

from jackfield import ErrorType, Mode

from jackfield_testkit.json_values import json_faults

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
"""The types of failure that a handler may make; the others belong to the registry and the orchestrator."""


class _Anything:
    """Stands for an expectation that was not stated, because `None` may be what a tool answers."""

    def __repr__(self) -> str:
        return "anything"


ANYTHING: Final = _Anything()


@dataclass(frozen=True)
class Example:
    """Arguments as a model would write them, and what has to come of them.

    `data` is the expected data, or a function that is given the data and returns whether it is right; left
    out, the call only has to succeed. `error` is the type of the expected failure instead; `"VALIDATION"`
    says that the schema refuses the arguments. Without a `mode` the example holds in every mode of the tool.
    """

    arguments: Mapping[str, Any]
    _: KW_ONLY
    data: Any = ANYTHING
    error: str | None = None
    mode: Mode | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.arguments, dict):
            raise TypeError(f"the arguments of an example are a dict, not {type(self.arguments).__name__}")
        if faults := list(json_faults(self.arguments)):
            raise TypeError(f"the arguments of an example have to be JSON: {'; '.join(faults)}")
        if self.error is not None:
            self._check_error(self.error)
        if self.mode not in (None, "text", "voice"):
            raise ValueError(f'an example\'s mode is "text", "voice" or left out, not {self.mode!r}')

    def _check_error(self, error: str) -> None:
        if self.data is not ANYTHING:
            raise TypeError("an example expects data or an error, not both: a failure carries no data")
        possible = sorted(HANDLER_ERRORS | {ErrorType.VALIDATION})
        if error not in possible:
            raise ValueError(f"{error!r} is no failure a tool can make; choose one of {', '.join(possible)}")

    @property
    def succeeds(self) -> bool:
        """Whether the call is expected to succeed."""
        return self.error is None

    @property
    def reaches_handler(self) -> bool:
        """Whether the arguments are expected to be valid."""
        return self.error != ErrorType.VALIDATION

    def label(self, position: int) -> str:
        """The example's part of a test's name."""
        return self.name or "-".join(filter(None, (str(position), self.mode, self.error)))


def check_examples(name: str, examples: Any) -> None:
    """Refuse examples from which nothing could be learnt."""
    if not isinstance(examples, tuple | list) or not all(isinstance(each, Example) for each in examples):
        raise TypeError(f"{name}.examples is not a tuple of Example(...)")
    if not examples:
        raise TypeError(
            f"{name} has no examples, and without one nothing is tested; "
            f"set examples = (Example({{...}}, data={{...}}),)"
        )
    if not any(example.succeeds for example in examples):
        raise TypeError(f"{name} has no example that succeeds; add one without error=")
