"""The embedded default of Jackfield: an agent that needs no key, and the form in which it takes tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jackfield import hookimpl
from jackfield.offers import Adapted, PluginSettings, SchemaAdapterOffer, TransportOffer

if TYPE_CHECKING:
    from jackfield.transport.protocol import Transport

__all__ = ["jackfield_schema_adapters", "jackfield_transports"]


@hookimpl
def jackfield_transports() -> list[TransportOffer]:
    """Offer the transport under the name `local`."""
    return [TransportOffer("local", _create)]


@hookimpl
def jackfield_schema_adapters() -> list[SchemaAdapterOffer]:
    """Offer the tools as they are: nothing has to be lowered for ourselves."""
    return [SchemaAdapterOffer("local", as_it_is)]


def as_it_is(tool_id: str, description: str, parameters: Mapping[str, Any]) -> Adapted:  # noqa: ARG001
    """A declaration that is the description and the whole JSON Schema."""
    return Adapted({"description": description, "parameters": dict(parameters)})


def _create(settings: PluginSettings) -> Transport:
    from jackfield_local.transport import LocalTransport

    return LocalTransport.from_settings(settings)
