"""Merges an operation's parameters and request body into the arguments of one tool."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from jackfield_importers.definitions import dereferenced
from jackfield_importers.literals import prose, sentence
from jackfield_importers.names import argument_name, unique
from jackfield_importers.schema_conversion import WIRE, SchemaConverter
from jackfield_importers.schema_merge import UnmergeableError, flattened

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
_STYLES = {"path": "simple", "query": "form", "header": "simple", "cookie": "form"}
# The specification says that parameters with these names are ignored.
_IGNORED_HEADERS = {"accept", "content-type", "authorization"}


class UnsupportedOperationError(Exception):
    """An operation cannot be converted to a tool; the message says why."""


@dataclass(slots=True)
class RequestArguments:
    """A tool's arguments, and how they are converted to a request."""

    properties: dict[str, Any] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    parameters: list[tuple[str, str, str, str, bool, bool]] = field(default_factory=list)
    """Place, name, argument, style, explode, and whether the value is sent as JSON."""
    body: dict[str, str] | None = None
    whole_body: str = ""
    content_type: str = ""
    examples: list[dict[str, Any]] = field(default_factory=list)

    def schema(self) -> dict[str, Any]:
        """Return the tool's parameters."""
        made: dict[str, Any] = {"properties": self.properties}
        if self.required:
            made["required"] = self.required
        return made

    def add(self, name: str, place: str, schema: dict[str, Any], *, required: bool) -> str:
        """Add an argument; if its name is taken, its place becomes part of the name."""
        argument = argument_name(name, place)
        if argument in self.properties:
            argument = unique(argument_name(f"{place}_{argument}", place), self.properties)
        if required:
            self.required.append(argument)
            schema = {key: value for key, value in schema.items() if key != "default"}
        self.properties[argument] = schema
        return argument


class ArgumentReader:
    """Reads the arguments of the operations of one document."""

    def __init__(self, document: dict[str, Any], converter: SchemaConverter) -> None:
        self._document = document
        self._converter = converter

    def read(self, path_item: dict[str, Any], operation: dict[str, Any]) -> RequestArguments:
        """Return the arguments of an operation."""
        arguments = RequestArguments()
        given: dict[str, Any] = {}
        for parameter in self._parameters(path_item, operation):
            argument = self._add_parameter(arguments, parameter)
            example = _example(self._document, parameter)
            if example is not None:
                given[argument] = example
        self._add_body(arguments, operation)
        bodies = arguments.examples or ([{}] if given else [])
        arguments.examples = [{**given, **each} for each in bodies]
        return arguments

    def _parameters(self, path_item: dict[str, Any], operation: dict[str, Any]) -> list[dict[str, Any]]:
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for each in (*path_item.get("parameters", ()), *operation.get("parameters", ())):
            parameter = dereferenced(self._document, each)
            key = (parameter["in"], parameter["name"])
            if key[0] != "header" or key[1].lower() not in _IGNORED_HEADERS:
                found[key] = parameter
        return list(found.values())

    def _add_parameter(self, arguments: RequestArguments, parameter: dict[str, Any]) -> str:
        place, name = parameter["in"], parameter["name"]
        content: dict[str, Any] = parameter.get("content") or {}
        media: dict[str, Any] = next(iter(content.values())) if content else parameter
        raw = media.get("schema", {})
        converted = self._converter.convert(raw, name)
        if converted.keys().isdisjoint({"type", "enum", "const", "anyOf", "$ref"}):
            # A value of unknown type is sent as text.
            converted = {**converted, "type": "string"}
        told = sentence(prose(parameter.get("description"), 400))
        if told:
            converted = {**converted, "description": told}
        required = parameter.get("required") is True or place == "path"
        style = parameter.get("style", _STYLES[place])
        explode = parameter.get("explode", style in {"form", "deepObject"})
        argument = arguments.add(name, place, converted, required=required)
        arguments.parameters.append((place, name, argument, style, bool(explode), bool(content)))
        return argument

    def _add_body(self, arguments: RequestArguments, operation: dict[str, Any]) -> None:
        body = dereferenced(self._document, operation.get("requestBody"))
        if not isinstance(body, dict):
            return
        content = body.get("content", {})
        kind, media = self._media(content)
        if media is None:
            # Without its body, an upload would replace a file with nothing, even if the body is optional.
            if content or body.get("required") is True:
                kinds = ", ".join(content) or "nothing"
                raise UnsupportedOperationError(f"its body is {prose(kinds, 80)}, not JSON or a form")
            return
        arguments.content_type = kind
        raw = media.get("schema", {})
        given = _examples(self._document, media)
        required = body.get("required") is True
        merged = self._members(raw, optional=not required)
        if merged is None:
            self._add_whole_body(arguments, body, raw, given, required=required)
            return
        arguments.body = {}
        renamed: dict[str, str] = {}
        wanted = merged.get("required", ()) if required else ()
        for name, schema in merged["properties"].items():
            argument = arguments.add(name, "body", schema, required=name in wanted)
            arguments.body[argument] = name
            renamed[name] = argument
        arguments.examples = [
            {renamed[name]: value for name, value in each.items() if name in renamed}
            for each in given
            if isinstance(each, dict)
        ]

    def _add_whole_body(
        self, arguments: RequestArguments, body: dict[str, Any], raw: Any, given: list[Any], *, required: bool
    ) -> None:
        if arguments.content_type == FORM:
            raise UnsupportedOperationError("its form has no fixed fields")
        converted = self._converter.convert(raw, "body")
        told = sentence(prose(body.get("description"), 400))
        if told:
            converted = {**converted, "description": told}
        arguments.whole_body = arguments.add("body", "request", converted, required=required)
        arguments.examples = [{arguments.whole_body: each} for each in given]

    def _members(self, raw: Any, *, optional: bool) -> dict[str, Any] | None:
        """Return the body's schema as an object with members; None if the body has to be one argument.

        An optional body with required members stays one argument: its members belong together.
        """
        try:
            flat = (
                flattened(raw, lambda each: dereferenced(self._document, each))
                if isinstance(raw, dict)
                else {}
            )
        except UnmergeableError:
            return None
        if flat.get("nullable") or not flat.keys().isdisjoint({"anyOf", "oneOf"}):
            return None
        if optional and flat.get("required"):
            return None
        converted = self._converter.convert(flat)
        if converted.get("type") != "object" or WIRE in converted or not converted.get("properties"):
            return None
        return converted

    def _media(self, content: dict[str, Any]) -> tuple[str, dict[str, Any] | None]:
        for kind, media in content.items():
            bare = kind.partition(";")[0].strip().lower()
            if bare == JSON or bare.endswith("+json"):
                return bare, media
        for kind, media in content.items():
            if kind.partition(";")[0].strip().lower() == FORM:
                return FORM, media
        return "", None


def result_schema(document: dict[str, Any], operation: dict[str, Any]) -> Any:
    """Return the schema of a successful JSON response; None if there is no schema, or several."""
    found: list[Any] = []
    for status, given in operation.get("responses", {}).items():
        # The response `default` usually describes an error.
        if not status.startswith("2"):
            continue
        response = dereferenced(document, given)
        content = response.get("content", {})
        schemas = [
            media["schema"]
            for kind, media in content.items()
            if kind.partition(";")[0].strip().lower().endswith("json") and "schema" in media
        ]
        # A response without a schema may be anything, so no schema describes every success.
        found.append(schemas[0] if len(schemas) == 1 and len(content) == 1 else None)
    return found[0] if len(found) == 1 else None


def _example(document: dict[str, Any], holder: dict[str, Any]) -> Any:
    return next(iter(_examples(document, holder)), None)


def _examples(document: dict[str, Any], holder: dict[str, Any]) -> list[Any]:
    if "example" in holder:
        return [holder["example"]]
    named = holder.get("examples")
    if not isinstance(named, dict):
        return []
    values = [dereferenced(document, each) for each in named.values()]
    return [each["value"] for each in values if isinstance(each, dict) and "value" in each]
