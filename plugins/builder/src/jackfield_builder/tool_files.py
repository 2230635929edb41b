"""Reads the files of tools and families; for an unusable file, returns a problem instead of its content."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

from jackfield import strict_json
from jackfield.strict_json import JsonFaultKind

from jackfield_builder.findings import CheckCode

SCHEMA, GUIDE, HANDLER = "schema.json", "guide.md", "handler.py"

_POSITION = re.compile(r"line (\d+), column (\d+)")

MAX_BYTES = {SCHEMA: 256 * 1024, GUIDE: 64 * 1024, HANDLER: 1024 * 1024}

MAX_FAMILY_BYTES = {SCHEMA: 1024 * 1024, GUIDE: 1024 * 1024, HANDLER: 1024 * 1024}
"""The limits of the files that a family's tools share; each tool's part has the limits of a tool."""

_MISSING = {
    SCHEMA: CheckCode.SCHEMA_MISSING,
    GUIDE: CheckCode.GUIDE_MISSING,
    HANDLER: CheckCode.HANDLER_MISSING,
}

_JSON_FAULTS = {
    JsonFaultKind.SYNTAX: CheckCode.BAD_JSON,
    JsonFaultKind.DUPLICATE_KEY: CheckCode.DUPLICATE_KEY,
    JsonFaultKind.NUMBER: CheckCode.BAD_NUMBER,
    JsonFaultKind.SURROGATE: CheckCode.BAD_TEXT,
    JsonFaultKind.DEPTH: CheckCode.TOO_DEEP,
}

_JSON_TYPES: dict[type, str] = {
    list: "an array",
    str: "a string",
    int: "a number",
    float: "a number",
    bool: "a boolean",
    type(None): "null",
}


class FileProblem(NamedTuple):
    """A problem with a file or a part of it: the code, a message and the place."""

    code: CheckCode
    message: str
    file: str
    path: str = ""
    hint: str = ""
    """How to fix it, if the hint of the code is not enough."""


def read_text(folder: Path, name: str, package: str, limit: int) -> str | FileProblem:
    """Return the text of a file, or why it cannot be used."""
    path = folder / name
    if path.exists() and not path.is_file():
        # A folder, or a pipe, which would block the build.
        return FileProblem(CheckCode.UNREADABLE, "not a regular file", name)
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except FileNotFoundError:
        return FileProblem(_MISSING[name], f"{package} has no {name}", name)
    except OSError as error:
        return FileProblem(CheckCode.UNREADABLE, f"{error.strerror}", name)
    if len(data) > limit:
        return too_large(name, limit)
    try:
        return data.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        message = f"byte 0x{data[error.start]:02x} at offset {error.start} is not UTF-8"
        return FileProblem(CheckCode.NOT_UTF8, message, name, f"line {line}")


def too_large(name: str, limit: int) -> FileProblem:
    """Return the problem of a file, or of a tool's part of it, that exceeds a limit."""
    return FileProblem(CheckCode.TOO_LARGE, f"larger than {limit // 1024} KiB", name)


def _json_hint(text: str, where: str) -> str:
    """Return a hint if there is Python or JavaScript syntax at the place of a syntax error."""
    if not (place := _POSITION.fullmatch(where)):
        return ""
    rest = text.split("\n")[int(place[1]) - 1][int(place[2]) - 1 :].lstrip()
    if rest.startswith(("//", "/*", "#")):
        return "remove the comment; JSON has none"
    return "write strings in double quotes" if rest.startswith("'") else ""


def parse_object(text: str, name: str = SCHEMA) -> dict[str, Any] | list[FileProblem]:
    """Return the JSON object in a text, or everything that is wrong with it."""
    try:
        document = strict_json.loads(text.removeprefix("\ufeff"))
    except strict_json.StrictJsonError as error:
        return [
            FileProblem(_JSON_FAULTS[each.kind], each.message, name, each.where, _json_hint(text, each.where))
            for each in error.faults
        ]
    if not isinstance(document, dict):
        return [FileProblem(CheckCode.NOT_AN_OBJECT, f"it is {_JSON_TYPES[type(document)]}", name, "/")]
    return document
