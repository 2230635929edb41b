"""Bundles the shared definitions of a family into a tool's schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from jackfield_builder.subschemas import walk

_DEFS = "#/$defs/"


def bundle(schema: dict[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema with those shared definitions that it reaches, directly or through others.

    `#/$defs/NAME` means the same before and after: `$defs` of the shared file and of the schema itself are
    one namespace, in which no name may be defined twice.
    """
    own = schema.get("$defs")
    known = own if isinstance(own, dict) else {}
    needed: dict[str, Any] = {}
    pending = [schema]
    while pending:
        for name in referenced_definitions(pending.pop()):
            if name in shared and name not in known and name not in needed:
                needed[name] = shared[name]
                pending += [shared[name]] if isinstance(shared[name], dict) else []
    return {**schema, "$defs": {**known, **dict(sorted(needed.items()))}} if needed else schema


def referenced_definitions(schema: dict[str, Any]) -> Iterator[str]:
    """Yield the names of the definitions that a schema refers to."""
    for each in walk(schema):
        reference = each.schema.get("$ref")
        if isinstance(reference, str) and reference.startswith(_DEFS):
            name = reference.removeprefix(_DEFS).partition("/")[0]
            yield unquote(name).replace("~1", "/").replace("~0", "~")
