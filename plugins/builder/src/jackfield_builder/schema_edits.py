"""Writes the schemas of a handler's types into schema.json; everything else in the file stays as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jackfield.atomic_files import write_atomically

from jackfield_builder.schema_agreement import disagreements, merged
from jackfield_builder.tool_draft import ToolDraft
from jackfield_builder.tool_files import SCHEMA
from jackfield_builder.type_schemas import normalised

_SPACE = re.compile(r"[ \t\r\n]*")
_WIDTH = 120
_INDENT = "  "
_decoder = json.JSONDecoder()


class SchemaEdit(NamedTuple):
    """A schema file and its text with the schemas of the types."""

    file: Path
    before: str
    after: str

    @property
    def changes(self) -> bool:
        """True if the new text differs."""
        return self.before != self.after

    def save(self) -> None:
        """Write the new text; a reader sees the old file or the new one."""
        path = self.file.resolve()
        mode = path.stat().st_mode
        write_atomically(path, self.after.encode())
        path.chmod(mode)


def schema_edits(drafts: Iterable[ToolDraft]) -> list[SchemaEdit]:
    """Return an edit for each schema file of the tools whose handlers have types."""
    texts: dict[Path, tuple[str, str]] = {}
    for draft in drafts:
        if draft.written is None or draft.types is None or draft.source.schema is not None:
            continue
        file, parents = _place(draft)
        before, after = texts.get(file) or (_read(file),) * 2
        for name, typed in (("parameters", draft.types.parameters), ("returns", draft.types.returns)):
            if typed is not None:
                after = _with_schema(after, (*parents, name), draft, typed)
        texts[file] = (before, after)
    return [SchemaEdit(file, *text) for file, text in texts.items()]


def _read(file: Path) -> str:
    with file.open(encoding="utf-8", newline="") as opened:
        return opened.read()


def _place(draft: ToolDraft) -> tuple[Path, tuple[str, ...]]:
    """Return the file with a tool's manifest, and the members that lead to it in a family's file."""
    source = draft.source
    if source.family is None:
        return source.folder / SCHEMA, ()
    if source.tool_id in source.family.tools:
        return source.folder / SCHEMA, ("tools", source.tool_id)
    return source.folder / source.tool_id / SCHEMA, ()


def _with_schema(text: str, path: Sequence[str], draft: ToolDraft, typed: dict[str, Any]) -> str:
    name = path[-1]
    written = (draft.schema or {}).get(name) if name in (draft.written or {}) else None
    if not isinstance(written, dict):
        return with_member(text, path, typed)
    same_form = normalised(written, results=name == "returns")
    if not any(True for _ in disagreements(same_form, typed)):
        return text
    return with_member(text, path, merged(same_form, typed))


def with_member(text: str, path: Sequence[str], value: Any) -> str:
    """Return a JSON text in which one member of an object has a new value, or is added at the end.

    The text must be valid JSON, and all members of the path but the last must exist.
    """
    start = root = _after_space(text, 1 if text.startswith("\ufeff") else 0)
    for name in path[:-1]:
        start = next(each.start for each in _members(text, start) if each.name == name)
    members = _members(text, start)
    outer = _indentation(text, start)
    margin = _margin(text, members) or outer + (_margin(text, _members(text, root)) or _INDENT)
    newline = "\r\n" if "\r\n" in text else "\n"
    found = next((each for each in members if each.name == path[-1]), None)
    if found is not None:
        column = len(margin) + len(json.dumps(path[-1])) + 2
        return text[: found.start] + _formatted(value, margin, column, newline) + text[found.end :]
    key = f"{json.dumps(path[-1])}: "
    written = key + _formatted(value, margin, len(margin) + len(key), newline)
    if not members:
        return f"{text[: start + 1]}{newline}{margin}{written}{newline}{outer}{text[start + 1 :].lstrip()}"
    end = members[-1].end
    return f"{text[:end]},{newline}{margin}{written}{text[end:]}"


class _Member(NamedTuple):
    name: str
    key: int
    start: int
    end: int


def _after_space(text: str, start: int) -> int:
    match = _SPACE.match(text, start)
    return match.end() if match else start


def _members(text: str, start: int) -> list[_Member]:
    """Return the members of the object that begins at a position."""
    found: list[_Member] = []
    position = _after_space(text, start + 1)
    while text[position] != "}":
        name, end = _decoder.raw_decode(text, position)
        value = _after_space(text, _after_space(text, end) + 1)
        _, after = _decoder.raw_decode(text, value)
        found.append(_Member(name, position, value, after))
        position = _after_space(text, after)
        if text[position] == ",":
            position = _after_space(text, position + 1)
    return found


def _margin(text: str, members: Sequence[_Member]) -> str:
    """Return the indentation of the members of an object; empty if the first does not start its line."""
    if not members:
        return ""
    line = text[text.rfind("\n", 0, members[0].key) + 1 : members[0].key]
    return line if line.isspace() else ""


def _indentation(text: str, position: int) -> str:
    """Return the indentation of the line at a position."""
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _formatted(value: Any, margin: str, column: int, newline: str) -> str:
    """Return JSON in which every value that fits on a line is on one line."""
    short = _on_one_line(value)
    if not isinstance(value, dict | list) or not value or column + len(short) < _WIDTH:
        return short
    inner = margin + ("\t" if "\t" in margin else _INDENT)
    keys = [f"{json.dumps(name, ensure_ascii=False)}: " for name in value] if isinstance(value, dict) else []
    parts = [
        key + _formatted(each, inner, len(inner) + len(key), newline)
        for key, each in zip(keys or [""] * len(value), _values(value), strict=True)
    ]
    opening, closing = "{}" if keys else "[]"
    return f"{opening}{newline}{inner}" + f",{newline}{inner}".join(parts) + f"{newline}{margin}{closing}"


def _values(value: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def _on_one_line(value: Any) -> str:
    if isinstance(value, dict) and value:
        parts = (
            f"{json.dumps(key, ensure_ascii=False)}: {_on_one_line(each)}" for key, each in value.items()
        )
        return f"{{ {', '.join(parts)} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_on_one_line, value))}]"
    return json.dumps(value, ensure_ascii=False)
