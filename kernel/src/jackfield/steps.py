"""What the kernel itself does in a chain: the arguments judged before, the outcome settled after."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from jackfield.contract.tool import ErrorType, ToolResponse, fail
from jackfield.governance import Call, SyncPolicy
from jackfield.registry.arguments import Violation
from jackfield.registry.registry import RegisteredTool
from jackfield.registry.returns import Returns
from jackfield.session.intents import IntentHandler, apply_intents

VALIDATION = "validation"

_log = logging.getLogger(__name__)


class Validation(SyncPolicy):
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


class ResultEncoding(SyncPolicy):
    """Writes out what a handler returned, checks it against `returns`, and applies the intents."""

    def __init__(self, intents: Mapping[str, IntentHandler], *, enforce_returns: bool = False) -> None:
        self._intents = intents
        self._enforce_returns = enforce_returns

    def after(self, call: Call, response: ToolResponse) -> ToolResponse:
        """The response with the intents that were applied, or a failure when it cannot be passed on."""
        response = call.encode(response)
        if call.tool.returns is not None and response.failure is None:
            response = self._checked(call, response, call.tool.returns)
        if not response.intents:
            return response
        applied, refused = apply_intents(response.intents, call.session, self._intents)
        if refused:
            call.meta["refusedIntents"] = [each._asdict() for each in refused]
        return response._replace(intents=applied)

    def _checked(self, call: Call, response: ToolResponse, returns: Returns) -> ToolResponse:
        """The response itself, or a failure if its data breaks `returns` and that is enforced."""
        found = returns.report(call.encoded_data)
        call.returns_violations = len(found)
        if not found:
            return response
        call.meta["returnsViolations"] = found
        _log.warning("%s broke its `returns` at %s: %s", call.tool.id, found[0]["path"], found[0]["message"])
        if not self._enforce_returns:
            return response
        return fail(
            ErrorType.INTERNAL,
            "The tool's answer does not have the form it promises, and is withheld.",
            partial_side_effects=not call.tool.reads,
        )
