"""Takeover of calls whose host died, if a capability knows that running them again does no harm.

A read, or a tool that is declared `idempotent`, may always run again. For a call that counts as a write, only
the capability that does its work can know that this call had no effect. The host that takes over the claim
then runs the call under the same key; of several hosts, only one succeeds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from jackfield.registry.registry import RegisteredTool


@runtime_checkable
class RepeatsCalls(Protocol):
    """A capability that can tell whether a dead host's call had no effect."""

    async def may_run_again(self, tool_id: str, session_id: str, args: Mapping[str, Any]) -> bool:
        """Return whether this host may run the call again."""


async def may_run_again(
    capabilities: Mapping[str, Any], tool: RegisteredTool, session_id: str, args: Mapping[str, Any]
) -> bool:
    """Return whether a capability that the tool requires allows this host to run the call again."""
    for name in tool.manifest.requires:
        capability = capabilities.get(name)
        if isinstance(capability, RepeatsCalls) and await capability.may_run_again(tool.id, session_id, args):
            return True
    return False
