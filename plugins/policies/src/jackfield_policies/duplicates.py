"""A call that is delivered twice runs once: after a reconnect, on another host, after a crash."""

from __future__ import annotations

from jackfield import ToolResponse
from jackfield.governance import Call, Proceed
from jackfield.ledger import CallLedger, idempotency_key
from jackfield.offers import Services
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session

from jackfield_policies.settings import DuplicatesSettings


class Duplicates:
    """Gives a call its idempotency key, before anything else is decided about it."""

    def __init__(self, settings: DuplicatesSettings, services: Services) -> None:
        self._ledger = CallLedger(services.store, settings.remember_seconds)

    def concerns(self, tool: RegisteredTool, session: Session) -> bool:  # noqa: ARG002
        """Every call of every tool."""
        return True

    async def apply(self, call: Call, proceed: Proceed) -> ToolResponse:
        """Run the call, or answer with what became of it before."""
        if call.key:
            # Approved by its user: the kernel has claimed it already.
            return await proceed(call)
        call.key = idempotency_key(call)
        return await self._ledger.run(call, proceed)
