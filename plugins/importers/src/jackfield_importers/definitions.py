"""The shared `$defs` of a family: every schema that a source refers to, under one unique name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jackfield.strict_json import pointer

from jackfield_importers.errors import SourceError
from jackfield_importers.names import argument_name, unique


def resolve_pointer(document: Any, reference: str) -> Any:
    """Return what a reference such as `#/components/schemas/Pet` points to."""
    if reference != "#" and not reference.startswith("#/"):
        raise SourceError(
            f"the reference {reference!r} points outside the document; bundle the documents into one first"
        )
    from urllib.parse import unquote

    found = document
    for part in unquote(reference[2:]).split("/") if reference != "#" else ():
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and key in found:
            found = found[key]
        elif isinstance(found, list) and key.isdecimal() and int(key) < len(found):
            found = found[int(key)]
        else:
            raise SourceError(f"the reference {reference!r} points to nothing")
    return found


def dereferenced(document: Any, value: Any) -> Any:
    """Follow `$ref` until there is none; a circular chain is an error."""
    seen: list[str] = []
    while isinstance(value, dict) and isinstance(value.get("$ref"), str):
        reference = value["$ref"]
        if reference in seen:
            raise SourceError(f"the reference {reference!r} is circular")
        seen.append(reference)
        value = resolve_pointer(document, reference)
    return value


class Definitions:
    """Collects converted schemas by reference; recursive schemas refer to their own name."""

    def __init__(self) -> None:
        self.schemas: dict[str, dict[str, Any]] = {}
        self._names: dict[tuple[str, ...], str] = {}
        self._waiting: list[tuple[str, Callable[[], dict[str, Any]]]] = []

    def reference(self, key: tuple[str, ...], suffix: str, convert: Callable[[], dict[str, Any]]) -> str:
        """Return the reference to a definition, which `convert_waiting` converts."""
        if key not in self._names:
            wanted = argument_name(key[-1].rpartition("/")[2], "schema") + suffix
            name = self._names[key] = unique(wanted, self.schemas)
            self.schemas[name] = {}
            self._waiting.append((name, convert))
        return "#" + pointer("$defs", self._names[key])

    def convert_waiting(self) -> None:
        """Convert the referenced definitions, in a loop because chains of references may be long."""
        while self._waiting:
            name, convert = self._waiting.pop()
            self.schemas[name] = convert()


def reached(definitions: dict[str, Any], *schemas: Any) -> dict[str, Any]:
    """Return the definitions that these schemas use, directly or through others, in a stable order."""
    found: set[str] = set()
    waiting = list(schemas)
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            reference = each.get("$ref")
            name = reference.removeprefix("#/$defs/") if isinstance(reference, str) else ""
            if name in definitions and name not in found:
                found.add(name)
                waiting.append(definitions[name])
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)
    return {name: schema for name, schema in definitions.items() if name in found}
