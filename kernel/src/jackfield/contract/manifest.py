"""A tool's manifest: the validated content of its `schema.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, Literal, NamedTuple

from jackfield.contract.context import Mode

DEFAULT_TIMEOUT_MS = 60_000

Category = Literal["retrieval", "action", "utility"]
"""A tool's purpose."""

_DRAFT = "https://json-schema.org/draft/2020-12/schema"


class RateLimit(NamedTuple):
    """At most `calls` calls in a window of `window_ms`, which begins with its first call."""

    calls: int
    window_ms: int


class ToolManifest(NamedTuple):
    """Identity, orchestration metadata and parameters of one tool.

    It is a named tuple because every start creates one for each tool, and a frozen dataclass takes twice as
    long to create.
    """

    tool_id: str
    version: str
    description: str
    category: Category
    side_effects: Literal["none", "read_only", "writes"]
    idempotent: bool
    requires_confirmation: bool | Literal["policy"]
    allowed_modes: tuple[Mode, ...]
    latency_budget_ms: int
    parameters: Mapping[str, Any]
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    requires: tuple[str, ...] = ()
    rate_limit: RateLimit | None = None
    availability: Mapping[str, Any] | None = None
    preview: str | None = None
    returns: Mapping[str, Any] | None = None
    variant: str | None = None
    """The name of this implementation, if it is a variant of another distribution's tool."""
    says: tuple[str, ...] = ()
    """How an assistant says that a call has succeeded, as in `booked`."""

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any], parameters: Mapping[str, Any] | None = None) -> ToolManifest:
        """Read a manifest that `tool.schema.json` accepts; pass `parameters` if they are stored elsewhere."""
        limit = wire.get("rateLimit")
        return cls(
            tool_id=wire["toolId"],
            version=wire["version"],
            description=wire["description"],
            category=wire["category"],
            side_effects=wire["sideEffects"],
            idempotent=wire["idempotent"],
            requires_confirmation=wire["requiresConfirmation"],
            # Sorted because the order in the file has no meaning and must not change the registry's hash.
            allowed_modes=tuple(sorted(wire["allowedModes"])),
            latency_budget_ms=wire["latencyBudgetMs"],
            parameters=wire["parameters"] if parameters is None else parameters,
            timeout_ms=wire.get("timeoutMs", DEFAULT_TIMEOUT_MS),
            requires=tuple(sorted(wire.get("requires", ()))),
            rate_limit=RateLimit(limit["calls"], limit["windowMs"]) if limit else None,
            availability=wire.get("availability"),
            preview=wire.get("preview"),
            returns=wire.get("returns"),
            variant=wire.get("variant"),
            says=tuple(wire.get("says", ())),
        )

    def metadata(self) -> dict[str, Any]:
        """Return everything but the parameters as JSON, with explicit defaults."""
        limit = self.rate_limit
        return {
            "toolId": self.tool_id,
            "version": self.version,
            "description": self.description,
            "category": self.category,
            "sideEffects": self.side_effects,
            "idempotent": self.idempotent,
            "requiresConfirmation": self.requires_confirmation,
            "allowedModes": list(self.allowed_modes),
            "latencyBudgetMs": self.latency_budget_ms,
            "timeoutMs": self.timeout_ms,
            "requires": list(self.requires),
            "rateLimit": {"calls": limit.calls, "windowMs": limit.window_ms} if limit else None,
            "availability": self.availability,
            "preview": self.preview,
            "returns": self.returns,
            # Only if they are set, so that the bytes of a registry without them do not change.
            **({"variant": self.variant} if self.variant else {}),
            **({"says": list(self.says)} if self.says else {}),
        }

    @property
    def restrictions(self) -> tuple[str, ...]:
        """The restricting fields that are set; they take effect only if a policy enforces them."""
        restricting = {
            "allowedModes": len(self.allowed_modes) < 2,
            "availability": self.availability is not None,
            "rateLimit": self.rate_limit is not None,
            "requiresConfirmation": self.requires_confirmation is not False,
        }
        return tuple(field for field, restricts in restricting.items() if restricts)

    @property
    def writes(self) -> bool:
        """True if the tool has side effects."""
        return self.side_effects == "writes"


FAMILY_DEFAULTS = (
    "version", "description", "category", "sideEffects", "idempotent", "requiresConfirmation", "allowedModes",
    "latencyBudgetMs", "timeoutMs", "requires", "rateLimit", "availability", "preview",
)  # fmt: skip
"""The fields that a family may set for all of its tools: all but those specific to one tool."""


@cache
def tool_schema() -> dict[str, Any]:
    """Return the published JSON Schema of `schema.json`."""
    text = resources.files("jackfield.contract").joinpath("tool.schema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


@cache
def family_schema() -> dict[str, Any]:
    """Return the JSON Schema of a family's `schema.json`, self-contained for editors."""
    fields = tool_schema()["properties"]
    # A family's defaults may provide required fields, so the build checks for these after applying them.
    tool = {name: field for name, field in fields.items() if name not in {"$schema", "toolId"}}
    return {
        "$schema": _DRAFT,
        "$id": "urn:jackfield:family:1",
        "title": "Jackfield family",
        "description": "The contracts of several tools in one package: shared fields, and each tool.",
        "type": "object",
        "additionalProperties": False,
        "required": ["family"],
        "properties": {
            "$schema": fields["$schema"],
            "family": {
                **fields["toolId"],
                "description": "The name of the entry point in jackfield.families, in snake_case.",
            },
            "version": {
                **fields["version"],
                "description": "The version of every tool that does not set its own.",
            },
            "defaults": {
                "description": "Fields for every tool that does not set them itself.",
                "type": "object",
                "additionalProperties": False,
                "properties": {name: fields[name] for name in FAMILY_DEFAULTS},
            },
            "$defs": {
                "description": 'Schemas that every tool may use, as {"$ref": "#/$defs/NAME"}.',
                "type": "object",
                "additionalProperties": {"$ref": _DRAFT},
            },
            "tools": {
                "description": "The tools in the shared files, by id.",
                "type": "object",
                "additionalProperties": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": tool,
                },
            },
        },
    }
