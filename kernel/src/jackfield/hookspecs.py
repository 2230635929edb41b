"""The hooks that a plugin can implement.

Each hook is called once, at build or at startup. Its results are sorted, checked and frozen; no hook is
called during a tool call. A plugin is a module or object named by an entry point in the group
`jackfield.plugins`. It implements hooks as functions marked with `@hookimpl`, and omits those that it does
not need.
"""

from __future__ import annotations

from collections.abc import Iterable

import pluggy

from jackfield.offers import (
    CapabilityOffer,
    CommandOffer,
    EndpointOffer,
    IntentHandlerOffer,
    ObserverOffer,
    PolicyOffer,
    SchemaAdapterOffer,
    StoreOffer,
    ToolListingOffer,
    ToolOffer,
    TransportOffer,
)

PROJECT = "jackfield"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)

# Called by the build; the results go into the snapshot.


@hookspec
def jackfield_tools() -> Iterable[ToolOffer]:
    """Return tools that have no entry point of their own."""
    return ()


@hookspec
def jackfield_tool_listings() -> Iterable[ToolListingOffer]:
    """Return listings of tools that the build reads from other systems."""
    return ()


@hookspec
def jackfield_schema_adapters() -> Iterable[SchemaAdapterOffer]:
    """Return adapters that convert a tool's schema to a provider's format."""
    return ()


@hookspec
def jackfield_policies() -> Iterable[PolicyOffer]:
    """Return policies for the chain that governs every call."""
    return ()


# Called by the build to record the names, and at startup to create the components.


@hookspec
def jackfield_intent_handlers() -> Iterable[IntentHandlerOffer]:
    """Return handlers that apply intents to a session."""
    return ()


@hookspec
def jackfield_capabilities() -> Iterable[CapabilityOffer]:
    """Return capabilities that tools can require."""
    return ()


@hookspec
def jackfield_transports() -> Iterable[TransportOffer]:
    """Return transports, which connect sessions to a model provider."""
    return ()


@hookspec
def jackfield_stores() -> Iterable[StoreOffer]:
    """Return stores for shared state."""
    return ()


@hookspec
def jackfield_observers() -> Iterable[ObserverOffer]:
    """Return observers, which are notified of every finished call."""
    return ()


# Called by a host at startup.


@hookspec
def jackfield_endpoints() -> Iterable[EndpointOffer]:
    """Return HTTP and WebSocket routes for the host."""
    return ()


# Called by the command line for a command that is not built in.


@hookspec
def jackfield_commands() -> Iterable[CommandOffer]:
    """Return commands for the `jackfield` command line."""
    return ()
