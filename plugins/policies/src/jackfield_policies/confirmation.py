"""Calls that need the user's approval wait for it, whatever the model says."""

from __future__ import annotations

from jackfield import ToolResponse
from jackfield.confirmation import Confirmations, waiting
from jackfield.governance import Call, Proceed
from jackfield.offers import Services
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session

from jackfield_policies.settings import ConfirmationSettings


class Confirmation:
    """Asks the user before a tool runs that requires it.

    A tool that leaves it to the policy is asked for too, unless the deployment trusts it by name or a policy
    that came before vouches for this call.
    """

    def __init__(self, settings: ConfirmationSettings, services: Services) -> None:
        self._trusted = frozenset(settings.trusted)
        self._seconds = settings.expiry_seconds
        self._confirmations = Confirmations(services.store)

    def concerns(self, tool: RegisteredTool, session: Session) -> bool:  # noqa: ARG002
        """Tools that require it, and those that leave it to the policy and are not trusted."""
        required = tool.manifest.requires_confirmation
        return required is True or (required == "policy" and tool.id not in self._trusted)

    async def apply(self, call: Call, proceed: Proceed) -> ToolResponse:
        """Let an approved call pass; let any other wait."""
        if call.confirmed:
            call.decide("confirmation", "approved")
            return await proceed(call)
        if call.vouched and call.tool.manifest.requires_confirmation == "policy":
            call.decide("confirmation", f"not asked: {call.vouched}")
            return await proceed(call)
        pending = await self._confirmations.ask(call, seconds=self._seconds)
        call.end("confirmation", "pending")
        return waiting(pending)
