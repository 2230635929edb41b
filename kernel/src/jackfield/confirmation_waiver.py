"""Base class of policies that waive confirmation for calls that the user asked for."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, NamedTuple

from jackfield.contract.tool import ToolResponse
from jackfield.governance import Call, SyncPolicy
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session


class WaiverDecision(NamedTuple):
    """The verdict on one call: a reason to waive confirmation, or notes for the confirmation preview."""

    reason: str = ""
    """Why no confirmation is needed, as a clause; empty if the user is asked."""

    notes: tuple[str, ...] = ()
    """Sentences for the confirmation preview."""


class ConfirmationWaiverPolicy(SyncPolicy):
    """Waives confirmation, or leaves the call to the confirmation policy, which runs next.

    A subclass decides whether the user asked for the call. If in doubt, it should decide that the user did
    not: the only cost is one more confirmation.
    """

    name: ClassVar[str]
    """The name of the policy, as it appears in the policy trace."""

    tools: ClassVar[frozenset[str]]
    """The ids of the tools that the policy applies to."""

    @abstractmethod
    def judge(self, call: Call) -> WaiverDecision:
        """Decide whether the user asked for this call."""

    def applies_to(self, tool: RegisteredTool, session: Session) -> bool:  # noqa: ARG002
        """Return whether the policy applies to a tool."""
        return tool.id in self.tools

    def before(self, call: Call) -> ToolResponse | None:
        """Waive confirmation, or add notes to the preview."""
        consent = self.judge(call)
        if consent.reason:
            call.waive_confirmation(consent.reason)
            call.decide(self.name, f"consent given: {consent.reason}")
        else:
            for note in consent.notes:
                call.add_preview_note(note)
            call.decide(self.name, "confirmation needed")
        return None
