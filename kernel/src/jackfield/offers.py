"""What a plugin can offer: the answers to the questions in `hookspecs`.

An offer is a name and a way to make the thing, so that asking costs nothing: a factory runs only when a
deployment uses what it makes, and imports what it needs then.

`settings` of an offer is the dataclass that declares its table, as `jackfield.settings` describes. The
kernel reads the tables of all offers before it creates anything, and reports every fault in one run. The
functions of the offer receive the instance; without a declaration they receive the table as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
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
    """What the kernel lends to whatever is made from an offer."""

    store: Store
    capabilities: frozenset[str] = frozenset()
    """The names of what is lent to tools."""

    lent: Mapping[str, Any] = field(default_factory=dict)
    """What is lent to tools, by name; empty while capabilities are being made."""


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


class Lowering(NamedTuple):
    """A construct of the schema that a provider cannot express: where it stands and what became of it."""

    path: str
    what: str


class Adapted(NamedTuple):
    """A tool's declaration in a provider's form."""

    declaration: Mapping[str, Any]
    lowered: tuple[Lowering, ...] = ()


class CannotExpressError(Exception):
    """Raised by an adapter for a schema that its provider cannot express at all, not even widened."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path = path
        self.why = why


class Adapt(Protocol):
    """Derives a provider's declaration; it may widen what the schema accepts, never narrow it."""

    def __call__(self, tool_id: str, description: str, parameters: Mapping[str, Any]) -> Adapted:
        """The declaration of one tool, or `CannotExpressError`."""


@dataclass(frozen=True, slots=True)
class SchemaAdapterOffer:
    """A provider's way to declare a tool; its name is the key under `providerSchemas`."""

    name: str
    adapt: Adapt


class Stage(IntEnum):
    """Where in the chain a policy stands: before the arguments are validated, or after."""

    ADMIT = 1
    SHAPE = 2


@dataclass(frozen=True, slots=True)
class PolicyOffer:
    """A policy; the chain is ordered by stage, then rank, then name, and stands in the snapshot.

    `enforces` names the fields of a manifest that mean nothing without it: a tool that uses one which no
    installed policy enforces is withheld.
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
    """Something tools may require; its name is the attribute of the context.

    `unavailable` says why a deployment cannot have it, in a clause such as "no provider is configured"; tools
    that require it are then withheld for that reason. What is made may have `for_session(session)`, which
    gives the view that the handlers of that session get, `started(runtime)`, which is called when everything
    stands and before the first session, and an `async def close()`.
    """

    name: str
    create: Callable[[Any, Services], Any]
    unavailable: Callable[[Any], str | None] = _always
    settings: type | None = None


class Detected(NamedTuple):
    """A transport can be used here: why, as a clause such as "OPENAI_API_KEY is set"."""

    reason: str
    settings: PluginSettings = MappingProxyType({})
    """Settings that were found out, such as an address; they replace those of the transport's table."""


class DownloadError(Exception):
    """A download failed; the message says what happened and how to fix it."""


class DownloadStopped(Exception):  # noqa: N818 - it is a request to stop, not a failure
    """Raised by the `progress` of a download that is to stop, such as when the host shuts down."""


@dataclass(frozen=True, slots=True)
class Download:
    """Something that a host can fetch when an operator asks for it.

    A host calls `run` in a thread, one download at a time. `run` calls `progress` with the number of bytes
    that were added, and with 0 while it waits; `progress` raises `DownloadStopped` when the download is to
    stop, which `run` lets pass after it has cleaned up. A failure is a `DownloadError`; `run` may be called
    again after either. Whatever happens, the final file must never be there half-written.
    """

    name: str
    """Identifies it among the downloads of a host: letters, digits and hyphens."""
    label: str
    """What it is, such as "the local language model"."""
    size_bytes: int
    run: Callable[[Callable[[int], None]], None]
    is_complete: Callable[[], bool]
    """Whether the files are here, however they came; the host asks often, so it must be quick."""


class Undetected(NamedTuple):
    """A transport cannot be used here: what to do about it, such as "set OPENAI_API_KEY to use OpenAI"."""

    hint: str
    download: Download | None = None
    """What would make this detector succeed, if the host can fetch it."""


@dataclass(frozen=True, slots=True)
class Detector:
    """One way in which `provider = "auto"` finds a transport.

    Detectors of all transports are asked by rank, then by the transport's name, and the first that detects
    something decides. `detect` receives the transport's settings. It may block for a moment, is called once
    at the start of a deployment and in a thread, and treats what it reads from the network as untrusted.
    """

    rank: int
    detect: Callable[[Any], Detected | Undetected]


@dataclass(frozen=True, slots=True)
class TransportOffer:
    """A way to a model; its name is what the `provider` setting says.

    `unavailable` says why a deployment cannot use it, such as a key that is missing, as far as that can be
    known without asking the provider; a host then does not start. A transport without `detectors` is used
    only where `provider` names it.
    """

    name: str
    create: Callable[[Any], Transport]
    unavailable: Callable[[Any], str | None] = _always
    detectors: tuple[Detector, ...] = ()
    settings: type | None = None


@dataclass(frozen=True, slots=True)
class StoreOffer:
    """A home for shared state; its name is what the `store` setting says.

    A store that lasts is initialised once and opened many times. `create` makes the object that opens it at
    its first use, and must not initialise it: a store that was lost would be replaced by an empty one, and
    calls that ran already would run again. A store that needs no initialising leaves the other fields out.

    - `missing` says why there is no store to open and what to do about it, in a sentence; None when there is
      one. It also covers a store that is not the one the settings name. It may raise `StoreUnavailableError`.
    - `initialise` creates the store and returns a sentence with its place and identity. It raises
      `StoreUnavailableError` when something is there already or the store cannot be created.
    - `describe` returns facts about an existing store, by name, for `jackfield store show`.
    """

    name: str
    create: Callable[[Any], Store]
    missing: Callable[[Any], str | None] = _always
    initialise: Callable[[Any], str] | None = None
    describe: Callable[[Any], Mapping[str, Any]] | None = None
    settings: type | None = None


@dataclass(frozen=True, slots=True)
class ObserverOffer:
    """Something that is told about every finished call."""

    name: str
    create: Callable[[Any, Services], Observer]
    settings: type | None = None


@dataclass(frozen=True, slots=True)
class EndpointOffer:
    """Routes that a host serves: HTTP, WebSocket, or both.

    `create(settings, services)` returns Starlette routes (`Route`, `WebSocketRoute`, `Mount`), each with its
    full path, which is `prefix` or below it. With the prefix `/` any path is possible. `services` has the
    `runtime` of the kernel, the `sessions` of the host (a `SessionManager`) and its `options`.

    `auth` says whom the host lets in: `user` with a valid access token, `operator` with the role of that name
    too, `public` everybody. Handlers find the user in `request.state.identity`, which is None for `public`.
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
    """A command of `jackfield`; `load` makes it, and is called only when somebody uses it."""

    name: str
    help: str
    load: Callable[[], click.Command]


Offer = (
    ToolOffer | SchemaAdapterOffer | PolicyOffer | IntentHandlerOffer | CapabilityOffer | TransportOffer
    | StoreOffer | ObserverOffer | EndpointOffer | CommandOffer
)  # fmt: skip
