"""The embedded default of Jackfield: an agent that needs no key, and the form in which it takes tools."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jackfield import hookimpl
from jackfield.offers import (
    Adapted,
    CommandOffer,
    Detected,
    Detector,
    PluginSettings,
    SchemaAdapterOffer,
    TransportOffer,
    Undetected,
)

if TYPE_CHECKING:
    import click
    from jackfield.transport.protocol import Transport

__all__ = ["jackfield_commands", "jackfield_schema_adapters", "jackfield_transports"]

MODEL_RANK = 300
"""Of `provider = "auto"`: the language model in this process comes after keys and servers (100 to 200)."""
MODEL_VARIABLE = "JACKFIELD_LOCAL_MODEL"
"""The environment variable that keeps `auto` from the language model, with the value `none`."""
AGENT_RANK = 900
"""The agent without a model comes last: it is always there."""


@hookimpl
def jackfield_transports() -> list[TransportOffer]:
    """Offer the transport under the name `local`."""
    detectors = (Detector(MODEL_RANK, _detect_model), Detector(AGENT_RANK, _detect_agent))
    return [TransportOffer("local", _create, _unavailable, detectors)]


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


def _detect_model(settings: PluginSettings) -> Detected | Undetected:
    from dataclasses import replace

    from jackfield_local.agent.mind import lacking
    from jackfield_local.models.weights import QWEN, located
    from jackfield_local.options import options

    chosen = options(settings)
    if settings.get("mind", "llama") != "llama":
        return Undetected('set [transports.local] mind = "llama" to use the local language model')
    if os.environ.get(MODEL_VARIABLE, "").strip() == "none":
        return Undetected(f"unset {MODEL_VARIABLE} to use the local language model")
    if lack := lacking(replace(chosen, mind="llama")):
        if not chosen.model_path and not located(QWEN).is_file():
            size = QWEN.size / 10**9
            return Undetected(
                f"run `jackfield model get` to download the local language model ({size:.1f} GB)"
            )
        return Undetected(f"complete the local language model: {lack}")
    return Detected("the local language model is on this machine", {"mind": "llama"})


def _detect_agent(settings: PluginSettings) -> Detected | Undetected:
    from jackfield_local.options import options

    options(settings)
    return Detected("no key, no local server and no local language model was found")


def _load() -> click.Command:
    from jackfield_local.commands import model

    return model
