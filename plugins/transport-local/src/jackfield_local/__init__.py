"""The embedded default of Jackfield: an agent that needs no key, and the form in which it takes tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jackfield import hookimpl
from jackfield.offers import (
    Adapted,
    CommandOffer,
    Detected,
    Detector,
    Download,
    SchemaAdapterOffer,
    TransportOffer,
    Undetected,
)

if TYPE_CHECKING:
    import click
    from jackfield.transport.protocol import Transport

    from jackfield_local.settings import LocalSettings


__all__ = ["jackfield_commands", "jackfield_schema_adapters", "jackfield_transports"]

MODEL_RANK = 300
"""Of `provider = "auto"`: the language model in this process comes after keys and servers (100 to 200)."""
AGENT_RANK = 900
"""The agent without a model comes last: it is always there."""


@hookimpl
def jackfield_transports() -> list[TransportOffer]:
    """Offer the transport under the name `local`."""
    from jackfield_local.settings import LocalSettings

    detectors = (Detector(MODEL_RANK, _detect_model), Detector(AGENT_RANK, _detect_agent))
    return [TransportOffer("local", _create, _unavailable, detectors, LocalSettings)]


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


def _create(settings: LocalSettings) -> Transport:
    from jackfield_local.transport import LocalTransport

    return LocalTransport(settings)


def _unavailable(settings: LocalSettings) -> str | None:
    if settings.mind != "llama":
        return None
    from jackfield_local.agent.mind import lacking

    return lacking(settings) or None


_NOTHING_ELSE = "no key and no local server was found"


def _detect_model(settings: LocalSettings) -> Detected | Undetected:
    from jackfield_local.agent import mind
    from jackfield_local.agent.engine import INSTALL
    from jackfield_local.models.weights import QWEN, fetch, located

    if settings.mind not in ("auto", "llama"):
        return Undetected('set [transports.local] mind = "auto" to use the local language model')
    if mind.is_switched_off():
        return Undetected(f"unset {mind.MODEL_VARIABLE} to use the local language model")
    lack = mind.lacking(settings)
    if not lack:
        return Detected(_NOTHING_ELSE)
    if settings.model_path or mind.model_file(settings).is_file():
        return Undetected(f"complete the local language model: {lack}")
    model = f"the local language model ({QWEN.size / 10**9:.1f} GB)"
    if not mind.is_engine_installed():
        # A host does not change the environment that it runs in, so there is nothing for it to download.
        return Undetected(f"run `{INSTALL}` and then `jackfield model get` to use {model}")
    target = located(QWEN)
    download = Download(
        "local-model",
        "the local language model",
        QWEN.size,
        lambda progress: fetch(QWEN, target, progress),
        lambda: mind.is_usable(settings),
    )
    return Undetected(f"run `jackfield model get` to download {model}", download)


def _detect_agent(settings: LocalSettings) -> Detected | Undetected:  # noqa: ARG001
    return Detected(_NOTHING_ELSE)


def _load() -> click.Command:
    from jackfield_local.commands import model

    return model
