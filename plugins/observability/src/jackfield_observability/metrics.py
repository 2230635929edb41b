"""Metrics: plain counters on the call path; percentiles and exports are computed on request."""

from __future__ import annotations

import logging
import math
import re
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from jackfield.contract.tool import ErrorType, ToolResponse
from jackfield.governance import Call
from jackfield.protocol.messages import UnbackedClaim
from jackfield.registry.registry import RegisteredTool
from jackfield.session.session import Session
from jackfield.shadow import ShadowResult

from jackfield_observability.settings import MetricsSettings

if TYPE_CHECKING:
    from jackfield.experiments.experiments import Experiments
    from jackfield.runtime import Runtime
    from prometheus_client import CollectorRegistry

WINDOW = 1000
"""Percentiles cover this many of the latest values."""

CHARACTERS_PER_TOKEN = 4

MIN_SAMPLES = 20
"""The number of responses that percentiles need."""


class Percentiles(NamedTuple):
    """The 50th, 95th and 99th percentile."""

    p50: float
    p95: float
    p99: float


def percentiles(values: Iterable[float]) -> Percentiles | None:
    """Return percentiles with linear interpolation; None without values."""
    ordered = sorted(values)
    if not ordered:
        return None
    return Percentiles(*(_at(ordered, share) for share in (0.50, 0.95, 0.99)))


def _at(ordered: list[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    if below + 1 == len(ordered):
        return ordered[below]
    return ordered[below] + (ordered[below + 1] - ordered[below]) * (place - below)


class Series:
    """Sum and count of all values, and a window of the latest ones."""

    __slots__ = ("count", "latest", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self.latest: deque[float] = deque(maxlen=WINDOW)

    def add(self, value: float) -> None:
        """Add a value."""
        self.count += 1
        self.total += value
        self.latest.append(value)

    def percentiles(self) -> Percentiles | None:
        """Return percentiles of the latest values."""
        # The copy is atomic, so another thread may read during calls.
        return percentiles(self.latest.copy())


class ToolMetrics:
    """Counters and rolling windows of the calls to one implementation of a tool."""

    __slots__ = (
        "broken_returns", "budget", "calls", "characters", "durations", "errors", "labels", "late",
        "next_check", "seconds", "sizes", "warnings",
    )  # fmt: skip

    def __init__(self, budget_ms: int, labels: Mapping[str, str]) -> None:
        self.budget = budget_ms / 1000
        self.labels = labels
        """The tool, and its variant and experiment if it has them."""
        self.calls = 0
        self.late = 0
        self.broken_returns = 0
        self.seconds = 0.0
        self.characters = 0
        self.warnings = 0
        self.next_check = 0.0
        self.errors: Counter[str] = Counter()
        self.durations: deque[float] = deque(maxlen=WINDOW)
        self.sizes: deque[int] = deque(maxlen=WINDOW)

    @property
    def tokens(self) -> int:
        """The estimated tokens of all responses."""
        return self.characters // CHARACTERS_PER_TOKEN

    def duration_percentiles(self) -> Percentiles | None:
        """Return percentiles of the latest durations, in seconds."""
        return percentiles(self.durations.copy())

    def size_percentiles(self) -> Percentiles | None:
        """Return percentiles of the latest response sizes, in characters."""
        return percentiles(self.sizes.copy())


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""The content type of `prometheus()`."""

UNKNOWN = "(unknown)"
"""The name under which calls of unknown tools are counted."""

WARNING_SHARE = 0.8
MAX_SESSIONS = 10_000
MAX_DECISIONS = 500
REPEAT_WARNING_SECONDS = 3600.0

_CHECK_SECONDS = 1.0

_NUMBER = re.compile(r"\d+(?:\.\d+)?")

_log = logging.getLogger(__name__)


class _ContextUse:
    """The estimated size of an open session's context."""

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
        self.host = ""
        """The host's name; empty outside of a host."""
        self.tools: dict[str, ToolMetrics] = {}
        """The metrics of each implementation of a tool, separately for each experiment."""
        self.shadows: Counter[tuple[str, str, str, str]] = Counter()
        """Comparisons by experiment, tool, variant and outcome."""
        self.experiments: Experiments | None = None
        self.decisions: Counter[tuple[str, str]] = Counter()
        self.confirmed = 0
        self.unbacked_claims: Counter[tuple[str, str]] = Counter()
        """How often the assistant claimed something that it had not done, by tool and call state."""
        self.sessions: Counter[str] = Counter()
        self.turns: Counter[str] = Counter()
        self.prompt_tokens = Series()
        self.declaration_tokens = Series()
        self.context_warnings = 0
        self._open: dict[str, _ContextUse] = {}
        self._large = self.settings.response_limit_characters
        limit = self.settings.context_limit_tokens
        self._near_limit = limit * WARNING_SHARE * CHARACTERS_PER_TOKEN if limit else float("inf")
        self._registry: CollectorRegistry | None = None

    def started(self, runtime: Runtime) -> None:
        """Learn the host's name and its experiments."""
        self.host = runtime.hosts.name
        self.experiments = runtime.experiments

    def call_finished(self, call: Call, response: ToolResponse) -> None:
        """Count a call; runs on the call path."""
        if call.decisions:
            self._count_decisions(call.decisions)
            if call.declined:
                return  # It was counted when it requested confirmation; nothing has run since.
        session_id, now, size = call.session.id, call.finished_at, len(call.text)
        seconds = now - call.started_at
        tool = self.tools.get(call.tool.label) or self._add_tool(call.tool)
        tool.calls += 1
        tool.seconds += seconds
        tool.characters += size
        tool.late += seconds > tool.budget
        tool.durations.append(seconds)
        tool.sizes.append(size)
        if size > self._large and now >= tool.next_check:
            self._check_size(call.tool.id, tool, now)
        if response.failure is not None:
            tool.errors[response.failure.type] += 1
        if call.returns_violations:
            tool.broken_returns += 1
        if call.confirmed:
            self.confirmed += 1
        use = self._open.get(session_id)
        if use is None:
            if not call.session.active:
                return  # A write that finished after its session was closed.
            use = self._hold(session_id, 0)
        use.characters += size
        if use.characters >= self._near_limit and not use.warned:
            self._warn_of_context(session_id, use)

    def shadow_finished(self, result: ShadowResult) -> None:
        """Count a comparison."""
        assignment = result.assignment
        self.shadows[assignment.experiment, result.call.tool.id, assignment.arm, result.outcome] += 1

    def session_opened(self, session: Session, *, prompt_tokens: int, declaration_tokens: int) -> None:
        """Count a session and its initial context."""
        self.sessions[session.mode] += 1
        self.prompt_tokens.add(prompt_tokens)
        self.declaration_tokens.add(declaration_tokens)
        use = self._hold(session.id, (prompt_tokens + declaration_tokens) * CHARACTERS_PER_TOKEN)
        if use.characters >= self._near_limit:
            self._warn_of_context(session.id, use)

    def turn_began(self, session: Session) -> None:
        """Count a turn."""
        self.turns[session.mode] += 1

    def claim_unbacked(self, session: Session, claim: UnbackedClaim) -> None:  # noqa: ARG002
        """Count a claim of the assistant that no call backs."""
        self.unbacked_claims[claim.tool, claim.state] += 1

    def session_ended(self, session: Session) -> None:
        """Discard the context size of a session."""
        self._open.pop(session.id, None)

    async def close(self) -> None:
        """Do nothing: there is nothing to write."""

    @property
    def open_sessions(self) -> int:
        """The number of open sessions."""
        return len(self._open)

    @property
    def largest_context(self) -> int:
        """The estimated tokens in the largest context of an open session."""
        return max((use.tokens for use in tuple(self._open.values())), default=0)

    def failures(self, kind: ErrorType) -> int:
        """Return how many calls failed with this type."""
        return sum(tool.errors[kind] for tool in tuple(self.tools.values()))

    def decided(self, policy: str, decision: str) -> int:
        """Return how often a policy made this decision."""
        return self.decisions[policy, decision]

    def decision_kinds(self) -> dict[tuple[str, str], int]:
        """Return how often each policy made each decision; numbers in the wording are replaced."""
        kinds: Counter[tuple[str, str]] = Counter()
        for (policy, decision), count in self.decisions.copy().items():
            kinds[policy, _NUMBER.sub("N", decision)[:80]] += count
        return dict(sorted(kinds.items()))

    def snapshot(self) -> dict[str, Any]:
        """Return all metrics as JSON values."""
        from jackfield_observability.prometheus import as_json

        return as_json(self)

    def prometheus(self) -> str:
        """Return all metrics in Prometheus' text format."""
        from prometheus_client import generate_latest

        from jackfield_observability.prometheus import create_registry

        if self._registry is None:
            self._registry = create_registry(self)
        return generate_latest(self._registry).decode()

    def _add_tool(self, tool: RegisteredTool) -> ToolMetrics:
        # Unknown ids are counted together, because a model can invent any number of them.
        name = tool.label if tool.known else UNKNOWN
        figures = self.tools.get(name)
        if figures is None:
            labels = {"tool": tool.id if tool.known else UNKNOWN}
            # An absent label and an empty one are the same to Prometheus.
            labels |= {"variant": tool.variant} if tool.variant else {}
            labels |= {"experiment": tool.experiment} if tool.experiment else {}
            figures = self.tools[name] = ToolMetrics(tool.manifest.latency_budget_ms, labels)
        return figures

    def _hold(self, session_id: str, characters: int) -> _ContextUse:
        if len(self._open) >= MAX_SESSIONS:
            # Sessions whose end was not reported; the oldest is the most likely to be gone.
            del self._open[next(iter(self._open))]
        use = self._open[session_id] = _ContextUse(characters)
        return use

    def _count_decisions(self, decisions: dict[str, str]) -> None:
        """Count what the policies decided on a call."""
        for each in decisions.items():
            # A wording may contain numbers that the model chose, so the number of counters is limited.
            known = each in self.decisions or len(self.decisions) < MAX_DECISIONS
            self.decisions[each if known else (each[0], "other")] += 1

    def _check_size(self, tool_id: str, tool: ToolMetrics, now: float) -> None:
        if len(tool.sizes) < MIN_SAMPLES:
            return
        latest = tool.size_percentiles()
        if latest is None or latest.p95 <= self._large:
            tool.next_check = now + _CHECK_SECONDS
            return
        tool.next_check = now + REPEAT_WARNING_SECONDS
        tool.warnings += 1
        _log.warning(
            "tool %s: P95 of its last %d responses is %d characters; the limit is %d",
            tool_id, len(tool.sizes), latest.p95, self._large,
        )  # fmt: skip

    def _warn_of_context(self, session_id: str, use: _ContextUse) -> None:
        use.warned = True
        self.context_warnings += 1
        limit = self.settings.context_limit_tokens
        _log.warning("session %s: about %d of %d tokens of context are used", session_id, use.tokens, limit)
