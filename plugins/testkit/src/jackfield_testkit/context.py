"""A handler context for tests, which records what the handler does with it, and a matching session."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from jackfield import Mode, Partial, ToolResponse
from jackfield.contract.context import (
    UNANSWERED,
    AudioControl,
    ModelAnswer,
    ModelRequest,
    UserAnswer,
    VoiceControl,
)

from jackfield_testkit.json_values import json_faults


class ProgressReport(NamedTuple):
    """One progress report."""

    message: str
    fraction: float | None


class AuditLine(NamedTuple):
    """One line that a handler wrote to the audit log."""

    event: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SessionStub:
    """A session as handlers and capabilities see it."""

    user: str | None
    id: str = "test-session"
    mode: Mode = "text"
    turn: int = 1
    registry_version: str = "1.0.00000000"
    active: bool = True


class SentMessage(NamedTuple):
    """One message to the user's client."""

    event: str
    fields: Mapping[str, Any]


class _Messaging:
    def __init__(self, sent: list[SentMessage]) -> None:
        self._sent = sent

    async def send(self, event: str, **fields: Any) -> None:
        self._sent.append(SentMessage(event, fields))


class ToolTestContext:
    """The second argument of `execute`, for tests.

    `tools` maps a tool id to the function that answers `call_tool`: it takes the arguments and returns
    `ok(...)` or `fail(...)`. `answers` are the user's answers to `ask_user`, and `texts` the model's
    answers to `ask_model`. Every other keyword is a capability: `ToolTestContext("voice", kb=fake)` makes it
    available as `ctx.kb`. If it has a method `for_session`, `ctx.kb` is its result, as in a host.
    """

    __test__ = False  # keeps pytest from collecting the class where it collects `*Test*`

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
        answers: Iterable[UserAnswer] = (),
        texts: Iterable[str] = (),
        **capabilities: Any,
    ) -> None:
        self.session = SessionStub(user, session_id, mode, turn, registry_version, active)
        self.voice = VoiceControl(self.session)
        self.audio = AudioControl()
        self.sent: list[SentMessage] = []
        """The messages that the handler sent with `messaging.send`."""
        self.messaging: Any = capabilities.pop("messaging", None) or _Messaging(self.sent)
        self.progressed: list[ProgressReport] = []
        """The reports that the handler made with `progress`."""
        self.shown: str | list[Any] = ""
        """The partial results that the handler yielded, joined to one text or one list of items."""
        self.audited: list[AuditLine] = []
        """The lines that the handler wrote with `audit`."""
        self.called: list[tuple[str, dict[str, Any]]] = []
        """The tools that the handler called with `call_tool`, with their arguments."""
        self.asked: list[tuple[str, dict[str, Any]]] = []
        """The questions that the handler asked with `ask_user`, with their schemas."""
        self._answers = list(answers)
        self.requested: list[ModelRequest] = []
        """The requests that the handler made with `ask_model`."""
        self._texts = list(texts)
        self.used: set[str] = set()
        """The capabilities that the handler used."""
        self._tools = dict(tools or {})
        self._capabilities = capabilities

    async def progress(self, message: str, *, fraction: float | None = None) -> None:
        """Record a progress report; `fraction` is between 0 and 1."""
        if not message.strip():
            raise ValueError("progress: the message is empty; pass a sentence for the user")
        if fraction is not None and not 0 <= fraction <= 1:
            raise ValueError(f"progress: fraction has to be between 0 and 1, not {fraction!r}")
        self.progressed.append(ProgressReport(message, fraction))

    def report_partial(self, result: Partial, number: int, *, truncated: bool) -> bool:  # noqa: ARG002
        """Record a partial result; the kernel calls this for what a streaming handler yields."""
        if isinstance(self.shown, str) and isinstance(result.data, str):
            self.shown += result.data
        else:
            before = self.shown if isinstance(self.shown, list) else [self.shown] if self.shown else []
            self.shown = [*before, *(result.data if isinstance(result.data, list) else [result.data])]
        return True

    async def ask_user(
        self,
        message: str,
        parameters: Mapping[str, Any],
        *,
        asked_by: str,
        seconds: float,
    ) -> UserAnswer:
        """Return the next of `answers`; after the last one, the user does not answer."""
        if not asked_by.strip() or seconds <= 0:
            raise ValueError("ask_user: pass asked_by, and a positive number of seconds")
        self.asked.append((message, dict(parameters)))
        return self._answers.pop(0) if self._answers else UNANSWERED

    async def ask_model(self, request: ModelRequest) -> ModelAnswer | None:
        """Return the next of `texts`; after the last one, no model answers."""
        if not request.messages or request.messages[-1][0] != "user" or request.seconds <= 0:
            raise ValueError("ask_model: end with the user's message, and pass a positive number of seconds")
        self.requested.append(request)
        return ModelAnswer(self._texts.pop(0), truncated=False) if self._texts else None

    def audit(self, event: str, **fields: Any) -> None:
        """Record an audit line; its fields have to be JSON."""
        if faults := list(json_faults(fields)):
            raise TypeError(f"audit({event!r}): the fields are not JSON: {'; '.join(faults)}")
        self.audited.append(AuditLine(event, fields))

    async def call_tool(self, tool_id: str, arguments: Mapping[str, Any]) -> ToolResponse:
        """Return the result of the function for that tool in `tools`."""
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
        """Return a capability by its name."""
        # Copying looks up special names before __init__ has run.
        capabilities = {} if capability.startswith("_") else self._capabilities
        if capability not in capabilities:
            raise AttributeError(
                f"this test context has no capability {capability!r}; "
                f"pass it from context(): ToolTestContext(mode, {capability}=...)"
            )
        self.used.add(capability)
        instance = capabilities[capability]
        view = getattr(instance, "for_session", None)
        return instance if view is None else view(self.session)
