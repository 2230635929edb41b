"""A tool's own limit on how often it may be called."""

from __future__ import annotations

import math

from jackfield import ErrorType, ToolResponse, fail
from jackfield.governance import Call, Proceed
from jackfield.offers import Services
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session
from jackfield.settings import NoSettings

from jackfield_policies.subjects import key


class RateLimits:
    """Counts the calls of a user in the tool's window, over all hosts that share the store."""

    def __init__(self, settings: NoSettings, services: Services) -> None:  # noqa: ARG002
        self._store = services.store

    def concerns(self, tool: RegisteredTool, session: Session) -> bool:  # noqa: ARG002
        """Tools that state a limit."""
        return tool.manifest.rate_limit is not None

    async def apply(self, call: Call, proceed: Proceed) -> ToolResponse:
        """Let the call pass while the window has room."""
        limit = call.tool.manifest.rate_limit
        if limit is None or call.confirmed:
            # An approved call was counted when it asked.
            return await proceed(call)
        window = limit.window_ms / 1000
        counter = f"{key('rate', call.session.user, call.session.id)}/{call.tool.id}"
        count = await self._store.add(counter, 1, window=window)
        if count <= limit.calls:
            return await proceed(call)
        call.end("rate_limits", "refused")
        return fail(
            ErrorType.RATE_LIMIT,
            f"{call.tool.id} may be called {limit.calls} times in {window:g} seconds, and was.",
            suggestion="Tell the user that it has to wait.",
            details={"retryAfterSeconds": math.ceil(window)},
        )
