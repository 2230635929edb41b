"""What the host answers to whoever looks after it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from jackfield_host.wire.answers import Outgoing


class Conversation(Outgoing):
    """A conversation, going on or over."""

    session: str
    user: str | None
    mode: str
    state: str = Field(
        description="What it is doing, if it is held here; else `open`, `ended`, or `expired` after 24 hours."
    )
    here: bool = Field(description="Whether this process holds it.")
    heard: bool = Field(description="Whether a client is connected to it here.")
    began_at: float
    last_at: float = Field(description="When something was last said.")
    turns: int
    registry: str | None


class ConversationList(Outgoing):
    """Conversations, the latest first."""

    everybodys: bool = Field(description="Whether those of all users are in it, not only your own.")
    complete: bool = Field(description="Whether there are no older ones.")
    sessions: list[Conversation]


class TranscriptAnswer(Outgoing):
    """What was said and done in a conversation."""

    session: Conversation
    lines: list[dict[str, Any]] = Field(
        description="Messages and events in their order, each with its `type`."
    )


class AuditAnswer(Outgoing):
    """Lines of the audit, the latest first."""

    complete: bool = Field(description="Whether there are no older ones that fit.")
    lines: list[dict[str, Any]] = Field(description="As docs/observability.md describes them.")


class CallInDoubt(Outgoing):
    """A call whose host stopped while it ran: it may or may not have taken effect."""

    key: str = Field(description="Names the call for POST /calls/settle.")
    tool: str
    session: str
    user: str | None
    call_id: str | None
    arguments: str = Field(description="As JSON, cut after 4000 characters; written by a model or a client.")
    began_at: float = Field(description="When it began to run, in seconds since 1970.")


class CallsInDoubt(Outgoing):
    """The calls in doubt, the oldest first."""

    complete: bool = Field(description="Whether there are no more.")
    calls: list[CallInDoubt]


class SettledCall(Outgoing):
    """A call that was in doubt, with the outcome it has from now on."""

    key: str
    state: Literal["done", "never_run"]
    envelope: dict[str, Any] = Field(description="What everybody who asks about the call is answered with.")


class DownloadProgress(Outgoing):
    """Something that the host can download, and how far it is."""

    name: str = Field(description="Names it for POST /downloads/start.")
    label: str = Field(description="What it is.")
    hint: str = Field(description="The hint of the provider that it makes unnecessary.")
    state: Literal["available", "running", "failed", "complete"]
    size_bytes: int
    received_bytes: int
    error: str | None = Field(description="Why the last attempt failed, and what to do.")
    needs_restart: bool = Field(description="Whether it is used only after a restart of the host.")


class DownloadList(Outgoing):
    """What the host can download to get a better provider."""

    downloads: list[DownloadProgress]


class Totals(Outgoing):
    """What this process has counted since its start."""

    calls: float
    errors: float = Field(description="Calls that failed or were refused; not those that wait for approval.")
    refusals: float = Field(description="Calls that a policy refused, other than for a loop.")
    loops: float
    sessions: float
    turns: float
    tokens: float = Field(description="Tokens of the tools' answers, estimated.")


class Sample(Totals):
    """What the totals were at a moment."""

    at: float
    open: int = Field(description="Conversations that this process held.")


class ToolFigures(Outgoing):
    """What was counted about one tool; times are in milliseconds, over its last 1000 calls."""

    tool: str
    calls: int
    errors: dict[str, int] = Field(description="By the type of the failure.")
    late: int = Field(description="Calls that took longer than the tool's budget.")
    tokens: int
    budget_ms: int | None
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None


class DecisionCount(Outgoing):
    """How often a policy did something else than to let pass."""

    policy: str
    decision: str
    count: int


class Stats(Outgoing):
    """The figures of this process."""

    uptime: float
    open: int = Field(description="Conversations that this process holds.")
    totals: Totals
    tools: list[ToolFigures]
    decisions: list[DecisionCount]
    sample_seconds: float
    samples: list[Sample] = Field(description="The totals of the last half hour, the oldest first.")


class RegistryChange(Outgoing):
    """One difference between two registries."""

    subject: str | None = Field(description="The tool that is concerned, if it is one.")
    what: str
    bump: Literal["patch", "minor", "major"] | None


class RegistryDifference(Outgoing):
    """What changed from one registry to another."""

    from_: str = Field(alias="from")
    to: str
    waiting: bool = Field(
        description="Whether `to` is what a restart would bring, and `from` what is served."
    )
    changes: list[RegistryChange]
