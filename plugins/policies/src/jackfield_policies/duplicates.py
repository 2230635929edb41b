"""Duplicate detection: a call that is delivered twice runs once, even on another host or after a crash."""

from __future__ import annotations

from jackfield import ToolResponse
from jackfield.governance import Call, Proceed
from jackfield.ledger import CallLedger, idempotency_key
from jackfield.offers import Services
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session

from jackfield_policies.settings import DuplicatesSettings


class DuplicatePolicy:
    """Sets the idempotency key of a call, before all other policies."""

    def __init__(self, settings: DuplicatesSettings, services: Services) -> None:
        self._ledger = CallLedger(services.store, settings.remember_seconds)

    def applies_to(self, tool: RegisteredTool, session: Session) -> bool:  # noqa: ARG002
        """Apply to every call of every tool."""
        return True

    async def apply(self, call: Call, proceed: Proceed) -> ToolResponse:
        """Run the call, or return the result of its first delivery."""
        if call.key:
            # The user approved it, and the kernel has already claimed it.
            return await proceed(call)
        call.key = idempotency_key(call)
        return await self._ledger.run(call, proceed)
