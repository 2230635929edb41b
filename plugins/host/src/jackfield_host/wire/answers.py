"""What the host answers over HTTP, as it is published; members that are not described may be added."""

from __future__ import annotations

from typing import Any, Literal

from jackfield import Mode
from jackfield.protocol.messages import OfferedTool
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class Outgoing(BaseModel):
    """A part of what the host answers; clients ignore members that they do not know."""

    model_config = ConfigDict(extra="allow", alias_generator=to_camel, populate_by_name=True)


class Fault(Outgoing):
    """What went wrong."""

    code: str
    message: str = Field(description="A sentence for a person.")
    suggestion: str | None = None
    retry_after: float | None = Field(None, description="Seconds after which it may be tried again.")


class Failed(Outgoing):
    """The answer to every request that failed."""

    error: Fault


class BrowserSession(Outgoing):
    """What a browser needs for a call of its own."""

    client_secret: str = Field(alias="client_secret", description="The provider's key for this one call.")
    session_id: str = Field(alias="session_id")
    token: str = Field(description="Names the session in the header `Jackfield-Session`; keep it secret.")
    tools: list[OfferedTool]
    expires_at: float = Field(
        alias="expires_at", description="When the client secret ends, in seconds since 1970."
    )


class BrowserAnswer(Outgoing):
    """The provider's answer to a browser's offer."""

    sdp: str


class ChatAnswer(Outgoing):
    """A turn of a conversation, whole."""

    session: str
    token: str
    text: str = Field(description="What the assistant said.")
    events: list[dict[str, Any]] = Field(description="The messages of the turn as a WebSocket brings them.")


class StreamedEvent(Outgoing):
    """One event of a stream (comments are heartbeats)."""

    event: str = Field(description="The type of the message.")
    data: str = Field(
        description="The message, as a WebSocket brings it.",
        json_schema_extra={"contentMediaType": "application/json"},
    )
    id: str | None = Field(None, description="For `Last-Event-ID`; only of what is kept.")


class Card(Outgoing):
    """What the user is asked to approve."""

    confirmation: str
    tool: str
    preview: str
    args: dict[str, Any]
    expires_at: float
    token: str | None = Field(
        None, description="For POST /confirmations/{token}; for the user's client alone."
    )


class Result(Outgoing):
    """What became of a call of a tool."""

    success: bool
    output: str = Field(description="The data as text, or why there is none.")
    duration: float = Field(description="Milliseconds from arrival to answer.")
    envelope: dict[str, Any] = Field(description="The answer as a model gets it.")
    call_id: str = Field(description="Names the call in GET /tasks/{call_id}.")
    decisions: dict[str, str] = Field(
        description="What each policy decided, in the order in which it was asked."
    )
    session: str
    token: str | None = Field(
        None,
        description="Names the session that was made for this call; told with every delivery of its key.",
    )
    error: Fault | None = Field(None, description="Only of a call that failed.")
    confirmation: Card | None = Field(None, description="Only of a call that waits for its user's decision.")


State = Literal[
    "never_run", "waiting", "running", "done", "failed", "declined", "expired", "in_doubt", "unknown"
]
"""What became of a call, as its claim says."""


class Decided(Outgoing):
    """What became of a call that waited for its user's decision."""

    approved: bool = Field(description="Whether the user approved it; false too if nobody decided in time.")
    state: State = Field(description="As in GET /tasks/{call_id}.")
    tool: str
    call_id: str | None
    envelope: dict[str, Any] | None = Field(description="The answer of the call; null when it was declined.")
    error: Fault | None = Field(None, description="Only where something else was decided before.")


class Progress(Outgoing):
    """How far a tool said it has come."""

    message: str
    fraction: float | None


class Task(Outgoing):
    """A call of a tool, from its claim and the events of its session."""

    call_id: str
    tool: str
    state: State = Field(
        description="`waiting` is for the user's decision; `in_doubt`: its host stopped, and it may or may "
        "not have taken effect; `failed`, `declined`, `expired` and `in_doubt` say why under `error`."
    )
    began_at: float | None = None
    ended_at: float | None = None
    progress: Progress | None = None
    data: Any = Field(None, description="The result, cut by kind to 4000 characters.")
    error: Fault | None = None
    confirmation: Card | None = Field(None, description="Only of a call that waits for its user's decision.")


class Health(Outgoing):
    """Whether the host can take sessions."""

    status: Literal["healthy", "degraded", "unhealthy"]
    registry: bool
    store: bool
    provider: bool
    active_sessions: int = Field(alias="active_sessions")
    uptime: float = Field(description="Seconds.")


class Versions(Outgoing):
    """Which software answers."""

    host: str
    kernel: str
    protocol: str


class Sessions(Outgoing):
    """How many conversations this process holds."""

    active: int
    yours: int
    most: int
    most_yours: int


class Limits(Outgoing):
    """What a client has to keep to."""

    message_bytes: int
    request_bytes: int
    requests_per_minute: float
    idle_seconds: float
    session_seconds: float


class ProviderChoice(Outgoing):
    """Why the host uses its provider."""

    reason: str
    detected: bool = Field(description="False where the setting `provider` names it.")
    hints: list[str] = Field(description="What to do to get a better provider.")


class Status(Outgoing):
    """How the host stands."""

    user: str
    provider: str
    provider_choice: ProviderChoice | None = Field(
        description="Only for operators; without tokens, for everybody."
    )
    modes: list[Mode]
    browser_calls: bool = Field(description="Whether GET /session prepares calls of a browser.")
    registry: str
    versions: Versions
    uptime: float
    draining: bool
    sessions: Sessions
    limits: Limits
    tools: int
    withheld: dict[str, str] = Field(description="Tools that are not offered, each with the reason.")


class ToolTokens(Outgoing):
    """About how many tokens a tool takes, at four characters each."""

    declaration: int = Field(description="How it is declared to the provider; part of every request.")
    summary: int = Field(description="Its line in the prompt, where its guide is not in it.")
    guide: int
    guide_in_prompt: list[Mode] = Field(description="The modes whose sessions begin with the guide.")


class PromptTokens(Outgoing):
    """What the sessions of a mode begin with, in tokens."""

    mode: Mode
    tokens: int = Field(description="Instructions and declarations together.")
    budget: int = Field(description="As many as `prompt_tokens` allows.")
    declarations: int
    tools: int = Field(description="How many tools there are in this mode.")
    guides: int = Field(description="How many of their guides are in the prompt.")


class ToolSummary(Outgoing):
    """What a tool is, in short."""

    tool_id: str
    version: str
    summary: str
    category: str
    side_effects: str
    requires_confirmation: bool | Literal["policy"]
    allowed_modes: list[Mode]
    tokens: ToolTokens | None = Field(description="Null where the provider carries none of its modes.")


class ToolList(Outgoing):
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
    requires: list[str] = Field(description="Capabilities that it needs.")
    parameters: dict[str, Any] = Field(description="The JSON Schema of its arguments.")
    returns: dict[str, Any] | None = Field(description="The JSON Schema of its data, if it promises one.")
    guide: str = Field(description="How a model is told to use it, in Markdown.")
    provider_schemas: dict[str, Any] = Field(description="How it is declared to each kind of provider.")
    distribution: str
    distribution_version: str


class FrozenPart(Outgoing):
    """One tool of the registry, and where it comes from."""

    tool_id: str
    version: str
    distribution: str
    distribution_version: str
    content_hash: str


class FrozenPlugin(Outgoing):
    """One plugin of the registry, and what it offers."""

    name: str
    distribution: str
    distribution_version: str
    offers: dict[str, list[str]] = Field(description="Names of what it offers, by kind.")


class ChainLink(Outgoing):
    """One policy of the chain that every call goes through."""

    name: str
    stage: Literal["ADMIT", "SHAPE"] = Field(description="Before or after the arguments are validated.")
    distribution: str


class RegistryAnswer(Outgoing):
    """The registry that sessions are pinned to."""

    version: str
    content_hash: str
    deployment: str
    policies: list[str] = Field(description="In the order in which a call meets them.")
    chain: list[ChainLink] = Field(
        description="The same policies, with their stages and where they come from."
    )
    plugins: list[FrozenPlugin]
    kernel: str = Field(description="The version of the kernel that froze it.")
    git_commit: str | None
    built_at: str
    tools: list[FrozenPart]
    distributions: list[dict[str, Any]] = Field(
        description="The distributions of tools and plugins, with the hashes of their modules and what they "
        "depend on, as docs/registry.md describes them."
    )
    withheld: dict[str, str]
