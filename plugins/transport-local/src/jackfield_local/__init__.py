"""The default provider of Jackfield: an agent that needs no key, and the schema adapter for its tools."""

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
"""Rank for `provider = "auto"`: the in-process language model comes after keys and servers (100 to 200)."""
AGENT_RANK = 900  # The agent without a model comes last: it is always available.
_NOTHING_ELSE = Detected("no key and no local server was found")


@hookimpl
def jackfield_transports() -> list[TransportOffer]:
    """Offer the transport under the name `local`."""
    from jackfield_local.settings import LocalSettings

    detectors = (Detector(MODEL_RANK, _detect_model), Detector(AGENT_RANK, lambda _: _NOTHING_ELSE))
    return [TransportOffer("local", _create, _unavailable, detectors, LocalSettings)]


@hookimpl
def jackfield_schema_adapters() -> list[SchemaAdapterOffer]:
    """Offer the adapter that passes schemas on unchanged."""
    return [SchemaAdapterOffer("local", unchanged)]


@hookimpl
def jackfield_commands() -> list[CommandOffer]:
    """Offer the command `jackfield model`."""
    return [CommandOffer("model", "Download the language model of the local agent.", _load)]


def unchanged(tool_id: str, description: str, parameters: Mapping[str, Any]) -> Adapted:  # noqa: ARG001
    """Return a declaration with the description and the whole JSON Schema."""
    return Adapted({"description": description, "parameters": dict(parameters)})


def _create(settings: LocalSettings) -> Transport:
    from jackfield_local.transport import LocalTransport

    return LocalTransport(settings)


def _unavailable(settings: LocalSettings) -> str | None:
    from jackfield_local.model_file import unavailable_reason

    return (unavailable_reason(settings) or None) if settings.tool_selection == "model" else None


def _detect_model(settings: LocalSettings) -> Detected | Undetected:
    from jackfield_local import model_file
    from jackfield_local.model_file import QWEN

    if settings.tool_selection == "router":
        return Undetected('set [transports.local] tool_selection = "auto" to use the local language model')
    if model_file.is_switched_off():
        return Undetected(f"unset {model_file.MODEL_VARIABLE} to use the local language model")
    reason = model_file.unavailable_reason(settings)
    if not reason:
        return _NOTHING_ELSE
    if settings.model_path or model_file.model_path(settings).is_file():
        return Undetected(f"finish setting up the local language model: {reason}")
    model = f"the local language model ({QWEN.size / 10**9:.1f} GB)"
    if not model_file.is_engine_installed():
        # A host does not change its own environment, so it offers no download here.
        return Undetected(f"run `{model_file.INSTALL}` and then `jackfield model get` to use {model}")
    target = model_file.default_path()
    download = Download(
        "local-model",
        "the local language model",
        QWEN.size,
        lambda progress: model_file.download(QWEN, target, progress),
        lambda: model_file.is_usable(settings),
    )
    return Undetected(f"run `jackfield model get` to download {model}", download)


def _load() -> click.Command:
    from jackfield_local.commands import model

    return model
