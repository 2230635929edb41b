"""The settings of the capability `mcp`: the servers, and the operator's decisions about their tools."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

from jackfield.settings import (
    Bytes,
    EnvironmentVariable,
    Format,
    Ge,
    Help,
    HttpUrl,
    Le,
    MinLen,
    NonEmpty,
    Seconds,
    SettingsError,
    Unit,
)
from jackfield_images.files import is_object_store

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")

MAX_SERVER_NAME = 24
"""The maximum length of a server's name, which leaves 38 characters for the names of its tools."""


def _name(value: str) -> str:
    if not _NAME.fullmatch(value) or len(value) > MAX_SERVER_NAME:
        raise ValueError
    return value


def _header(value: str) -> str:
    if not _HEADER.fullmatch(value):
        raise ValueError
    return value


def _bucket(value: str) -> str:
    if not is_object_store(value):
        raise ValueError
    return value


ServerName = Annotated[
    str, Format(f"a name in snake_case of at most {MAX_SERVER_NAME} characters, such as `github`", _name)
]
HeaderName = Annotated[str, Format("the name of an HTTP header", _header)]
Pattern = Annotated[str, MinLen(1)]
Milliseconds = Annotated[int, Ge(1), Unit("milliseconds")]


@dataclass(frozen=True, slots=True)
class RateLimitSettings:
    """A rate limit, as in schema.json."""

    calls: Annotated[int, Ge(1), Help("The maximum number of calls in a window.")]
    window_ms: Annotated[Milliseconds, Help("The length of a window, which begins with its first call.")]


@dataclass(frozen=True, slots=True)
class ToolOverrides:
    """The operator's decisions about a tool: the fields of schema.json that no server may set."""

    category: Annotated[
        Literal["retrieval", "action", "utility"] | None,
        Help("The category, as in schema.json.", default="`action`"),
    ] = None
    side_effects: Annotated[
        Literal["none", "read_only", "writes"] | None,
        Help(
            "What a call changes. The server's own hints are ignored.",
            default="`writes`, or what `category` implies",
        ),
    ] = None
    idempotent: Annotated[
        bool | None,
        Help("True if a repeated call has no further effect.", default="false, unless the tool only reads"),
    ] = None
    requires_confirmation: Annotated[
        bool | Literal["policy"] | None,
        Help("The user must approve each call.", default="true, unless the tool only reads"),
    ] = None
    allowed_modes: Annotated[
        tuple[Literal["text", "voice"], ...] | None, Help("The modes that offer the tool.", default="both")
    ] = None
    latency_budget_ms: Annotated[
        Milliseconds | None, Help("The longest that a call should take.", default="2000")
    ] = None
    timeout_ms: Annotated[
        Milliseconds | None,
        Help("How long a call may run before it is stopped.", default="the server's `timeout`"),
    ] = None
    rate_limit: Annotated[RateLimitSettings | None, Help("The tool's rate limit.", default="none")] = None
    roles: Annotated[
        Annotated[tuple[NonEmpty, ...], MinLen(1)] | None,
        Help("A user needs one of these roles.", default="everyone may call it"),
    ] = None
    preview: Annotated[
        NonEmpty | None,
        Help("The text of the confirmation card.", default="generated if it can show every argument"),
    ] = None
    description: Annotated[
        NonEmpty | None,
        Help("The description that the model sees instead of the server's.", default="the server's"),
    ] = None

    def over(self, defaults: ToolOverrides) -> ToolOverrides:
        """Return these overrides, with `defaults` for those that are not set."""
        return ToolOverrides(
            **{
                name: value if (value := getattr(self, name)) is not None else getattr(defaults, name)
                for name in self.__dataclass_fields__
            }
        )


@dataclass(frozen=True, slots=True)
class OAuthSettings:
    """The client credentials with which a host gets its access tokens."""

    issuer: Annotated[
        HttpUrl,
        Help(
            "The authorization server. The secret is never sent to any other server, whatever the MCP server "
            "says."
        ),
    ]
    client_id: Annotated[NonEmpty, Help("The client id that the authorization server knows.")]
    client_secret_env: Annotated[
        EnvironmentVariable, Help("The environment variable that holds the client's secret.")
    ]
    scopes: Annotated[tuple[NonEmpty, ...], Help("The scopes to ask for.", default="none")] = ()


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """`[capabilities.mcp.servers.NAME]`"""

    command: Annotated[
        Annotated[tuple[NonEmpty, ...], MinLen(1)] | None,
        Help(
            'The program and its arguments, for a server over stdio, such as `["uvx", "mcp-server-time"]`.',
            default="none: `url`",
        ),
    ] = None
    url: Annotated[HttpUrl | None, Help("The address of a server over HTTP.", default="none: `command`")] = (
        None
    )
    folder: Annotated[Path | None, Help("The working directory of `command`.", default="the host's")] = None
    environment: Annotated[
        Mapping[NonEmpty, str],
        Help("Environment variables of `command` that are not secret.", default="none"),
    ] = field(default_factory=dict)
    pass_env: Annotated[
        tuple[EnvironmentVariable, ...],
        Help("Environment variables that `command` gets from the host's environment.", default="none"),
    ] = ()
    headers_env: Annotated[
        Mapping[HeaderName, EnvironmentVariable],
        Help("Headers for `url`, each with the environment variable that holds its value.", default="none"),
    ] = field(default_factory=dict)
    bearer_env: Annotated[
        EnvironmentVariable | None,
        Help("The environment variable that holds the bearer token for `url`.", default="none"),
    ] = None
    oauth: Annotated[OAuthSettings | None, Help("OAuth client credentials for `url`.", default="none")] = None
    allow: Annotated[
        tuple[Pattern, ...], Help("The tools to offer, by their names on the server; `*` matches any text.")
    ] = ("*",)
    deny: Annotated[tuple[Pattern, ...], Help("Tools to leave out, even if `allow` matches.")] = ()
    optional: Annotated[bool, Help("Build without the server's tools if the server cannot be reached.")] = (
        False
    )
    connect_timeout: Annotated[
        Seconds, Le(600), Help("How long to wait for a connection and for the list of tools.")
    ] = 30.0
    timeout: Annotated[Seconds, Le(3600), Help("How long a call may run before it is stopped.")] = 60.0
    refresh: Annotated[
        Seconds,
        Help(
            "How often the list of tools is read again; it is also read after every change that the server "
            "announces."
        ),
    ] = 300.0
    check_every_call: Annotated[
        bool,
        Help(
            "Read the list of tools before every call, so that a changed tool is not called, even if the "
            "server announces nothing; this costs a request, or one for each page of the list."
        ),
    ] = True
    elicitation: Annotated[
        Literal["refuse", "ask"],
        Help(
            "How to handle a question that the server has for the user: `refuse`, or `ask` (the user sees a "
            "form)."
        ),
    ] = "refuse"
    elicitation_timeout: Annotated[
        Seconds,
        Le(3600),
        Help("How long a question from the server waits for the user; less than `timeout`."),
    ] = 45.0
    sampling: Annotated[
        Literal["refuse", "ask", "allow"],
        Help(
            "How to handle a sampling request (the server asks the session's model for text during a call): "
            "`refuse`, `ask` (the user sees and approves each request), or `allow`."
        ),
    ] = "refuse"
    sampling_requests: Annotated[
        int, Ge(1), Le(100), Help("The maximum number of sampling requests during one call.")
    ] = 5
    sampling_tokens: Annotated[
        int, Ge(1), Le(100_000), Unit("tokens"), Help("The maximum length of the text for one request.")
    ] = 1000
    sampling_bytes: Annotated[
        Bytes, Help("The maximum size of a sampling request's messages; a larger request is refused.")
    ] = 16 * 1024
    sampling_timeout: Annotated[
        Seconds, Le(3600), Help("How long a sampling request waits for the model; less than `timeout`.")
    ] = 30.0
    max_result: Annotated[Bytes, Help("Maximum size of a result; the rest is cut off.")] = 256 * 1024
    max_message: Annotated[Bytes, Help("Maximum size of one response over HTTP; a larger one fails.")] = (
        16 * 1024 * 1024
    )
    defaults: Annotated[ToolOverrides, Help("Defaults for all tools on the server.")] = ToolOverrides()
    tools: Annotated[
        Mapping[NonEmpty, ToolOverrides],
        Help("Settings for one tool, by its name on the server.", default="none"),
    ] = field(default_factory=dict)

    def __post_init__(self) -> None:
        faults = []
        if (self.command is None) == (self.url is None):
            faults.append("command: set either `command` or `url`")
        local = {"folder": self.folder, "environment": self.environment, "pass_env": self.pass_env}
        remote = {"headers_env": self.headers_env, "bearer_env": self.bearer_env, "oauth": self.oauth}
        unused, other = (remote, "url") if self.command else (local, "command")
        faults += [f"{name}: only for a server with `{other}`" for name, value in unused.items() if value]
        if self.bearer_env and self.oauth:
            faults.append("oauth: set either `oauth` or `bearer_env`")
        asks = "ask" in (self.elicitation, self.sampling)
        waits = {"elicitation_timeout": asks, "sampling_timeout": self.sampling != "refuse"}
        faults += [
            f"{name}: must be less than `timeout`, which stops the call"
            for name, is_used in waits.items()
            if is_used and getattr(self, name) >= self.timeout
        ]
        if faults:
            raise ValueError("\n".join(faults))

    @property
    def allows_requests(self) -> bool:
        """True if the server may ask the user or a model for something during a call."""
        return self.elicitation == "ask" or self.sampling != "refuse"

    def offers(self, tool: str) -> bool:
        """Return whether `allow` and `deny` let a tool be offered."""
        allowed = any(fnmatchcase(tool, pattern) for pattern in self.allow)
        return allowed and not any(fnmatchcase(tool, pattern) for pattern in self.deny)

    def overrides(self, tool: str) -> ToolOverrides:
        """Return the operator's decisions about a tool."""
        return self.tools.get(tool, ToolOverrides()).over(self.defaults)

    @property
    def secret_variables(self) -> tuple[str, ...]:
        """The environment variables with secrets that the server needs."""
        oauth = (self.oauth.client_secret_env,) if self.oauth else ()
        bearer = (self.bearer_env,) if self.bearer_env else ()
        return (*self.pass_env, *self.headers_env.values(), *bearer, *oauth)

    def secrets(self) -> dict[str, str]:
        """Return the values of the secret variables; raises `SettingsError` if some are not set."""
        values = {name: os.environ.get(name, "") for name in self.secret_variables}
        if missing := [name for name, value in values.items() if not value]:
            raise SettingsError(
                f"set the environment variable{'s' * (len(missing) > 1)} {', '.join(missing)}"
            )
        return values

    def refusal(self, status: int) -> str:
        """Return a message with the HTTP status of the server's refusal and the settings to check."""
        to_check = []
        if self.oauth:
            to_check.append(
                f"`oauth`: `client_id`, the secret in {self.oauth.client_secret_env}, and `scopes`"
            )
        if self.bearer_env:
            to_check.append(f"`bearer_env`: the token in {self.bearer_env}")
        if self.headers_env:
            variables = ", ".join(sorted(set(self.headers_env.values())))
            to_check.append(f"`headers_env`: the values in {variables}")
        if not to_check:
            return f"it requires credentials (HTTP {status}); set `bearer_env`, `headers_env` or `oauth`"
        return f"it refuses the credentials (HTTP {status}); check {'; '.join(to_check)}"

    @property
    def address(self) -> str:
        """The server's address for messages, without arguments or secrets."""
        if self.command:
            return Path(self.command[0]).name
        from urllib.parse import urlsplit

        parts = urlsplit(self.url or "")
        return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"


@dataclass(frozen=True, slots=True)
class McpToolsSettings:
    """`[capabilities.mcp]`"""

    servers: Annotated[
        Mapping[ServerName, ServerSettings],
        Help("The servers by name; the ids of a server's tools start with its name.", default="none"),
    ] = field(default_factory=dict)
    folder: Annotated[Path, Help("The directory for files in results, if `url` is not set.")] = Path(
        "mcp-files"
    )
    url: Annotated[
        Annotated[
            str,
            Format("a URL such as s3://BUCKET/PREFIX, gs://... or az://..., without credentials", _bucket),
        ]
        | None,
        Help(
            "The object store for files in results, required for several hosts; its credentials come from "
            "the environment.",
            default="none: `folder`",
        ),
    ] = None
    max_file: Annotated[Bytes, Help("Maximum size of a file in a result; a larger one is left out.")] = (
        8 * 1024 * 1024
    )

    def unavailable(self) -> str | None:
        """Return why no MCP tool can be used; None if at least one server is configured."""
        return None if self.servers else "no server is configured in [capabilities.mcp.servers]"


def manifest_fields(overrides: ToolOverrides, timeout: float) -> dict[str, Any]:
    """Return the fields of schema.json that the operator decides; unset ones get cautious defaults."""
    category = overrides.category or "action"
    implied = {"retrieval": "read_only", "utility": "none", "action": "writes"}[category]
    effects = overrides.side_effects or implied
    writes = effects == "writes"
    timeout_ms = overrides.timeout_ms or round(timeout * 1000)
    fields: dict[str, Any] = {
        "category": category,
        "sideEffects": effects,
        "idempotent": (not writes) if overrides.idempotent is None else overrides.idempotent,
        "requiresConfirmation": (
            writes if overrides.requires_confirmation is None else overrides.requires_confirmation
        ),
        "latencyBudgetMs": overrides.latency_budget_ms or min(2000, timeout_ms),
        "timeoutMs": timeout_ms,
        "requires": ["mcp"],
    }
    if overrides.allowed_modes:
        fields["allowedModes"] = list(overrides.allowed_modes)
    if limit := overrides.rate_limit:
        fields["rateLimit"] = {"calls": limit.calls, "windowMs": limit.window_ms}
    if overrides.roles:
        fields["availability"] = {"user": {"roles": list(overrides.roles)}}
    return fields
