"""Fixes faults in schema.json and guide.md that have exactly one right correction.

These are: a byte order mark, UTF-16, Windows line endings, a comma after the last member, a `toolId` that is
not the declared one, a name that differs from a known name only in case, dashes, underscores or spaces, a
boolean or a number in quotation marks, and a version with fewer than three parts. Everything else in a file
stays as it is.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from jackfield.contract.manifest import FAMILY_DEFAULTS, family_schema, tool_schema
from jackfield.strict_json import pointer

from jackfield_builder.checks.parameters import TYPES
from jackfield_builder.json_positions import JsonNode, JsonSyntaxError, read_positions
from jackfield_builder.subschemas import FORMATS, KEYWORDS, walk
from jackfield_builder.tool_files import GUIDE, MAX_FAMILY_BYTES, SCHEMA
from jackfield_builder.tool_sources import Project

_SEPARATORS = re.compile(r"[-_ ]")
_SHORT_VERSION = re.compile(r"v?(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){0,2}")
_WHOLE_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})")

_MAX_PASSES = 3
"""A value can only be fixed after the name of its field, and a type only after the name of its keyword."""

_Place = tuple[str | int, ...]


class FixedFile(NamedTuple):
    """A file with its content before and after the fixes, and what was fixed."""

    path: Path
    before: str
    after: str
    fixes: tuple[str, ...]


class _Edit(NamedTuple):
    start: int
    end: int
    text: str
    what: str


def fix_project(project: Project) -> list[FixedFile]:
    """Return the files of a project's tools and families that can be fixed; nothing is written."""
    folders: dict[Path, str | None] = {
        tool.folder: tool.tool_id for tool in project.tools if tool.family is None and tool.schema is None
    }
    # A family whose shared file cannot be read has no tools, but the file may have a fault to fix here.
    for family in project.families:
        folders |= {family.folder: None, **{family.folder / each: each for each in family.folders}}
    files = {folder / name: tool_id for folder, tool_id in folders.items() for name in (SCHEMA, GUIDE)}
    return [fixed for path, tool_id in files.items() if (fixed := _fix_file(path, tool_id))]


def _fix_file(path: Path, tool_id: str | None) -> FixedFile | None:
    try:
        if not path.is_file() or path.stat().st_size > MAX_FAMILY_BYTES[SCHEMA]:
            return None
        data = path.read_bytes()
        before, fixes = _decode(data)
    except (OSError, UnicodeDecodeError):
        return None
    text = before.replace("\r\n", "\n")
    fixes += ["changed Windows line endings to Unix line endings"] if text != before else []
    if path.name == SCHEMA:
        text, more = fix_schema(text, tool_id)
        fixes += more
    return FixedFile(path, before, text, tuple(fixes)) if fixes else None


def _decode(data: bytes) -> tuple[str, list[str]]:
    for mark in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        if data.startswith(mark):
            return data.decode("utf-16"), ["changed UTF-16 to UTF-8"]
    if data.startswith(codecs.BOM_UTF8):
        return data.decode("utf-8-sig"), ["removed the byte order mark"]
    return data.decode("utf-8"), []


def fix_schema(text: str, tool_id: str | None) -> tuple[str, list[str]]:
    """Return the text of a schema.json with its fixes; `tool_id` is None for the shared file of a family."""
    fixes: list[str] = []
    for _ in range(_MAX_PASSES):
        text, found = _fix_once(text, tool_id)
        fixes += found
        if not found:
            break
    return text, fixes


def _fix_once(text: str, tool_id: str | None) -> tuple[str, list[str]]:
    try:
        commas = [
            _Edit(comma, comma + 1, "", f"line {text.count(chr(10), 0, comma) + 1}: removed an extra comma")
            for comma in read_positions(text).extra_commas
        ]
        text = _applied(text, commas)
        document = json.loads(text)
        root = read_positions(text).root
    except (JsonSyntaxError, ValueError, RecursionError):
        return text, []
    if not isinstance(document, dict):
        return text, [edit.what for edit in commas]
    fixer = _Fixer(text, root)
    edits = list(fixer.family(document) if tool_id is None else fixer.manifest(document, (), tool_id))
    return _applied(text, edits), [edit.what for edit in (*commas, *edits)]


def _applied(text: str, edits: Iterable[_Edit]) -> str:
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


class _Fixer:
    """Finds the faults in one document, and their places in its text."""

    def __init__(self, text: str, root: JsonNode) -> None:
        self._text = text
        self._nodes = dict(root.descendants())

    def family(self, document: Mapping[str, Any]) -> Iterator[_Edit]:
        yield from self._names(document, (), family_schema()["properties"])
        defaults, tools, definitions = (document.get(name) for name in ("defaults", "tools", "$defs"))
        if isinstance(document.get("version"), str):
            yield from self._version(document["version"], ("version",))
        if isinstance(defaults, dict):
            fields = tool_schema()["properties"]
            yield from self._fields(defaults, ("defaults",), {name: fields[name] for name in FAMILY_DEFAULTS})
        for name, definition in definitions.items() if isinstance(definitions, dict) else ():
            yield from self._schema(definition, ("$defs", name))
        for tool_id, manifest in tools.items() if isinstance(tools, dict) else ():
            if isinstance(manifest, dict):
                yield from self.manifest(manifest, ("tools", tool_id), tool_id)

    def manifest(self, manifest: Mapping[str, Any], path: _Place, tool_id: str) -> Iterator[_Edit]:
        yield from self._fields(manifest, path, tool_schema()["properties"])
        if isinstance(manifest.get("toolId"), str) and manifest["toolId"] != tool_id:
            yield self._value((*path, "toolId"), tool_id)
        for name in ("parameters", "returns"):
            yield from self._schema(manifest.get(name), (*path, name))

    def _fields(self, fields: Mapping[str, Any], path: _Place, known: Mapping[str, Any]) -> Iterator[_Edit]:
        yield from self._names(fields, path, known)
        for name, value in fields.items():
            where, field = (*path, name), known.get(name, {})
            if name == "version" and isinstance(value, str):
                yield from self._version(value, where)
            elif isinstance(value, str):
                yield from self._scalar(value, where, field)
            elif isinstance(value, list):
                allowed = field.get("items", {}).get("enum", ())
                for index, item in enumerate(value):
                    yield from self._choice(item, (*where, index), allowed)

    def _scalar(self, value: str, path: _Place, field: Mapping[str, Any]) -> Iterator[_Edit]:
        allowed = field.get("enum", ())
        if (field.get("type") == "boolean" or True in allowed) and value.lower() in {"true", "false"}:
            yield self._value(path, value.lower() == "true")
        elif field.get("type") == "integer" and _WHOLE_NUMBER.fullmatch(value):
            yield self._value(path, int(value))
        else:
            yield from self._choice(value, path, [each for each in allowed if isinstance(each, str)])

    def _version(self, value: str, path: _Place) -> Iterator[_Edit]:
        if _SHORT_VERSION.fullmatch(value):
            parts = value.removeprefix("v").split(".")
            if (whole := ".".join([*parts, "0", "0"][: max(3, len(parts))])) != value:
                yield self._value(path, whole)

    def _schema(self, schema: Any, path: _Place) -> Iterator[_Edit]:
        for each in walk(schema, path) if isinstance(schema, dict) else ():
            yield from self._names(each.schema, each.path, KEYWORDS)
            kind = each.schema.get("type")
            yield from self._choice(kind, (*each.path, "type"), TYPES)
            for index, item in enumerate(kind if isinstance(kind, list) else ()):
                yield from self._choice(item, (*each.path, "type", index), TYPES)
            yield from self._choice(each.schema.get("format"), (*each.path, "format"), FORMATS)

    def _choice(self, value: Any, path: _Place, allowed: Collection[str]) -> Iterator[_Edit]:
        if isinstance(value, str) and (meant := _meant(value, allowed)):
            yield self._value(path, meant)

    def _names(self, members: Mapping[str, Any], path: _Place, known: Collection[str]) -> Iterator[_Edit]:
        for name in members:
            meant = _meant(name, known)
            if meant and meant not in members and not name.startswith("x-"):
                start, end = self._nodes[path].keys[name]
                what = f"{pointer(*path, name)}: renamed to {meant}"
                yield _Edit(start, end, json.dumps(meant), what)

    def _value(self, path: _Place, value: Any) -> _Edit:
        node = self._nodes[path]
        written = json.dumps(value, ensure_ascii=False)
        what = f"{pointer(*path)}: changed {self._text[node.start : node.end]} to {written}"
        return _Edit(node.start, node.end, written, what)


def _meant(name: str, known: Collection[str]) -> str:
    """Return the one known name that differs only in case and separators; empty if there is none."""
    if name in known:
        return ""
    same = [each for each in known if _plain(each) == _plain(name)]
    return same[0] if len(same) == 1 else ""


def _plain(name: str) -> str:
    return _SEPARATORS.sub("", name).lower()
