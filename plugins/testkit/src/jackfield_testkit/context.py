"""A context for tests: real enough to run a handler, and it remembers what the handler did with it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from jackfield import Mode, ToolResponse
from jackfield.contract.context import Audio, Voice

from jackfield_testkit.json_values import json_faults


class Progress(NamedTuple):
    """One report of progress."""

    message: str
    fraction: float | None


class AuditLine(NamedTuple):
    """One line that a handler added to the audit record."""

    event: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Session:
    id: str
    user: str | None
    mode: Mode
    turn: int
    registry_version: str
    active: bool


class Sent(NamedTuple):
    """One message to the user's client."""

    event: str
    fields: Mapping[str, Any]


class _Messaging:
    def __init__(self, sent: list[Sent]) -> None:
        self._sent = sent

    async def send(self, event: str, **fields: Any) -> None:
        self._sent.append(Sent(event, fields))


class ToolTestContext:
    """The second argument of `execute`, for tests.

    `tools` serves `call_tool`: a function for each tool id that takes the arguments and returns `ok(...)` or
    `fail(...)`. Every other keyword is a capability: `ToolTestContext("voice", kb=fake)` gives `ctx.kb`, or
    what `fake.for_session(session)` returns where it has that method, as a host does.
    """

    __test__ = False  # pytest would take a class of this name for a test where it collects `*Test*`

    def __init__(
        self,
        mode: Mode = "text",
        *,
        user: str | None = "test-user",
        turn: int = 1,
        session_id: str = "test-session",
        registry_version: str = "1.0.00000000",
        active: bool = True,
        tools: Mapping[str, Callable[[dict[str, Any]], Any]] | None = None,
        **capabilities: Any,
    ) -> None:
        self.session = _Session(session_id, user, mode, turn, registry_version, active)
        self.voice = Voice(self.session)
        self.audio = Audio()
        self.sent: list[Sent] = []
        """What the handler told the client with `messaging.send`, in order."""
        self.messaging: Any = capabilities.pop("messaging", None) or _Messaging(self.sent)
        self.progressed: list[Progress] = []
        """What the handler reported with `progress`, in order."""
        self.audited: list[AuditLine] = []
        """What the handler recorded with `audit`, in order."""
        self.called: list[tuple[str, dict[str, Any]]] = []
        """The tools the handler called with `call_tool`, and with which arguments."""
        self.used: set[str] = set()
        """The capabilities the handler asked for and got."""
        self._tools = dict(tools or {})
        self._capabilities = capabilities

    async def progress(self, message: str, *, fraction: float | None = None) -> None:
        """Remember a report of progress; `fraction` is between 0 and 1."""
        if not message.strip():
            raise ValueError("progress takes a sentence for the user, and this one is empty")
        if fraction is not None and not 0 <= fraction <= 1:
            raise ValueError(f"fraction is between 0 and 1, not {fraction!r}")
        self.progressed.append(Progress(message, fraction))

    def audit(self, event: str, **fields: Any) -> None:
        """Remember a line of the audit record; its fields have to be JSON."""
        if faults := list(json_faults(fields)):
            raise TypeError(f"audit({event!r}) was given what is not JSON: {'; '.join(faults)}")
        self.audited.append(AuditLine(event, fields))

    async def call_tool(self, tool_id: str, arguments: Mapping[str, Any]) -> ToolResponse:
        """Answer with the function given for that tool under `tools`."""
        given = dict(arguments)
        self.called.append((tool_id, given))
        if tool_id not in self._tools:
            raise LookupError(
                f"this test context has no tool {tool_id!r}; "
                f"pass a function for it: ToolTestContext(tools={{{tool_id!r}: function}})"
            )
        answer = self._tools[tool_id](given)
        if inspect.isawaitable(answer):
            answer = await answer
        if not isinstance(answer, ToolResponse):
            returned = type(answer).__name__
            raise TypeError(f"the function for {tool_id!r} returned {returned}, not ok(...) or fail(...)")
        return answer

    def __getattr__(self, capability: str) -> Any:
        """A capability by its name."""
        # Copying asks for special names before __init__ has run.
        capabilities = {} if capability.startswith("_") else self._capabilities
        if capability not in capabilities:
            raise AttributeError(
                f"this test context has no capability {capability!r}; "
                f"pass it from context(): ToolTestContext(mode, {capability}=...)"
            )
        self.used.add(capability)
        lent = capabilities[capability]
        view = getattr(lent, "for_session", None)
        return lent if view is None else view(self.session)
