"""Metrics: plain numbers on the path of a call, everything else when somebody asks for them."""

from __future__ import annotations

import logging
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from jackfield.contract.errors import ErrorType
from jackfield.contract.response import ToolResponse
from jackfield.governance import Call
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session

from jackfield_observability.settings import MetricsSettings
from jackfield_observability.windows import CHARACTERS_PER_TOKEN, ENOUGH, Series, ToolFigures

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""What `prometheus()` is, as a response's content type."""

UNKNOWN = "(unknown)"
"""The tool under which calls of tools that do not exist are counted."""

NEAR_THE_LIMIT = 0.8
MAX_SESSIONS = 10_000
MAX_DECISIONS = 500
WARN_AGAIN_SECONDS = 3600.0

_LOOK_AGAIN_SECONDS = 1.0

_NUMBER = re.compile(r"\d+(?:\.\d+)?")

_log = logging.getLogger(__name__)


class _ContextUse:
    """How much of its context an open session has filled, as far as can be seen from here."""

    __slots__ = ("characters", "warned")

    def __init__(self, characters: int = 0) -> None:
        self.characters = characters
        self.warned = False

    @property
    def tokens(self) -> int:
        return self.characters // CHARACTERS_PER_TOKEN


class Metrics:
    """Counts calls, sessions and turns of this process since its start."""

    def __init__(self, settings: MetricsSettings | None = None) -> None:
        self.settings = settings or MetricsSettings()
        self.tools: dict[str, ToolFigures] = {}
        self.decisions: Counter[tuple[str, str]] = Counter()
        self.confirmed = 0
        self.sessions: Counter[str] = Counter()
        self.turns: Counter[str] = Counter()
        self.prompt_tokens = Series()
        self.declaration_tokens = Series()
        self.context_warnings = 0
        self._open: dict[str, _ContextUse] = {}
        self._large = self.settings.response_limit_characters
        limit = self.settings.context_limit_tokens
        self._near_limit = limit * NEAR_THE_LIMIT * CHARACTERS_PER_TOKEN if limit else float("inf")
        self._registry: CollectorRegistry | None = None

    def call_finished(self, call: Call, response: ToolResponse) -> None:
        """Count a call; on the path of every call."""
        if call.decisions:
            self._count_decisions(call.decisions)
            if call.declined:
                return  # It was counted as a call when it began to wait; nothing ran since.
        tool_id, session_id, now, size = call.tool.id, call.session.id, call.ended, len(call.text)
        tool = self.tools.get(tool_id) or self._meet(call.tool)
        tool.add(now - call.began, size)
        if size > self._large and now >= tool.next_look:
            self._look_at_size(tool_id, tool, now)
        if response.failure is not None:
            tool.errors[response.failure.type] += 1
        if call.returns_violations:
            tool.broken_returns += 1
        if call.confirmed:
            self.confirmed += 1
        use = self._open.get(session_id)
        if use is None:
            if not call.session.active:
                return  # A write that outlived its session; that is not open any more.
            use = self._hold(session_id, 0)
        use.characters += size
        if use.characters >= self._near_limit and not use.warned:
            self._warn_of_context(session_id, use)

    def session_opened(self, session: Session, *, prompt_tokens: int, declaration_tokens: int) -> None:
        """Count a session and what it begins with."""
        self.sessions[session.mode] += 1
        self.prompt_tokens.add(prompt_tokens)
        self.declaration_tokens.add(declaration_tokens)
        use = self._hold(session.id, (prompt_tokens + declaration_tokens) * CHARACTERS_PER_TOKEN)
        if use.characters >= self._near_limit:
            self._warn_of_context(session.id, use)

    def turn_began(self, session: Session) -> None:
        """Count a turn."""
        self.turns[session.mode] += 1

    def session_ended(self, session: Session) -> None:
        """Forget how full a session's context was."""
        self._open.pop(session.id, None)

    async def close(self) -> None:
        """Nothing: there is nothing to write."""

    @property
    def open_sessions(self) -> int:
        """How many sessions go on."""
        return len(self._open)

    @property
    def largest_context(self) -> int:
        """The tokens in the fullest context of an open session, estimated."""
        return max((use.tokens for use in tuple(self._open.values())), default=0)

    def failures(self, kind: ErrorType) -> int:
        """How many calls were answered with this type of failure."""
        return sum(tool.errors[kind] for tool in tuple(self.tools.values()))

    def decided(self, policy: str, decision: str) -> int:
        """How often a policy decided so."""
        return self.decisions[policy, decision]

    def decision_kinds(self) -> dict[tuple[str, str], int]:
        """How often each policy decided what, numbers in the wording put aside."""
        kinds: Counter[tuple[str, str]] = Counter()
        for (policy, decision), count in self.decisions.copy().items():
            kinds[policy, _NUMBER.sub("N", decision)[:80]] += count
        return dict(sorted(kinds.items()))

    def snapshot(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        from jackfield_observability.exposition import as_json

        return as_json(self)

    def prometheus(self) -> str:
        """Everything in Prometheus' text format."""
        from prometheus_client import generate_latest

        from jackfield_observability.exposition import registry_of

        if self._registry is None:
            self._registry = registry_of(self)
        return generate_latest(self._registry).decode()

    def _meet(self, tool: RegisteredTool) -> ToolFigures:
        # Ids that a model made up are counted together: they have no end.
        name = tool.id if tool.known else UNKNOWN
        figures = self.tools.get(name)
        if figures is None:
            figures = self.tools[name] = ToolFigures(tool.manifest.latency_budget_ms)
        return figures

    def _hold(self, session_id: str, characters: int) -> _ContextUse:
        if len(self._open) >= MAX_SESSIONS:
            # Nobody said that they ended; the one that was opened first is the likeliest to be gone.
            del self._open[next(iter(self._open))]
        use = self._open[session_id] = _ContextUse(characters)
        return use

    def _count_decisions(self, decisions: dict[str, str]) -> None:
        for each in decisions.items():
            # Wordings may hold numbers, and a model chooses those: what is counted apart has to have an end.
            known = each in self.decisions or len(self.decisions) < MAX_DECISIONS
            self.decisions[each if known else (each[0], "other")] += 1

    def _look_at_size(self, tool_id: str, tool: ToolFigures, now: float) -> None:
        if len(tool.sizes) < ENOUGH:
            return
        latest = tool.size_percentiles()
        if latest is None or latest.p95 <= self._large:
            tool.next_look = now + _LOOK_AGAIN_SECONDS
            return
        tool.next_look = now + WARN_AGAIN_SECONDS
        tool.warnings += 1
        _log.warning(
            "tool %s: P95 of its last %d responses is %d characters, and %d are healthy for a context",
            tool_id, len(tool.sizes), latest.p95, self._large,
        )  # fmt: skip

    def _warn_of_context(self, session_id: str, use: _ContextUse) -> None:
        use.warned = True
        self.context_warnings += 1
        limit = self.settings.context_limit_tokens
        _log.warning("session %s: about %d of %d tokens of context are used", session_id, use.tokens, limit)
