"""The embedded default of Jackfield: an agent that needs no key, and the form in which it takes tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jackfield import hookimpl
from jackfield.offers import Adapted, CommandOffer, PluginSettings, SchemaAdapterOffer, TransportOffer

if TYPE_CHECKING:
    import click
    from jackfield.transport.protocol import Transport

__all__ = ["jackfield_commands", "jackfield_schema_adapters", "jackfield_transports"]


@hookimpl
def jackfield_transports() -> list[TransportOffer]:
    """Offer the transport under the name `local`."""
    return [TransportOffer("local", _create, _unavailable)]


@hookimpl
def jackfield_schema_adapters() -> list[SchemaAdapterOffer]:
    """Offer the tools as they are: nothing has to be lowered for ourselves."""
    return [SchemaAdapterOffer("local", as_it_is)]


@hookimpl
def jackfield_commands() -> list[CommandOffer]:
    """Offer the command `jackfield model`."""
    return [CommandOffer("model", "Fetch the language model of the local agent.", _load)]


def as_it_is(tool_id: str, description: str, parameters: Mapping[str, Any]) -> Adapted:  # noqa: ARG001
    """A declaration that is the description and the whole JSON Schema."""
    return Adapted({"description": description, "parameters": dict(parameters)})


def _create(settings: PluginSettings) -> Transport:
    from jackfield_local.transport import LocalTransport

    return LocalTransport.from_settings(settings)


def _unavailable(settings: PluginSettings) -> str | None:
    from jackfield_local.options import options

    chosen = options(settings)
    if chosen.mind != "llama":
        return None
    from jackfield_local.agent.mind import lacking

    return lacking(chosen) or None


def _load() -> click.Command:
    from jackfield_local.commands import model

    return model
