"""Reads the files of a tool, its own or those of its family, into a draft, which the checks inspect."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from typing import Any, NamedTuple

from jackfield.distributions import FAMILIES, TOOLS
from markdown_it import MarkdownIt
from markdown_it.token import Token

from jackfield_builder.findings import CheckCode, Finding
from jackfield_builder.implied_fields import complete_manifest, semantic_version
from jackfield_builder.schema_bundle import bundle
from jackfield_builder.tool_families import Family
from jackfield_builder.tool_files import (
    GUIDE,
    HANDLER,
    MAX_BYTES,
    SCHEMA,
    FileProblem,
    parse_object,
    read_text,
    too_large,
)
from jackfield_builder.tool_sources import ToolSource
from jackfield_builder.type_schemas import HandlerSchemas

MAX_SUMMARY = 250
"""The maximum length of a guide's summary, in characters."""


_FAMILY_HINT = f'declare the package in [project.entry-points."{FAMILIES}"], not in "{TOOLS}"'


class GuideExample(NamedTuple):
    """A fenced JSON block in a guide: the arguments or the result of a call."""

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
    written: dict[str, Any] | None = None
    """The manifest as its author wrote it, with the defaults and definitions of the family."""
    inherited: dict[str, Any] = field(default_factory=dict)
    """The fields of `written` that come from the family."""
    schema: dict[str, Any] | None = None
    """The complete manifest, with everything that the author may omit."""
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
    def texts(self) -> tuple[dict[str, Any] | None, ToolGuide | None, str | None]:
        """The content of the three files as it was read."""
        return self.written, self.guide, self.handler

    @property
    def is_valid(self) -> bool:
        """True if no finding so far is an error."""
        return not any(finding.is_error for finding in self.findings)

    def report(
        self, code: CheckCode, message: str, *, file: str = "", path: str = "", hint: str = ""
    ) -> None:
        """Add a finding about this tool; a fault in a schema from the types is placed in the handler."""
        source = self.source
        if file == SCHEMA and path.split("/")[1:2] and path.split("/")[1] in self.from_types:
            file, hint = HANDLER, hint or f"{code.hint}; the schema comes from the types in the signature"
        self.findings.append(Finding(code, message, source.distribution, source.tool_id, file, path, hint))

    def report_all(self, problems: Iterable[FileProblem]) -> None:
        """Add a finding for each problem with a file."""
        for each in problems:
            self.report(each.code, each.message, file=each.file, path=each.path, hint=each.hint)

    def place_findings(self) -> None:
        """Give the findings about a family's tool their places in the family's files."""
        if family := self.source.family:
            self.findings = [family.placed(finding, self.inherited) for finding in self.findings]

    def has(self, *codes: CheckCode) -> bool:
        """Return whether there is a finding with one of these codes."""
        return any(finding.code in codes for finding in self.findings)


def read_tool(source: ToolSource) -> ToolDraft:
    """Read a tool's files and complete its manifest; problems with the files become findings."""
    draft = ToolDraft(source)
    if source.family and source.tool_id in source.family.tools:
        _read_shared_files(draft, source.family)
    else:
        _read_own_files(draft)
    if draft.written is not None:
        if source.family:
            _inherit(draft, draft.written, source.family)
        draft.schema = complete_manifest(
            draft.written,
            tool_id=source.tool_id,
            version=semantic_version(source.distribution.version),
            summary=draft.guide.summary if draft.guide else "",
        )
    return draft


def _read_own_files(draft: ToolDraft) -> None:
    source = draft.source
    schema_text = source.schema if source.schema is not None else _text(draft, SCHEMA)
    guide_text = source.guide if source.guide is not None else _text(draft, GUIDE)
    draft.handler = _text(draft, HANDLER)
    if schema_text is not None:
        document = parse_object(schema_text)
        if (
            isinstance(document, dict)
            and source.family is None
            and "family" in document
            and "tools" in document
        ):
            message = "'tools' belongs in the schema.json of a family"
            draft.report(CheckCode.FIELD_UNKNOWN, message, file=SCHEMA, path="/tools", hint=_FAMILY_HINT)
        elif isinstance(document, dict):
            draft.written = document
        else:
            draft.report_all(document)
    if guide_text is not None:
        draft.guide = ToolGuide.parse(guide_text)


def _text(draft: ToolDraft, name: str) -> str | None:
    source = draft.source
    folder, package = source.folder, source.package
    if source.family:
        folder, package = folder / source.tool_id, f"{package}.{source.tool_id}"
    text = read_text(folder, name, package, MAX_BYTES[name])
    if isinstance(text, str):
        return text
    draft.report_all([text])
    return None


def _read_shared_files(draft: ToolDraft, family: Family) -> None:
    tool_id = draft.source.tool_id
    draft.written = dict(family.tools[tool_id])
    if isinstance(family.handler, str):
        draft.handler = family.handler
    else:
        draft.report_all([family.handler])
    section = family.sections.get(tool_id)
    if family.guide_problem:
        draft.report_all([family.guide_problem])
    elif section is None:
        message = f"no section starts with `# {tool_id}`"
        if lower := family.lower_headings.get(tool_id):
            message += f", but {lower} has it as a lower-level heading"
        elif close := get_close_matches(tool_id, family.stray_titles, 1):
            message += f"; is it misspelled as `# {close[0]}`?"
        hint = f"write one section for it that starts with the heading `# {tool_id}`"
        draft.report(CheckCode.NO_SECTION, message, file=GUIDE, hint=hint)
    elif len(section.text.encode()) > MAX_BYTES[GUIDE]:
        draft.report_all([too_large(GUIDE, MAX_BYTES[GUIDE])])
    else:
        draft.guide = ToolGuide.parse(section.text)


def _inherit(draft: ToolDraft, own: dict[str, Any], family: Family) -> None:
    """Add the family's defaults, and the shared definitions that the tool's schemas reach."""
    draft.inherited = family.inherited(own)
    draft.written = {**draft.inherited, **own}
    for name in ("parameters", "returns"):
        schema = own.get(name)
        if not isinstance(schema, dict):
            continue
        definitions = schema.get("$defs")
        for taken in sorted(
            family.definitions.keys() & (definitions if isinstance(definitions, dict) else {})
        ):
            message = f"{taken!r} is also in `$defs` of the family"
            draft.report(CheckCode.DEFINITION_TWICE, message, file=SCHEMA, path=f"/{name}/$defs")
        draft.written[name] = bundle(schema, family.definitions)
