"""Turns the operations of an OpenAPI document into the tools of a family."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from importlib import resources
from typing import Any
from urllib.parse import quote, urlsplit

from jackfield_importers.definitions import Definitions, dereferenced, reached
from jackfield_importers.effects import from_method
from jackfield_importers.errors import SourceError
from jackfield_importers.family import ImportedFamily, ImportedTool, summary_of
from jackfield_importers.literals import prose, python_literal, sentence
from jackfield_importers.names import python_name, snake_case, unique
from jackfield_importers.openapi.parameters import (
    ArgumentReader,
    RequestArguments,
    UnsupportedOperationError,
    result_schema,
)
from jackfield_importers.schema_conversion import WIRE, SchemaConverter

_METHODS = ("get", "head", "post", "put", "patch", "delete", "options")
_PATH_SAFE = "/{}:@!$&'()*+,;=~-._"
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


class OpenApiImport:
    """The import of one document."""

    def __init__(
        self,
        document: dict[str, Any],
        *,
        name: str = "",
        only: str = "*",
        base_url: str = "",
        prefix: str = "",
    ) -> None:
        info = document.get("info", {})
        self._document = document
        self._only = only
        self._prefix = prefix
        self._name = name or snake_case(str(info.get("title", "")), "api")[:40].rstrip("_")
        self._title = prose(info.get("title"), 120) or self._name
        self._variable = f"{self._name.upper()}_BASE_URL"
        self._base_url = base_url or _server(document)
        self._definitions = Definitions()
        self._credentials = _credentials(document, self._name)
        self._skipped: list[str] = []

    def family(self) -> ImportedFamily:
        """Return the family; raises `SourceError` if no operation can be imported."""
        tools: dict[str, ImportedTool] = {}
        total = 0
        for method, path, item, operation in self._operations():
            total += 1
            wanted = self._tool_id(method, path, operation)
            # The pattern may match the tool's id, or `GET /path` or the path as in the document.
            if not any(fnmatchcase(each, self._only) for each in (wanted, f"{method.upper()} {path}", path)):
                continue
            tool_id = unique(wanted, tools)
            try:
                tools[tool_id] = self._tool(tool_id, method, path, item, operation)
            except UnsupportedOperationError as error:
                self._skipped.append(f"`{tool_id}` was not imported: {error}")
        if not total:
            raise SourceError("the document has no operations")
        if not tools:
            reason = f"; {self._skipped[0]}" if self._skipped else f": --only {self._only!r} matches none"
            raise SourceError(f"none of the {total} operations can be imported{reason}")
        return ImportedFamily(
            name=self._name,
            title=self._title,
            source="an OpenAPI document",
            definitions=self._definitions,
            tools=list(tools.values()),
            dependencies=("httpx>=0.28,<1",),
            modules={
                "api.py": self._api_module(),
                **{name: runtime_module(name) for name in ("http_api.py", "wire_arguments.py")},
            },
            imports=("from . import http_api as _http", "from .api import API as _API"),
            setup=self._setup(),
            notes=self._notes(),
        )

    def _operations(self) -> Iterator[tuple[str, str, dict[str, Any], dict[str, Any]]]:
        for path, given in self._document.get("paths", {}).items():
            item = dereferenced(self._document, given)
            if path.startswith("/") and isinstance(item, dict):
                for method in _METHODS:
                    if isinstance(item.get(method), dict):
                        yield method, path, item, item[method]

    def _tool_id(self, method: str, path: str, operation: dict[str, Any]) -> str:
        named = operation.get("operationId") or f"{method} {path}"
        return python_name(snake_case(f"{self._prefix} {named}".strip(), "call"))

    def _tool(
        self, tool_id: str, method: str, path: str, item: dict[str, Any], operation: dict[str, Any]
    ) -> ImportedTool:
        converter = SchemaConverter(self._document, self._definitions)
        arguments = ArgumentReader(self._document, converter).read(item, operation)
        returns = self._returns(operation)
        self._definitions.convert_waiting()
        declared = {each[1] for each in arguments.parameters if each[0] == "path"}
        missing = [name for name in _PLACEHOLDER.findall(path) if name not in declared or "/" in name]
        if missing:
            raise UnsupportedOperationError(
                f"its path has the placeholder {prose(missing[0], 40)!r}, which is not a parameter"
            )
        summary = summary_of(
            operation.get("summary"),
            operation.get("description"),
            fallback=tool_id.replace("_", " "),
        )
        details = sentence(prose(operation.get("description"), 600))
        notes = list(converter.notes)
        if operation.get("deprecated") is True:
            notes.append("the document marks the operation as deprecated")
        notes += self._missing_credentials(operation)
        return ImportedTool(
            tool_id=tool_id,
            origin=f"{method.upper()} {path}",
            summary=summary,
            details=""
            if details.startswith(summary.rstrip(".")) and len(details) < len(summary) + 2
            else details,
            effects=from_method(method),
            parameters=arguments.schema(),
            returns=returns,
            call=self._call(tool_id, method, path, arguments, operation),
            examples=arguments.examples,
            notes=notes,
        )

    def _returns(self, operation: dict[str, Any]) -> dict[str, Any] | None:
        schema = result_schema(self._document, operation)
        if schema is None:
            return None
        converted = SchemaConverter(self._document, self._definitions, results=True).convert(schema)
        return converted or None

    def _call(
        self, tool_id: str, method: str, path: str, arguments: RequestArguments, operation: dict[str, Any]
    ) -> str:
        members: list[tuple[str, Any]] = []
        if arguments.body is not None:
            members.append(("body", arguments.body))
        if arguments.whole_body:
            members.append(("whole_body", arguments.whole_body))
        if arguments.body is not None or arguments.whole_body:
            members.append(("content_type", arguments.content_type))
        security = self._security(operation)
        if security:
            members.append(("security", security))
        schema = arguments.schema()
        if WIRE in str(schema) or WIRE in str(reached(self._definitions.schemas, schema)):
            members.append(("encoded", True))
        lines = [
            f"            {python_literal(each)},"
            for each in (tool_id, method.upper(), quote(path, safe=_PATH_SAFE))
        ]
        if arguments.parameters:
            lines.append("            parameters=(")
            lines += [
                f"                _http.Parameter({_parameter_literal(each)}),"
                for each in arguments.parameters
            ]
            lines.append("            ),")
        lines += [f"            {name}={python_literal(value)}," for name, value in members]
        body = "\n".join(lines)
        request = f"        _http.Operation(\n{body}\n        ),"
        return f"_http.call(\n        _API,\n{request}\n        args,\n    )"

    def _alternatives(self, operation: dict[str, Any]) -> tuple[tuple[str, ...], ...]:
        """Return the sets of security schemes with which the operation can be called."""
        given = operation.get("security", self._document.get("security", []))
        return tuple(dict.fromkeys(tuple(each) for each in given))

    def _security(self, operation: dict[str, Any]) -> tuple[tuple[str, ...], ...]:
        """Return the alternatives whose schemes are all supported."""
        alternatives = self._alternatives(operation)
        return tuple(each for each in alternatives if all(name in self._credentials for name in each))

    def _missing_credentials(self, operation: dict[str, Any]) -> list[str]:
        named = [name for each in self._alternatives(operation) for name in each]
        if not named or any(self._security(operation)):
            return []
        unsupported = dict.fromkeys(name for name in named if name not in self._credentials)
        schemes = " or ".join(repr(prose(name, 60)) for name in unsupported)
        return [f"requests are sent without credentials, because the import does not support {schemes}"]

    def _api_module(self) -> str:
        lines = ['"""The API of this family: its address and its credentials, from the environment."""', ""]
        lines += ["from .http_api import Api, Credential", "", "API = Api("]
        lines += [
            f"    variable={python_literal(self._variable)},",
            f"    default={python_literal(self._base_url)},",
        ]
        lines += ["    credentials={"]
        for name, credential in self._credentials.items():
            lines.append(f"        {python_literal(name)}: Credential{python_literal(credential)},")
        return "\n".join([*lines, "    },", ")", ""])

    def _setup(self) -> tuple[str, ...]:
        default = f"; default: `{self._base_url}`" if self._base_url else "; required"
        lines = [f"- `{self._variable}`: the address of the service{default}"]
        kinds = {"basic": "the user name and the password, as `user:password`", "bearer": "the access token"}
        lines += [f"- `{each[1]}`: {kinds.get(each[0], 'the key')}" for each in self._credentials.values()]
        return tuple(lines)

    def _notes(self) -> list[str]:
        notes = []
        if self._base_url:
            notes.append(f"requests go to `{self._base_url}` unless the operator sets `{self._variable}`")
        else:
            notes.append(f"the document states no address: the operator must set `{self._variable}`")
        for name, each in self._credentials.items():
            notes.append(f"`{each[1]}` holds the secret of {prose(name, 60)!r}")
        return [*notes, *self._skipped]


def _parameter_literal(parameter: tuple[str, str, str, str, bool, bool]) -> str:
    """Return the arguments of `http_api.Parameter`, without those that have the default value."""
    place, name, argument, style, explode, as_json = parameter
    is_form = style == "form"
    given = {
        "argument": argument if argument != name else None,
        "style": style if style not in {"form", "simple"} else None,
        "exploded": explode if explode != (is_form or style == "deepObject") else None,
        "as_json": True if as_json else None,
    }
    members = [f"{key}={python_literal(value)}" for key, value in given.items() if value is not None]
    return ", ".join([python_literal(place), python_literal(name), *members])


def runtime_module(name: str) -> str:
    """Return the text of a module that generated packages contain."""
    return resources.files("jackfield_importers.runtime").joinpath(name).read_text("utf-8")


def _server(document: dict[str, Any]) -> str:
    """Return the address of the first server; empty if it is not a complete HTTP address."""
    server: dict[str, Any] = next(iter(document.get("servers") or ()), {})
    variables = server.get("variables") or {}
    filled = _PLACEHOLDER.sub(
        lambda match: str(variables.get(match[1], {}).get("default", "")), server.get("url", "")
    )
    return checked_address(filled) or ""


def checked_address(address: str) -> str | None:
    """Return an HTTP address if it is valid and has no query, fragment or credentials; otherwise None."""
    try:
        parts = urlsplit(address)
        valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port is not False
    except ValueError:
        return None
    if not valid or parts.query or parts.fragment or parts.username or not re.fullmatch(r"[!-~]+", address):
        return None
    return None if "`" in address else address.rstrip("/")


def _credentials(document: dict[str, Any], family: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    variables: set[str] = {f"{family}_base_url"}
    for name, given in document.get("components", {}).get("securitySchemes", {}).items():
        scheme = dereferenced(document, given)
        variable = unique(snake_case(f"{family} {name}", "key"), variables)
        variables.add(variable)
        kind = scheme.get("type")
        if kind == "apiKey":
            found[name] = (scheme["in"], variable.upper(), scheme["name"])
        elif kind == "http" and str(scheme.get("scheme")).lower() == "basic":
            found[name] = ("basic", variable.upper())
        elif kind in {"oauth2", "openIdConnect"} or str(scheme.get("scheme")).lower() == "bearer":
            found[name] = ("bearer", variable.upper())
    return found
