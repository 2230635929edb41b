"""The offers that the hooks in `hookspecs` return.

An offer is a name and a factory. The factory runs only if a deployment uses the component, and imports what
it needs only then, so calling the hooks is cheap.

An offer's `settings` is the dataclass that declares its table, as `jackfield.settings` describes. The kernel
reads the tables of all offers before it creates anything, and reports all faults at once. The offer's
functions receive an instance of the dataclass; without a declaration, they receive the table as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    import click

    from jackfield.governance import Policy, SyncPolicy
    from jackfield.orchestrator import Observer
    from jackfield.session.intents import IntentHandler
    from jackfield.store import Store
    from jackfield.transport.protocol import Transport

PluginSettings = Mapping[str, Any]
"""The table of an offer that declares no settings; empty if there is none."""


@dataclass(frozen=True, slots=True)
class Services:
    """The services that the kernel provides to the factories of offers."""

    store: Store
    capabilities: frozenset[str] = frozenset()
    """The names of the available capabilities."""

    instances: Mapping[str, Any] = field(default_factory=dict)
    """The capabilities by name; empty while capabilities are being created."""


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """A tool that has no entry point of its own.

    `package` is the import package that holds `handler.py`, and `schema.json` and `guide.md` unless their
    text is given here.
    """

    tool_id: str
    package: str
    schema: str | None = None
    guide: str | None = None


@dataclass(frozen=True, slots=True)
class ListedTool(ToolOffer):
    """A tool of another system, such as a server; the snapshot stores its `origin` with it.

    `origin` is JSON without secrets: where the tool comes from, and its definition there.
    """

    origin: Mapping[str, Any] = field(default_factory=dict)


class ListingProblemKind(StrEnum):
    """The kinds of problems with a tool listing."""

    UNREACHABLE = "the source of the tools cannot be reached"
    UNAVAILABLE = "the source cannot be reached, and may be left out"
    UNUSABLE = "a definition cannot be converted to a tool"
    CONVERTED = "a definition was changed, because arguments are stricter here"
    SUSPICIOUS = "a text may contain instructions for a model"
    UNMATCHED = "a setting names a tool that the source does not have"


class ListingProblem(NamedTuple):
    """One problem with a listing; `subject` is a tool id or the name of the source."""

    kind: ListingProblemKind
    subject: str
    message: str
    hint: str = ""


class ToolListing(NamedTuple):
    """The tools of other systems, and the problems found while listing them."""

    tools: tuple[ListedTool, ...] = ()
    problems: tuple[ListingProblem, ...] = ()


class ListingRequest(NamedTuple):
    """A build's request for a tool listing."""

    other_tools: frozenset[str] = frozenset()
    """The ids of all tools that do not come from a listing."""
    origins: tuple[Mapping[str, Any], ...] = ()
    """The origins to keep: a listing converts them again without asking their source for changes."""


@dataclass(frozen=True, slots=True)
class ToolListingOffer:
    """Tools that the build reads from another system.

    `read` receives the settings of `capability`, which also serves the tools. It may block and use the
    network. It is called by a build, never by a host.
    """

    name: str
    capability: str
    read: Callable[[Any, ListingRequest], ToolListing]


class Lowering(NamedTuple):
    """A schema construct that a provider cannot express: its path, and what replaced it."""

    path: str
    what: str


class Adapted(NamedTuple):
    """A tool's declaration in a provider's format."""

    declaration: Mapping[str, Any]
    lowered: tuple[Lowering, ...] = ()


class CannotExpressError(Exception):
    """Raised by an adapter for a schema that its provider cannot express, even in a widened form."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path = path
        self.why = why


class Adapt(Protocol):
    """Creates a provider's declaration; it may accept more than the schema, but never less."""

    def __call__(self, tool_id: str, description: str, parameters: Mapping[str, Any]) -> Adapted:
        """Return the declaration of one tool; raises `CannotExpressError` if there is none."""


@dataclass(frozen=True, slots=True)
class SchemaAdapterOffer:
    """An adapter to a provider's schema format; its name is the key in `providerSchemas`."""

    name: str
    adapt: Adapt


class Stage(IntEnum):
    """The part of the chain in which a policy runs: before the arguments are validated, or after."""

    ADMIT = 1
    SHAPE = 2


@dataclass(frozen=True, slots=True)
class PolicyOffer:
    """A policy; the chain is ordered by stage, rank and name, and is part of the snapshot.

    `enforces` names the manifest fields that take effect only with this policy. A tool that uses such a field
    is withheld if no installed policy enforces it.
    """

    name: str
    stage: Stage
    rank: int
    create: Callable[[Any, Services], Policy | SyncPolicy]
    enforces: tuple[str, ...] = ()
    settings: type | None = None


@dataclass(frozen=True, slots=True)
class IntentHandlerOffer:
    """A handler of one intent type; its name is that type."""

    name: str
    create: Callable[[Any, Services], IntentHandler]
    settings: type | None = None


def _always(settings: Any) -> str | None:  # noqa: ARG001
    return None


@dataclass(frozen=True, slots=True)
class CapabilityOffer:
    """A capability that tools can require; its name is the attribute of the context.

    `unavailable` returns why a deployment cannot use it, as a clause such as "no provider is configured";
    tools that require it are then withheld for that reason. The component may have `for_session(session)`,
    which returns the view for the handlers of that session, `started(runtime)`, which is called once the
    runtime is complete and before the first session, and an `async def close()`.
    """

    name: str
    create: Callable[[Any, Services], Any]
    unavailable: Callable[[Any], str | None] = _always
    settings: type | None = None


class Detected(NamedTuple):
    """The result for a usable transport; `reason` is a clause such as "OPENAI_API_KEY is set"."""

    reason: str
    settings: PluginSettings = MappingProxyType({})
    """Detected settings, such as an address; they override the transport's table."""


class DownloadError(Exception):
    """A download failed; the message says what happened and how to fix it."""


class DownloadStopped(Exception):  # noqa: N818 - it is a request to stop, not a failure
    """Raised by the `progress` callback to stop a download, for example when the host shuts down."""


@dataclass(frozen=True, slots=True)
class Download:
    """A download that a host can run when an operator requests it.

    A host calls `run` in a thread, one download at a time. `run` calls `progress` with the number of new
    bytes, and with 0 while it waits. `progress` raises `DownloadStopped` to stop the download; `run` cleans
    up and lets the exception propagate. If the download fails, `run` raises `DownloadError`. `run` may be
    called again after either exception. The final file must never exist with incomplete content.
    """

    name: str
    """Unique among the downloads of a host: letters, digits and hyphens."""
    label: str
    """A description such as "the local language model"."""
    size_bytes: int
    run: Callable[[Callable[[int], None]], None]
    is_complete: Callable[[], bool]
    """Returns whether the files exist, wherever they came from; it is called often, so it must be fast."""


class Undetected(NamedTuple):
    """The result for an unusable transport; `hint` says what to do, as in "set OPENAI_API_KEY"."""

    hint: str
    download: Download | None = None
    """The download after which this detector would succeed, if there is one."""


@dataclass(frozen=True, slots=True)
class Detector:
    """One way in which `provider = "auto"` finds a transport.

    The detectors of all transports are called by rank, then by the transport's name, until one succeeds.
    `detect` receives the transport's settings. It is called once at the start of a deployment, in a thread,
    so it may block for a moment. It must treat data from the network as untrusted.
    """

    rank: int
    detect: Callable[[Any], Detected | Undetected]


@dataclass(frozen=True, slots=True)
class TransportOffer:
    """A transport to a model provider; the `provider` setting refers to it by name.

    `unavailable` returns why a deployment cannot use the transport, such as a missing key, without contacting
    the provider; a host then does not start. A transport without `detectors` is used only if `provider` names
    it.
    """

    name: str
    create: Callable[[Any], Transport]
    unavailable: Callable[[Any], str | None] = _always
    detectors: tuple[Detector, ...] = ()
    settings: type | None = None


@dataclass(frozen=True, slots=True)
class StoreOffer:
    """A store for shared state; the `store` setting refers to it by name.

    A persistent store is initialised once and opened many times. `create` returns an object that opens the
    store at its first use. It must not initialise the store: a lost store would be replaced by an empty one,
    and calls that already ran would run again. A store that needs no initialisation omits the other fields.

    - `missing` returns why there is no store to open and what to do, in a sentence; None if there is one. It
      also detects a store that is not the configured one. It may raise `StoreUnavailableError`.
    - `initialise` creates the store and returns a sentence with its location and identity. It raises
      `StoreUnavailableError` if a store already exists or cannot be created.
    - `describe` returns facts about an existing store, by name, for `jackfield store show`.
    - `backup` copies an existing store to a new file, even while hosts use the store, and returns a sentence
      with the copy's location. It raises `StoreUnavailableError` if the file exists or cannot be written.
    - `warnings` returns sentences about an existing store that an operator should know, such as which
      failures lose data. A host logs them at startup; commands do not. It may raise `StoreUnavailableError`.
    """

    name: str
    create: Callable[[Any], Store]
    missing: Callable[[Any], str | None] = _always
    initialise: Callable[[Any], str] | None = None
    describe: Callable[[Any], Mapping[str, Any]] | None = None
    settings: type | None = None
    backup: Callable[[Any, Path], str] | None = None
    warnings: Callable[[Any], Sequence[str]] | None = None


@dataclass(frozen=True, slots=True)
class ObserverOffer:
    """An observer, which is notified of every finished call."""

    name: str
    create: Callable[[Any, Services], Observer]
    settings: type | None = None


@dataclass(frozen=True, slots=True)
class EndpointOffer:
    """Routes that a host serves: HTTP, WebSocket, or both.

    `create(settings, services)` returns Starlette routes (`Route`, `WebSocketRoute`, `Mount`), each with its
    full path, which is `prefix` or below it. With the prefix `/` any path is possible. `services` has the
    kernel's `runtime`, the host's `sessions` (a `SessionManager`) and the host's `options`.

    `auth` says who has access: `user` requires a valid access token, `operator` also requires the role of
    that name, and `public` is open to everyone. The user is in `request.state.identity`, which is None for
    `public`.
    `openapi` returns `paths` and `components` of an OpenAPI document; without it, the host lists the routes.
    """

    name: str
    prefix: str
    create: Callable[[Any, Any], Iterable[Any]]
    auth: Literal["user", "operator", "public"] = "user"
    settings: type | None = None
    openapi: Callable[[], Mapping[str, Any]] | None = None


@dataclass(frozen=True, slots=True)
class CommandOffer:
    """A command of `jackfield`; `load` creates it and is called only when the command is used."""

    name: str
    help: str
    load: Callable[[], click.Command]


Offer = (
    ToolOffer | ToolListingOffer | SchemaAdapterOffer | PolicyOffer | IntentHandlerOffer | CapabilityOffer
    | TransportOffer | StoreOffer | ObserverOffer | EndpointOffer | CommandOffer
)  # fmt: skip
