"""Gemini transport, and schema adapters for Gemini's tool declarations."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from jackfield import hookimpl
from jackfield.offers import (
    Detected,
    Detector,
    SchemaAdapterOffer,
    TransportOffer,
    Undetected,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jackfield.offers import Adapt, Adapted
    from jackfield.transport.protocol import Transport

    from jackfield_gemini.settings import GeminiSettings

__all__ = ["jackfield_schema_adapters", "jackfield_transports"]

KEY_RANK = 110
"""Rank for `provider = "auto"`: a Gemini key comes after an OpenAI key (100)."""


@hookimpl
def jackfield_transports() -> list[TransportOffer]:
    """Offer the transport under the name `gemini`."""
    from jackfield_gemini.settings import GeminiSettings

    detectors = (Detector(KEY_RANK, _detect),)
    return [TransportOffer("gemini", _create, _unavailable, detectors, GeminiSettings)]


@hookimpl
def jackfield_schema_adapters() -> list[SchemaAdapterOffer]:
    """Offer adapters for Gemini's native schema and for JSON Schema."""
    # Their code is imported when a build calls them; a host asks for the offers, but never calls them.
    return [
        SchemaAdapterOffer("gemini-native", partial(_adapt, "native")),
        SchemaAdapterOffer("gemini-json-schema", partial(_adapt, "as_json_schema")),
    ]


def _adapt(form: str, tool_id: str, description: str, parameters: Mapping[str, Any]) -> Adapted:
    from jackfield_gemini import schemas

    adapt: Adapt = getattr(schemas, form)
    return adapt(tool_id, description, parameters)


def _unavailable(settings: GeminiSettings) -> str | None:
    from jackfield.transport.protocol import TransportError

    try:
        settings.key()
    except TransportError as error:
        return error.detail
    return None


def _detect(settings: GeminiSettings) -> Detected | Undetected:
    variable, key = settings.found_key()
    return Detected(f"{variable} is set") if key else Undetected(f"set {variable} to use Gemini")


def _create(settings: GeminiSettings) -> Transport:
    from jackfield_gemini.transport import GeminiTransport

    return GeminiTransport(settings)
