"""A tool under inspection: its three files, read and parsed as far as they can be."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jackfield import strict_json
from jackfield.strict_json import JsonFaultKind

from jackfield_builder.findings import Code, Finding
from jackfield_builder.guides import Guide
from jackfield_builder.sources import ToolSource

SCHEMA, GUIDE, HANDLER = "schema.json", "guide.md", "handler.py"

MAX_BYTES = {SCHEMA: 256 * 1024, GUIDE: 64 * 1024, HANDLER: 1024 * 1024}

_MISSING = {SCHEMA: Code.SCHEMA_MISSING, GUIDE: Code.GUIDE_MISSING, HANDLER: Code.HANDLER_MISSING}

_JSON_FAULTS = {
    JsonFaultKind.SYNTAX: Code.BAD_JSON,
    JsonFaultKind.DUPLICATE_KEY: Code.DUPLICATE_KEY,
    JsonFaultKind.NUMBER: Code.BAD_NUMBER,
    JsonFaultKind.SURROGATE: Code.BAD_TEXT,
    JsonFaultKind.DEPTH: Code.TOO_DEEP,
}


@dataclass(slots=True)
class Draft:
    """What could be read of a tool; what could not is None, and a finding says why."""

    source: ToolSource
    schema: dict[str, Any] | None = None
    guide: Guide | None = None
    handler: str | None = None
    findings: list[Finding] = field(default_factory=list)

    @property
    def parameters(self) -> dict[str, Any] | None:
        """The parameters, when they are at least an object."""
        return self._object("parameters")

    @property
    def returns(self) -> dict[str, Any] | None:
        """The schema of the result, when there is one."""
        return self._object("returns")

    def _object(self, name: str) -> dict[str, Any] | None:
        value = self.schema.get(name) if self.schema else None
        return value if isinstance(value, dict) else None

    @property
    def sound(self) -> bool:
        """Whether nothing was found that keeps the tool out of a registry."""
        return not any(finding.is_error for finding in self.findings)

    def report(self, code: Code, message: str, *, file: str = "", path: str = "", hint: str = "") -> None:
        """Add a finding about this tool."""
        source = self.source
        self.findings.append(Finding(code, message, source.distribution, source.tool_id, file, path, hint))

    def has(self, *codes: Code) -> bool:
        """Whether one of these was found."""
        return any(finding.code in codes for finding in self.findings)


def read(source: ToolSource) -> Draft:
    """Read a tool's files; whatever is wrong with them becomes a finding."""
    draft = Draft(source)
    schema_text = source.schema if source.schema is not None else _text(draft, SCHEMA)
    guide_text = source.guide if source.guide is not None else _text(draft, GUIDE)
    draft.handler = _text(draft, HANDLER)
    if schema_text is not None:
        draft.schema = _schema(draft, schema_text)
    if guide_text is not None:
        draft.guide = Guide.parse(guide_text)
    return draft


def _text(draft: Draft, name: str) -> str | None:
    path: Path = draft.source.folder / name
    if path.exists() and not path.is_file():
        # A folder, or a pipe that would be waited for.
        draft.report(Code.UNREADABLE, "not a regular file", file=name)
        return None
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES[name] + 1)
    except FileNotFoundError:
        draft.report(_MISSING[name], f"{draft.source.package} has no {name}", file=name)
        return None
    except OSError as error:
        draft.report(Code.UNREADABLE, f"{error.strerror}", file=name)
        return None
    if len(data) > MAX_BYTES[name]:
        limit = MAX_BYTES[name] // 1024
        draft.report(Code.TOO_LARGE, f"larger than {limit} KiB", file=name)
        return None
    try:
        return data.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        message = f"byte 0x{data[error.start]:02x} at offset {error.start} is not UTF-8"
        draft.report(Code.NOT_UTF8, message, file=name, path=f"line {line}")
        return None


def _schema(draft: Draft, text: str) -> dict[str, Any] | None:
    try:
        document = strict_json.loads(text.removeprefix("\ufeff"))
    except strict_json.StrictJsonError as error:
        for fault in error.faults:
            draft.report(_JSON_FAULTS[fault.kind], fault.message, file=SCHEMA, path=fault.where)
        return None
    if not isinstance(document, dict):
        draft.report(Code.NOT_AN_OBJECT, f"it is a JSON {type(document).__name__}", file=SCHEMA, path="/")
        return None
    return document
