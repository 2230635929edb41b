"""What a handler is given: the session to read, ways to be heard, and the capabilities its manifest names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from jackfield.contract.context import Audio, Voice
from jackfield.contract.tool import ToolResponse
from jackfield.protocol.codec import event_fields
from jackfield.protocol.messages import ToolProgress

if TYPE_CHECKING:
    from jackfield.governance import Call
    from jackfield.session.session import Session

RESERVED_EVENTS = frozenset(
    {
        "confirmation_required", "confirmation_settled", "form_closed", "form_request", "message",
        "notification", "session_status", "tool_complete", "tool_decisions", "tool_error", "tool_progress",
        "tool_start",
    }
)  # fmt: skip
"""What a client takes as said by the host, and no tool may say in its place."""

CallTool = Callable[["Call", str, Mapping[str, Any]], Awaitable[ToolResponse]]


class ReadOnlySession:
    """The session as a handler sees it: nothing in it can be changed from here."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def id(self) -> str:
        """The session's id."""
        return self._session.id

    @property
    def user(self) -> str | None:
        """Who is talking, when the host knows."""
        return self._session.user

    @property
    def mode(self) -> Any:
        """The mode the session was created in."""
        return self._session.mode

    @property
    def turn(self) -> int:
        """The number of the current turn."""
        return self._session.turn.number

    @property
    def registry_version(self) -> str:
        """The registry version the session is pinned to."""
        return self._session.registry_version

    @property
    def active(self) -> bool:
        """Whether the conversation goes on."""
        return self._session.active


class ClientMessaging:
    """A way to the user's client."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    async def send(self, event: str, **fields: Any) -> None:
        """Tell the client something that is not for the model."""
        if event in RESERVED_EVENTS:
            raise ValueError(f"{event!r} is told by the kernel alone; choose another name")
        if not self._session.connected:
            raise ConnectionError("no client is connected")
        self._session.publish(event, fields)


class HandlerContext:
    """The context of one call."""

    __slots__ = ("_call", "_call_tool", "_capabilities")

    def __init__(self, call: Call, capabilities: Mapping[str, Any], call_tool: CallTool) -> None:
        self._call = call
        self._capabilities = capabilities
        self._call_tool = call_tool

    @property
    def session(self) -> ReadOnlySession:
        """The session, to read."""
        return ReadOnlySession(self._call.session)

    @property
    def messaging(self) -> ClientMessaging:
        """A way to the user's client."""
        return ClientMessaging(self._call.session)

    @property
    def voice(self) -> Voice:
        """The session's voice, if it has one."""
        return Voice(self.session)

    @property
    def audio(self) -> Audio:
        """What is heard of this turn."""
        return Audio()

    async def progress(self, message: str, *, fraction: float | None = None) -> None:
        """Tell the user how far a long call has come."""
        call = self._call
        progress = ToolProgress(
            tool=call.tool.id, call_id=call.client_call_id, message=message, fraction=fraction
        )
        call.session.publish(*event_fields(progress))

    def audit(self, event: str, **fields: Any) -> None:
        """Add a line to the audit record of this call."""
        self._call.notes.append({"event": event, **fields})

    async def call_tool(self, tool_id: str, arguments: Mapping[str, Any]) -> ToolResponse:
        """Call another tool; the same policies hold as for a model's call."""
        return await self._call_tool(self._call, tool_id, arguments)

    def __getattr__(self, capability: str) -> Any:
        # Only what the manifest names: a tool cannot reach for more than its author declared.
        if capability in self._call.tool.manifest.requires:
            lent = self._capabilities[capability]
            # A view of its own for each session, so that a handler cannot ask in somebody else's name.
            view = getattr(lent, "for_session", None)
            return lent if view is None else view(self.session)
        raise AttributeError(f"{self._call.tool.id} does not name {capability!r} under `requires`")
