"""What the kernel itself does in a chain: the arguments judged before, the outcome settled after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jackfield.contract.errors import ErrorType
from jackfield.contract.response import ToolResponse, fail
from jackfield.governance import Call, Check
from jackfield.registry.arguments import Violation
from jackfield.registry.registry import RegisteredTool
from jackfield.session.intents import IntentHandler, apply_intents

VALIDATION = "validation"


class Validation(Check):
    """Refuses arguments that do not fit the tool's schema, and fills in the defaults of those that do."""

    def before(self, call: Call) -> ToolResponse | None:
        """Judge, then complete."""
        arguments, args = call.tool.arguments, call.args
        if not arguments.is_valid(args):
            call.end(VALIDATION, "refused")
            return _invalid(call.tool, arguments.violations(args))
        call.defaults_filled = arguments.complete(args)
        return None


def _invalid(tool: RegisteredTool, violations: Sequence[Violation]) -> ToolResponse:
    errors = [{"path": each.path, "message": each.message} for each in violations[:20]]
    return fail(
        ErrorType.VALIDATION,
        # Where the arguments as a whole are meant, a bare slash would read like a typing error.
        f"The arguments do not fit {tool.id}: "
        + "; ".join(f"{each.path}: {each.message}".removeprefix("/: ") for each in violations[:3]),
        suggestion=tool.help_for(violations),
        details={"errors": errors},
    )


class Outcome(Check):
    """Writes out what a handler returned, and applies the intents that came with it."""

    def __init__(self, intents: Mapping[str, IntentHandler]) -> None:
        self._intents = intents

    def after(self, call: Call, response: ToolResponse) -> ToolResponse:
        """The response with the intents that were applied, or a failure when it is not JSON."""
        response = call.encode(response)
        if not response.intents:
            return response
        applied, refused = apply_intents(response.intents, call.session, self._intents)
        if refused:
            call.meta["refusedIntents"] = [each._asdict() for each in refused]
        return response._replace(intents=applied)
