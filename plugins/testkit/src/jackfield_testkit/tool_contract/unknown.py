"""Arguments that no schema knows, put wherever an example has an object."""

from __future__ import annotations

from collections.abc import Iterator

from jackfield.strict_json import pointer

from jackfield_testkit.json_values import at, objects
from jackfield_testkit.tool_contract.case import Case
from jackfield_testkit.tool_contract.running import call, on_a_loop

_UNKNOWN = "no_tool_has_this_argument"


def problems(case: Case) -> Iterator[str]:
    """Every object in the arguments that takes one member more, and lets it through to the handler."""
    for path, _ in objects(case.arguments()):
        arguments = case.arguments()
        at(arguments, path)[_UNKNOWN] = True
        if on_a_loop(call(case.tool, arguments, case.context())).reached:
            yield (
                f"{pointer(*path, _UNKNOWN)} is accepted and reaches the handler; "
                'let the schema of that object say "additionalProperties": false, and list its properties'
            )
