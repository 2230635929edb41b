"""Converts a server's tool definition to a tool for the registry: manifest, guide and origin."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from jackfield import strict_json
from jackfield.offers import ListedTool
from jackfield.registry.arguments import compile_schema
from jackfield_importers.definitions import Definitions, dereferenced, reached
from jackfield_importers.effects import EffectsGuess
from jackfield_importers.errors import SourceError
from jackfield_importers.family import ImportedFamily, ImportedTool, summary_of
from jackfield_importers.literals import json_text, prose, sentence
from jackfield_importers.schema_conversion import SchemaConverter

from jackfield_mcp_tools.definitions import Definition
from jackfield_mcp_tools.settings import ToolOverrides, manifest_fields

HANDLER_PACKAGE = "jackfield_mcp_tools.tool"
MAX_DEFINITION = 128 * 1024
MAX_DESCRIPTION = 1000
MAX_DETAILS = 3000


class UnusableDefinitionError(Exception):
    """A definition cannot be converted to a tool; the message says why."""


class ConvertedTool(NamedTuple):
    """A tool for the registry, and notes about what the conversion changed."""

    tool: ListedTool
    notes: tuple[str, ...]


def convert(definition: Definition, tool_id: str, overrides: ToolOverrides, timeout: float) -> ConvertedTool:
    """Return the tool; raises `UnusableDefinitionError` if the definition cannot be converted."""
    wire = definition.wire
    _check(wire)
    fields = manifest_fields(overrides, timeout)
    try:
        imported, definitions = _imported(definition, tool_id, overrides, fields)
    except SourceError as error:
        raise UnusableDefinitionError(f"its schema cannot be read: {error}") from None
    family = _complete(imported, definitions)
    parameters = _with_definitions(imported.parameters, definitions)
    _check_compiles(parameters)
    manifest = {
        **fields,
        "version": f"1.0.0+{definition.digest.removeprefix('sha256:')[:8]}",
        "description": prose(overrides.description or definition.description, MAX_DESCRIPTION)
        or imported.summary,
    }
    if imported.parameters.get("properties"):
        manifest["parameters"] = parameters
    if imported.returns:
        manifest["returns"] = _with_definitions(imported.returns, definitions)
    preview = overrides.preview or imported.preview
    if preview and manifest["requiresConfirmation"] is not False:
        manifest["preview"] = preview
    listed = ListedTool(
        tool_id,
        HANDLER_PACKAGE,
        schema=json_text(manifest),
        guide=family.section(imported),
        origin=definition.origin(),
    )
    return ConvertedTool(listed, tuple(imported.notes))


def _check(wire: Any) -> None:
    text = json_text(wire, indent=None)
    if len(text) > MAX_DEFINITION:
        raise UnusableDefinitionError(f"its definition is larger than {MAX_DEFINITION // 1024} KiB")
    try:
        strict_json.loads(text)
    except strict_json.StrictJsonError as error:
        raise UnusableDefinitionError(f"its definition is not valid JSON: {error}") from None
    schema = wire.get("inputSchema")
    if not isinstance(schema, dict):
        raise UnusableDefinitionError("it has no schema for its arguments")
    if schema.get("type", "object") != "object":
        raise UnusableDefinitionError("its arguments are not an object")


def _imported(
    definition: Definition, tool_id: str, overrides: ToolOverrides, fields: dict[str, Any]
) -> tuple[ImportedTool, Definitions]:
    schema = definition.wire["inputSchema"]
    definitions = Definitions()
    converter = SchemaConverter(schema, definitions, key="arguments")
    parameters = converter.convert(dereferenced(schema, schema))
    if not schema.get("properties"):
        parameters = {"type": "object", "properties": {}}
    if parameters.get("type") != "object":
        raise UnusableDefinitionError("its arguments are not an object")
    for word in ("type", "description", "examples"):
        parameters.pop(word, None)
    returns = _returns(definition.wire.get("outputSchema"), definitions)
    definitions.convert_waiting()
    text = overrides.description or definition.description or definition.wire.get("title")
    named = f"Calls {definition.name} on the server {definition.server}"
    summary = summary_of(_first_paragraph(text), fallback=named)
    details = sentence(prose(text, MAX_DETAILS))
    effects = EffectsGuess(fields["sideEffects"] == "writes", fields["idempotent"], "the operator decides")
    tool = ImportedTool(
        tool_id=tool_id,
        origin=definition.name,
        summary=summary,
        details="" if details == summary else details,
        effects=effects,
        parameters=parameters,
        returns=returns,
        call="",
        notes=list(converter.notes),
    )
    return tool, definitions


def _returns(schema: Any, definitions: Definitions) -> dict[str, Any] | None:
    if not isinstance(schema, dict) or not schema:
        return None
    return SchemaConverter(schema, definitions, key="result", results=True).convert(schema) or None


def _complete(tool: ImportedTool, definitions: Definitions) -> ImportedFamily:
    family = ImportedFamily(
        name="mcp", title="", source="", definitions=definitions, tools=[tool], dependencies=(), modules={},
        imports=(),
    )  # fmt: skip
    notes = list(tool.notes)
    family.complete()
    # `complete` adds notes for an author who can edit the tool's files; nobody can edit these.
    tool.notes = notes
    return family


def _with_definitions(schema: dict[str, Any], definitions: Definitions) -> dict[str, Any]:
    shared = reached(definitions.schemas, schema)
    return {**schema, "$defs": shared} if shared else schema


def _check_compiles(parameters: dict[str, Any]) -> None:
    try:
        compile_schema({"type": "object", **parameters})
    except Exception as error:  # noqa: BLE001 - the validator raises several types for an invalid schema
        raise UnusableDefinitionError(f"its schema is invalid: {prose(str(error), 200)}") from None


def _first_paragraph(text: Any) -> Any:
    return re.split(r"\n\s*\n", text.strip(), maxsplit=1)[0] if isinstance(text, str) else None
