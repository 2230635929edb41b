"""In text, a passing failure of a tool that may be repeated is tried once more."""

from __future__ import annotations

from jackfield import ErrorType, Failure
from jackfield.governance import Call, Check
from jackfield.offers import Services
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session

from jackfield_policies.settings import RecoverySettings


class Recovery(Check):
    """Retries once, after a pause; in voice nobody would wait for it."""

    def __init__(self, settings: RecoverySettings, services: Services) -> None:  # noqa: ARG002
        self._pause = settings.pause_ms / 1000

    def concerns(self, tool: RegisteredTool, session: Session) -> bool:
        """Idempotent tools in text."""
        return session.mode == "text" and tool.manifest.idempotent

    def retry_after(self, call: Call, failure: Failure) -> float | None:
        """The pause, if the failure says that it may pass."""
        if failure.type is not ErrorType.TRANSIENT or not failure.retryable:
            return None
        call.decide("recovery", "retried")
        call.meta["retried"] = True
        return self._pause
