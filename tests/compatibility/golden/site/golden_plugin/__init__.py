"""A plugin as it was written against version 1 of the kernel's API: an answer to every question."""

from __future__ import annotations

import click
from jackfield import hookimpl
from jackfield.offers import (
    Adapted,
    CapabilityOffer,
    CommandOffer,
    IntentHandlerOffer,
    Lowering,
    ObserverOffer,
    PolicyOffer,
    SchemaAdapterOffer,
    Stage,
    StoreOffer,
    ToolOffer,
    TransportOffer,
)

SCHEMA = """\
{
  "toolId": "parcel_motto",
  "version": "1.0.0",
  "description": "Says the motto of the parcel office.",
  "category": "utility",
  "sideEffects": "none",
  "idempotent": true,
  "requiresConfirmation": false,
  "allowedModes": ["text", "voice"],
  "latencyBudgetMs": 100,
  "parameters": {"type": "object", "additionalProperties": false, "properties": {}}
}
"""
GUIDE = "# parcel_motto\n\nSays the motto of the parcel office.\n"


@hookimpl
def jackfield_tools():
    return [ToolOffer("parcel_motto", "golden_plugin.spoken_tool", schema=SCHEMA, guide=GUIDE)]


@hookimpl
def jackfield_schema_adapters():
    return [SchemaAdapterOffer("golden", adapt)]


def adapt(tool_id, description, parameters):
    lowered = (Lowering("/format", "left to our own validation"),) if "format" in str(parameters) else ()
    return Adapted({"name": tool_id, "about": description, "takes": parameters}, lowered)


@hookimpl
def jackfield_policies():
    from golden_plugin.governing import Hours, Stamp

    return [
        PolicyOffer("stamp", Stage.ADMIT, 10, lambda settings, services: Stamp(services.store)),
        PolicyOffer("hours", Stage.SHAPE, 10, lambda settings, services: Hours(settings), ("availability",)),
    ]


@hookimpl
def jackfield_intent_handlers():
    from golden_plugin.governing import Mark

    return [IntentHandlerOffer("PARCEL_MARK", lambda settings, services: Mark())]


@hookimpl
def jackfield_capabilities():
    from golden_plugin.lending import Tariff

    return [
        CapabilityOffer("tariff", lambda settings, services: Tariff(settings.get("cents", 250))),
        CapabilityOffer(
            "scales", lambda settings, services: None, lambda settings: "no scales are connected"
        ),
    ]


@hookimpl
def jackfield_transports():
    from golden_plugin.carrying import Post

    return [TransportOffer("golden", lambda settings: Post(), lambda settings: None)]


@hookimpl
def jackfield_stores():
    from jackfield.store import MemoryStore

    return [StoreOffer("golden", lambda settings: MemoryStore())]


@hookimpl
def jackfield_observers():
    from golden_plugin.governing import Watch

    return [ObserverOffer("watch", lambda settings, services: Watch(services.store))]


@hookimpl
def jackfield_commands():
    return [CommandOffer("parcels", "Say where parcels go.", command)]


def command():
    return click.Command("parcels", callback=lambda: click.echo("Parcels go everywhere."))
