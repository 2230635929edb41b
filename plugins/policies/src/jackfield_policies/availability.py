"""A tool is there for the sessions its manifest describes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jackfield import ErrorType, ToolResponse, fail
from jackfield.governance import Call, Check
from jackfield.offers import Services
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session
from jackfield.settings import NoSettings


class Availability(Check):
    """Refuses a tool to sessions that its `availability` leaves out."""

    def __init__(self, settings: NoSettings, services: Services) -> None:  # noqa: ARG002
        self._capabilities = services.capabilities

    def concerns(self, tool: RegisteredTool, session: Session) -> bool:
        """Only where the answer is no; nothing it depends on changes during a session."""
        return self._refusal(tool, session) is not None

    def before(self, call: Call) -> ToolResponse | None:
        """Refuse, and say what is missing."""
        refusal = self._refusal(call.tool, call.session)
        if refusal is not None:
            call.end("availability", "refused")
        return refusal

    def _refusal(self, tool: RegisteredTool, session: Session) -> ToolResponse | None:
        wanted = tool.manifest.availability
        if not wanted:
            return None
        if wanted.get("mode", session.mode) != session.mode:
            message = f"{tool.id} is there for {wanted['mode']} sessions only."
            return fail(ErrorType.MODE_RESTRICTED, message)
        missing = set(wanted.get("capabilities", ())) - self._capabilities
        if missing:
            return fail(
                ErrorType.NOT_FOUND, f"{tool.id} needs {', '.join(sorted(missing))}, which is not installed."
            )
        return _for_user(tool, session, wanted.get("user", {}))


def _for_user(tool: RegisteredTool, session: Session, wanted: Mapping[str, Any]) -> ToolResponse | None:
    if "authenticated" in wanted and wanted["authenticated"] != (session.user is not None):
        who = "users who are signed in" if wanted["authenticated"] else "guests"
        return fail(ErrorType.AUTH, f"{tool.id} is there for {who} only.")
    if "roles" in wanted and not session.roles.intersection(wanted["roles"]):
        return fail(ErrorType.AUTH, f"{tool.id} is not there for this user.")
    return None
