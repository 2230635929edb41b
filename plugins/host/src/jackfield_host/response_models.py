"""The JSON bodies of HTTP responses, as the API documentation publishes them.

The handlers return plain dicts; tests check them against these models.
"""

from __future__ import annotations

from typing import Any, Literal

from jackfield import Mode
from jackfield.protocol.messages import OfferedTool
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class ResponseModel(BaseModel):
    """A part of a response; clients ignore members that they do not know."""

    model_config = ConfigDict(extra="allow", alias_generator=to_camel, populate_by_name=True)


class ErrorDetails(ResponseModel):
    """Why a request or a call failed."""

    code: str
    message: str = Field(description="A sentence for a person.")
    suggestion: str | None = None
    retry_after: float | None = Field(None, description="Seconds to wait before the next attempt.")


class ErrorResponse(ResponseModel):
    """The response to every request that failed."""

    error: ErrorDetails


class BrowserSessionResponse(ResponseModel):
    """What a browser needs for a WebRTC call to the provider."""

    client_secret: str = Field(alias="client_secret", description="The provider's key for this call only.")
    session_id: str = Field(alias="session_id")
    token: str = Field(
        description="Identifies the session: send it in the `Jackfield-Session` header, and keep it secret."
    )
    tools: list[OfferedTool]
    expires_at: float = Field(
        alias="expires_at", description="When the client secret expires, in seconds since 1970."
    )


class SdpAnswerResponse(ResponseModel):
    """The provider's SDP answer to a browser's offer."""

    sdp: str


class ChatResponse(ResponseModel):
    """A complete turn of a text session."""

    session: str
    token: str
    text: str = Field(description="The assistant's answer.")
    events: list[dict[str, Any]] = Field(
        description="The messages of the turn, as a WebSocket delivers them."
    )


class StreamedEvent(ResponseModel):
    """One server-sent event (comments are heartbeats)."""

    event: str = Field(description="The type of the message.")
    data: str = Field(
        description="The message, as a WebSocket delivers it.",
        json_schema_extra={"contentMediaType": "application/json"},
    )
    id: str | None = Field(None, description="For `Last-Event-ID`; only stored events have one.")


class ConfirmationCard(ResponseModel):
    """A call that the user is asked to approve."""

    confirmation: str
    tool: str
    preview: str
    args: dict[str, Any]
    expires_at: float
    token: str | None = Field(
        None, description="For POST /confirmations/{token}; only the user's client gets it."
    )


class ExecuteResponse(ResponseModel):
    """The outcome of a tool call."""

    success: bool
    output: str = Field(description="The data as text, or the reason why there is none.")
    duration: float = Field(description="Milliseconds from request to response.")
    envelope: dict[str, Any] = Field(description="The response as a model gets it.")
    call_id: str = Field(description="The id of the call, for GET /tasks/{call_id}.")
    decisions: dict[str, str] = Field(description="Each policy's decision, in the order in which they ran.")
    session: str
    token: str | None = Field(
        None,
        description="The token of the session that was created for this call; every repetition with the same "
        "key returns it again.",
    )
    error: ErrorDetails | None = Field(None, description="Only if the call failed.")
    confirmation: ConfirmationCard | None = Field(
        None, description="Only if the call is waiting for confirmation."
    )


CallStateName = Literal[
    "never_run", "waiting", "running", "done", "failed", "declined", "expired", "in_doubt", "unknown"
]
"""The state of a call, from its claim in the store."""


class DecisionResponse(ResponseModel):
    """The outcome of a call that waited for confirmation."""

    approved: bool = Field(
        description="True if the user approved it; false if the user declined it or did not decide in time."
    )
    state: CallStateName = Field(description="The state of the call, as in GET /tasks/{call_id}.")
    tool: str
    call_id: str | None
    envelope: dict[str, Any] | None = Field(description="The response of the call; null if it was declined.")
    error: ErrorDetails | None = Field(
        None, description="Only if a different decision had already been made."
    )


class TaskProgress(ResponseModel):
    """The progress that a tool has reported."""

    message: str
    fraction: float | None


class TaskResponse(ResponseModel):
    """A tool call, from its claim and the events of its session."""

    call_id: str
    tool: str
    state: CallStateName = Field(
        description="`waiting`: the call is waiting for the user's decision; `in_doubt`: the host stopped, "
        "and the call may or may not have taken effect; for `failed`, `declined`, `expired` and `in_doubt`, "
        "`error` gives the reason."
    )
    began_at: float | None = None
    ended_at: float | None = None
    progress: TaskProgress | None = None
    data: Any = Field(None, description="The result, truncated to 4000 characters.")
    error: ErrorDetails | None = None
    confirmation: ConfirmationCard | None = Field(
        None, description="Only if the call is waiting for confirmation."
    )


class HealthResponse(ResponseModel):
    """The health of the host: whether it accepts sessions."""

    status: Literal["healthy", "degraded", "unhealthy"]
    registry: bool
    store: bool
    provider: bool
    conversations: Literal["on", "off"] = Field(description="`off` if there is no model provider.")
    active_sessions: int = Field(alias="active_sessions")
    uptime: float = Field(description="Seconds.")


class LiveResponse(ResponseModel):
    """The process serves requests."""

    status: Literal["live"]
    uptime: float = Field(description="Seconds.")


class ReadyResponse(ResponseModel):
    """The readiness of the host: whether a load balancer should send new clients to it."""

    status: Literal["ready", "not_ready"]
    reasons: list[str] = Field(
        description="Why a load balancer should not send new clients; empty if it should."
    )


class HostEntry(ResponseModel):
    """What a host has reported; times are in seconds since 1970."""

    id: str = Field(description="The id of the process.")
    name: str
    address: str = Field(description="The address on which the host listens.")
    version: str
    registry: str
    started_at: float
    reported_at: float
    silent: bool = Field(
        description="True if the host no longer reports, so that its figures are out of date."
    )
    draining: bool
    sessions: int = Field(description="The host's live sessions.")
    calls_per_second: float | None = Field(description="Null if the host does not count its calls.")
    totals: dict[str, float] = Field(description="The host's counts since startup.")


class HostSums(ResponseModel):
    """The sums over the hosts that report."""

    hosts: int
    sessions: int
    calls_per_second: float | None
    totals: dict[str, float]


class HostList(ResponseModel):
    """The hosts that share the store."""

    host: str = Field(description="The name of the host that answers.")
    hosts: list[HostEntry]
    sums: HostSums


class VersionInfo(ResponseModel):
    """The versions of the host's software."""

    host: str
    kernel: str
    protocol: str


class SessionCounts(ResponseModel):
    """The number of live sessions, and the limits."""

    active: int = Field(description="The live sessions on this host.")
    on_all_hosts: int
    yours: int = Field(description="Your live sessions on all hosts.")
    max: int = Field(description="The limit of this host.")
    max_yours: int


class ClientLimits(ResponseModel):
    """The limits that a client has to observe."""

    message_bytes: int
    request_bytes: int
    requests_per_minute: float
    idle_seconds: float
    session_seconds: float


class ProviderSelection(ResponseModel):
    """Why the host uses its provider."""

    reason: str
    detected: bool = Field(description="False if the `provider` setting names the provider.")
    hints: list[str] = Field(description="How to get a better provider.")


class PythonEnvironment(ResponseModel):
    """How an operator reaches the host's Python environment in a terminal."""

    enter: list[str] = Field(
        description="The commands that open the host's folder and activate the environment."
    )
    install: str = Field(description="The command that installs a package in the environment.")


class StatusResponse(ResponseModel):
    """The status of the host."""

    user: str
    host: str = Field(description="The name of the host that answers.")
    hosts: int = Field(description="The number of reporting hosts that share the store.")
    provider: str
    provider_choice: ProviderSelection | None = Field(
        description="Why the host uses its provider; only for operators, but for every user on a host "
        "without tokens."
    )
    environment: PythonEnvironment | None = Field(
        description="Where to install tools; for the same users as `providerChoice`."
    )
    conversations: Literal["on", "off"] = Field(
        description="`off` if there is no model provider; `providerChoice.hints` say how to turn "
        "conversations on."
    )
    modes: list[Mode]
    browser_calls: bool = Field(description="True if GET /session can prepare WebRTC calls.")
    registry: str
    versions: VersionInfo
    uptime: float
    draining: bool
    development: bool = Field(description="True if `jackfield dev` reloads the tools.")
    sessions: SessionCounts
    limits: ClientLimits
    tools: int
    withheld: dict[str, str] = Field(description="Tools that are not offered, each with the reason.")


class BuildFinding(ResponseModel):
    """A finding of the build."""

    code: str
    severity: Literal["error", "warning", "note"]
    title: str
    message: str
    distribution: str | None
    version: str | None
    subject: str | None = Field(description="The tool or plugin.")
    file: str | None
    path: str | None = Field(description="The place in the file: a JSON pointer or a line.")
    location: str | None = Field(description="The path of the file on the host.")
    hint: str


class DevelopmentResponse(ResponseModel):
    """The outcome of the last build of `jackfield dev`."""

    number: int = Field(description="Increases with every build; to wait for the next, pass it as `after`.")
    at: float = Field(description="The time of the build, in seconds since 1970.")
    ok: bool = Field(description="False if the last good registry is served instead.")
    message: str
    findings: list[BuildFinding]
    tools: list[str] = Field(description="The tools that were added, changed or removed.")


class ToolTokens(ResponseModel):
    """An estimate of a tool's size in tokens, at four characters each."""

    declaration: int = Field(
        description="The tool's declaration for the provider, which is part of every request."
    )
    summary: int = Field(
        description="The tool's line in the prompt, if the prompt does not contain its guide."
    )
    guide: int
    guide_in_prompt: list[Mode] = Field(description="The modes whose prompt contains the guide.")


class PromptTokens(ResponseModel):
    """The size of the prompt of a mode, in tokens."""

    mode: Mode
    tokens: int = Field(description="Instructions and declarations together.")
    budget: int = Field(description="The limit that `prompt_tokens` sets.")
    declarations: int
    tools: int = Field(description="The number of tools in this mode.")
    guides: int = Field(description="The number of guides in the prompt.")


class ToolSummary(ResponseModel):
    """The main facts about a tool."""

    tool_id: str
    version: str
    summary: str
    category: str
    side_effects: str
    requires_confirmation: bool | Literal["policy"]
    allowed_modes: list[Mode]
    variant: str | None = Field(None, description="The variant, if it is not the tool's own implementation.")
    tokens: ToolTokens | None = Field(description="Null if the provider supports none of the tool's modes.")


class ToolList(ResponseModel):
    """The tools that are offered."""

    registry: str
    tools: list[ToolSummary]
    prompts: list[PromptTokens]


class ToolDetails(ToolSummary):
    """Everything about a tool that a client can use."""

    description: str
    idempotent: bool
    latency_budget_ms: int
    timeout_ms: int
    requires: list[str] = Field(description="The capabilities that the tool needs.")
    parameters: dict[str, Any] = Field(description="The JSON Schema of the arguments.")
    returns: dict[str, Any] | None = Field(
        description="The JSON Schema of the data, if the tool declares one."
    )
    guide: str = Field(description="The instructions for models that use the tool, in Markdown.")
    provider_schemas: dict[str, Any] = Field(description="The tool's declaration for each kind of provider.")
    distribution: str
    distribution_version: str
    family: str | None = Field(None, description="The tool's family, if any.")


class RegistryTool(ResponseModel):
    """One tool of the registry, and its distribution."""

    tool_id: str
    version: str
    distribution: str
    distribution_version: str
    content_hash: str
    family: str | None = Field(None, description="The tool's family, if any.")
    variant: str | None = Field(None, description="The variant, if it is not the tool's own implementation.")


class RegistryPlugin(ResponseModel):
    """One plugin of the registry, and what it offers."""

    name: str
    distribution: str
    distribution_version: str
    offers: dict[str, list[str]] = Field(description="The names of the plugin's offers, by kind.")


class RegistryPolicy(ResponseModel):
    """One policy of the chain that every call passes through."""

    name: str
    stage: Literal["ADMIT", "SHAPE"] = Field(description="Before or after the arguments are validated.")
    distribution: str


class RegistryResponse(ResponseModel):
    """The registry that sessions are pinned to."""

    version: str
    content_hash: str
    deployment: str
    policies: list[str] = Field(description="The policies, in the order in which they run.")
    chain: list[RegistryPolicy] = Field(description="The same policies, with their stages and distributions.")
    plugins: list[RegistryPlugin]
    kernel: str = Field(description="The version of the kernel that built the registry.")
    git_commit: str | None
    built_at: str
    tools: list[RegistryTool]
    distributions: list[dict[str, Any]] = Field(
        description="The distributions of tools and plugins, with the hashes of their modules and their "
        "dependencies, as docs/registry.md describes them."
    )
    withheld: dict[str, str]


class SessionSummary(ResponseModel):
    """A session in the store."""

    session: str
    user: str | None
    mode: str
    state: str = Field(
        description="The state of a session that is live on this host; otherwise `open`, `ended`, or "
        "`expired` after 24 hours."
    )
    live: bool = Field(description="True if the session is live on a host.")
    connected: bool = Field(description="True if a client is connected to the session.")
    host: str | None = Field(description="The name of the host on which the session is live.")
    began_at: float
    last_at: float = Field(description="The time of the last message.")
    turns: int
    registry: str | None
    title: str | None = Field(
        description="The title that the user gave the session, or else the beginning of the first message; "
        "null if nothing was said."
    )


class SessionToken(ResponseModel):
    """The token of a session."""

    session: str
    mode: str
    token: str = Field(description="The token that resumes the session; keep it secret.")


class DeletedSession(ResponseModel):
    """The session that was deleted."""

    session: str


class SessionList(ResponseModel):
    """Sessions, the latest first."""

    all_users: bool = Field(description="True if the list has the sessions of all users, not only your own.")
    complete: bool = Field(description="True if there are no older sessions.")
    sessions: list[SessionSummary]


class TranscriptResponse(ResponseModel):
    """The transcript of a session."""

    session: SessionSummary
    lines: list[dict[str, Any]] = Field(description="Messages and events in order, each with its `type`.")


class AuditResponse(ResponseModel):
    """Lines of the audit log, the latest first."""

    host: str = Field(description="The name of the host that answers; it returns the lines of its own file.")
    complete: bool = Field(description="True if there are no older matching lines.")
    lines: list[dict[str, Any]] = Field(description="The lines, as docs/observability.md describes them.")


class CallInDoubt(ResponseModel):
    """A call whose host stopped while it ran: it may or may not have taken effect."""

    key: str = Field(description="The key of the call, for POST /calls/settle.")
    tool: str
    session: str
    user: str | None
    call_id: str | None
    arguments: str = Field(
        description="The arguments as JSON, truncated to 4000 characters; a model or a client wrote them."
    )
    began_at: float = Field(description="When the call started to run, in seconds since 1970.")


class CallsInDoubt(ResponseModel):
    """The calls in doubt, the oldest first."""

    complete: bool = Field(description="True if the list is complete.")
    calls: list[CallInDoubt]


class SettledCall(ResponseModel):
    """A call that was in doubt, with the outcome that is now recorded for it."""

    key: str
    state: Literal["done", "never_run"]
    envelope: dict[str, Any] = Field(description="The response that the call returns from now on.")


class DownloadProgress(ResponseModel):
    """A download that the host offers, and its progress."""

    name: str = Field(description="The name for POST /downloads/start.")
    label: str = Field(description="What is downloaded.")
    hint: str = Field(description="The provider's hint that the download makes unnecessary.")
    state: Literal["available", "running", "failed", "complete"]
    size_bytes: int
    received_bytes: int
    error: str | None = Field(description="Why the last attempt failed, and how to fix it.")
    needs_restart: bool = Field(description="True if the host uses the download only after a restart.")


class ProviderDownloadsResponse(ResponseModel):
    """The downloads that give the host a better provider."""

    downloads: list[DownloadProgress]


class MetricTotals(ResponseModel):
    """Counters of this process since its start."""

    calls: float
    errors: float = Field(
        description="Calls that failed or were rejected, excluding those that await approval."
    )
    refusals: float = Field(description="Calls that a policy rejected, excluding loops.")
    loops: float
    sessions: float
    turns: float
    tokens: float = Field(description="An estimate of the tokens in the tools' responses.")


class MetricsSample(MetricTotals):
    """The totals at one time."""

    at: float
    open: int = Field(description="Live sessions in this process.")


class ToolStatistics(ResponseModel):
    """The metrics of one tool; latencies are in milliseconds, over its last 1000 calls."""

    tool: str
    variant: str | None = Field(None, description="The variant; its calls are counted separately.")
    experiment: str | None = Field(
        None, description="The experiment; calls of sessions that take part in it are counted separately."
    )
    calls: int
    errors: dict[str, int] = Field(description="Failed calls, by error type.")
    late: int = Field(description="Calls that exceeded the tool's latency budget.")
    tokens: int
    budget_ms: int | None
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None


class DecisionCount(ResponseModel):
    """How often a policy intervened in a call."""

    policy: str
    decision: str
    count: int


class StatisticsResponse(ResponseModel):
    """The statistics of this process."""

    host: str = Field(description="The name of the host that answers.")
    uptime: float
    open: int = Field(description="Live sessions in this process.")
    totals: MetricTotals
    tools: list[ToolStatistics]
    decisions: list[DecisionCount]
    sample_seconds: float
    samples: list[MetricsSample] = Field(description="The totals of the last half hour, the oldest first.")


class RegistryChange(ResponseModel):
    """One difference between two registries."""

    subject: str | None = Field(description="The tool that changed; null if the difference is not in a tool.")
    what: str
    bump: Literal["patch", "minor", "major"] | None


class RegistryDiff(ResponseModel):
    """The changes from one registry to another."""

    from_: str | None = Field(alias="from", description="Null if there is no other registry to compare with.")
    to: str
    waiting: bool = Field(description="True if `from` is being served and `to` takes effect after a restart.")
    changes: list[RegistryChange]
