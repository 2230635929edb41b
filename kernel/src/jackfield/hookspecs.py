"""Every question the kernel asks a plugin.

Each is asked once, at build or at start. The answers are sorted, checked and frozen; no hook is called on the
path of a tool call. A plugin is a module (or object) that an entry point in the group `jackfield.plugins`
names; it answers with functions marked `@hookimpl` and ignores the questions it has no answer to.
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
    ToolOffer,
    TransportOffer,
)

PROJECT = "jackfield"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)

# Asked by the build; the answers go into the snapshot.


@hookspec
def jackfield_tools() -> Iterable[ToolOffer]:
    """Which tools do you bring that have no entry point of their own?"""
    return ()


@hookspec
def jackfield_schema_adapters() -> Iterable[SchemaAdapterOffer]:
    """In which providers' forms can you declare a tool?"""
    return ()


@hookspec
def jackfield_policies() -> Iterable[PolicyOffer]:
    """Which policies do you put into the chain that every call goes through?"""
    return ()


# Asked by the build for their names, and at start for what they make.


@hookspec
def jackfield_intent_handlers() -> Iterable[IntentHandlerOffer]:
    """Which intents can you apply to a session?"""
    return ()


@hookspec
def jackfield_capabilities() -> Iterable[CapabilityOffer]:
    """What can you lend to tools that require it?"""
    return ()


@hookspec
def jackfield_transports() -> Iterable[TransportOffer]:
    """To which models can you carry a session?"""
    return ()


@hookspec
def jackfield_stores() -> Iterable[StoreOffer]:
    """Where can you keep shared state?"""
    return ()


@hookspec
def jackfield_observers() -> Iterable[ObserverOffer]:
    """Who wants to be told about every finished call?"""
    return ()


# Called by a host at startup.


@hookspec
def jackfield_endpoints() -> Iterable[EndpointOffer]:
    """Which HTTP and WebSocket routes do you add to the host?"""
    return ()


# Asked by the command line, when it is given a command that is not its own.


@hookspec
def jackfield_commands() -> Iterable[CommandOffer]:
    """Which commands do you add to `jackfield`?"""
    return ()
