"""Reads the three files of a tool into a draft, which the checks inspect."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from jackfield import strict_json
from jackfield.strict_json import JsonFaultKind
from markdown_it import MarkdownIt
from markdown_it.token import Token

from jackfield_builder.findings import CheckCode, Finding
from jackfield_builder.tool_sources import ToolSource
from jackfield_builder.type_schemas import HandlerSchemas

SCHEMA, GUIDE, HANDLER = "schema.json", "guide.md", "handler.py"

MAX_BYTES = {SCHEMA: 256 * 1024, GUIDE: 64 * 1024, HANDLER: 1024 * 1024}

MAX_SUMMARY = 250
"""The maximum length of a guide's summary, in characters."""

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


class GuideExample(NamedTuple):
    """A fenced JSON block of a guide: arguments or result of a call."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class ToolGuide:
    """A parsed `guide.md`: its text, its summary and its examples."""

    text: str
    summary: str
    calls: tuple[GuideExample, ...]
    results: tuple[GuideExample, ...]

    @classmethod
    def parse(cls, text: str) -> ToolGuide:
        """Parse a guide; a fence tagged `json` is a call, one tagged `json result` is a result."""
        tokens = _markdown().parse(text)
        summary, in_section = "", False
        examples: dict[str, list[GuideExample]] = {"json": [], "json result": []}
        for index, token in enumerate(tokens):
            if token.type == "paragraph_open" and token.level == 0 and not summary:
                # The next two tokens are the paragraph's text and its end. In a section, a paragraph right
                # before an example is what the user says, not a summary.
                follows = tokens[index + 3 : index + 4]
                if not (in_section and follows and _tag(follows[0]) in examples):
                    summary = " ".join(tokens[index + 1].content.split())
            elif token.type == "heading_open" and token.tag != "h1":
                in_section = True
            elif (tag := _tag(token)) in examples and token.map:
                examples[tag].append(GuideExample(token.map[0] + 2, token.content))
        return cls(text, summary, tuple(examples["json"]), tuple(examples["json result"]))


def _tag(token: Token) -> str:
    return " ".join(token.info.lower().split()) if token.type == "fence" else ""


@cache
def _markdown() -> MarkdownIt:
    return MarkdownIt("commonmark")


@dataclass(slots=True)
class ToolDraft:
    """The files of a tool; a file that could not be read is None and has a finding."""

    source: ToolSource
    schema: dict[str, Any] | None = None
    guide: ToolGuide | None = None
    handler: str | None = None
    findings: list[Finding] = field(default_factory=list)
    types: HandlerSchemas | None = None
    """The schemas of the handler's types; None if the handler was not imported."""
    from_types: set[str] = field(default_factory=set)
    """Which of `parameters` and `returns` come from the types, because the file has none."""

    @property
    def parameters(self) -> dict[str, Any] | None:
        """The schema of the arguments; None unless it is an object."""
        return self._object("parameters")

    @property
    def returns(self) -> dict[str, Any] | None:
        """The schema of the result; None unless it is an object."""
        return self._object("returns")

    def _object(self, name: str) -> dict[str, Any] | None:
        value = self.schema.get(name) if self.schema else None
        return value if isinstance(value, dict) else None

    @property
    def is_valid(self) -> bool:
        """True if no finding so far is an error."""
        return not any(finding.is_error for finding in self.findings)

    def report(
        self, code: CheckCode, message: str, *, file: str = "", path: str = "", hint: str = ""
    ) -> None:
        """Add a finding about this tool; one about a schema of the types is in the handler."""
        source = self.source
        if file == SCHEMA and path.split("/")[1:2] and path.split("/")[1] in self.from_types:
            file, hint = HANDLER, hint or f"{code.hint}; the schema comes from the types in the signature"
        self.findings.append(Finding(code, message, source.distribution, source.tool_id, file, path, hint))

    def has(self, *codes: CheckCode) -> bool:
        """Return whether there is a finding with one of these codes."""
        return any(finding.code in codes for finding in self.findings)


def read_tool(source: ToolSource) -> ToolDraft:
    """Read a tool's files; problems with them become findings."""
    draft = ToolDraft(source)
    schema_text = source.schema if source.schema is not None else _text(draft, SCHEMA)
    guide_text = source.guide if source.guide is not None else _text(draft, GUIDE)
    draft.handler = _text(draft, HANDLER)
    if schema_text is not None:
        draft.schema = _schema(draft, schema_text)
    if guide_text is not None:
        draft.guide = ToolGuide.parse(guide_text)
    return draft


def _text(draft: ToolDraft, name: str) -> str | None:
    path: Path = draft.source.folder / name
    if path.exists() and not path.is_file():
        # A folder, or a pipe, which would block the build.
        draft.report(CheckCode.UNREADABLE, "not a regular file", file=name)
        return None
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES[name] + 1)
    except FileNotFoundError:
        draft.report(_MISSING[name], f"{draft.source.package} has no {name}", file=name)
        return None
    except OSError as error:
        draft.report(CheckCode.UNREADABLE, f"{error.strerror}", file=name)
        return None
    if len(data) > MAX_BYTES[name]:
        limit = MAX_BYTES[name] // 1024
        draft.report(CheckCode.TOO_LARGE, f"larger than {limit} KiB", file=name)
        return None
    try:
        return data.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        message = f"byte 0x{data[error.start]:02x} at offset {error.start} is not UTF-8"
        draft.report(CheckCode.NOT_UTF8, message, file=name, path=f"line {line}")
        return None


def _schema(draft: ToolDraft, text: str) -> dict[str, Any] | None:
    try:
        document = strict_json.loads(text.removeprefix("\ufeff"))
    except strict_json.StrictJsonError as error:
        for fault in error.faults:
            draft.report(_JSON_FAULTS[fault.kind], fault.message, file=SCHEMA, path=fault.where)
        return None
    if not isinstance(document, dict):
        draft.report(
            CheckCode.NOT_AN_OBJECT, f"it is a JSON {type(document).__name__}", file=SCHEMA, path="/"
        )
        return None
    return document
