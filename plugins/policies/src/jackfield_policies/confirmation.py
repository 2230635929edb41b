"""Confirmation: risky calls wait for the user's approval."""

from __future__ import annotations

from jackfield import ToolResponse
from jackfield.confirmation import Confirmations, confirmation_pending
from jackfield.governance import Call, Proceed
from jackfield.offers import Services
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session

from jackfield_policies.settings import ConfirmationSettings


class ConfirmationPolicy:
    """Asks the user before running a tool that requires confirmation.

    A tool that leaves the decision to the policy also needs confirmation, unless the deployment trusts the
    tool by name or an earlier policy waives confirmation of this call.
    """

    def __init__(self, settings: ConfirmationSettings, services: Services) -> None:
        self._trusted = frozenset(settings.trusted)
        self._seconds = settings.expiry_seconds
        self._confirmations = Confirmations(services.store)

    def applies_to(self, tool: RegisteredTool, session: Session) -> bool:  # noqa: ARG002
        """Apply to tools that require confirmation, and to untrusted tools that leave it to the policy."""
        required = tool.manifest.requires_confirmation
        return required is True or (required == "policy" and tool.id not in self._trusted)

    async def apply(self, call: Call, proceed: Proceed) -> ToolResponse:
        """Let an approved call pass; ask for confirmation of any other."""
        if call.confirmed:
            call.decide("confirmation", "approved")
            return await proceed(call)
        if call.confirmation_waiver and call.tool.manifest.requires_confirmation == "policy":
            call.decide("confirmation", f"not asked: {call.confirmation_waiver}")
            return await proceed(call)
        pending = await self._confirmations.request(call, seconds=self._seconds)
        call.end("confirmation", "pending")
        return confirmation_pending(pending)
