"""Reads a family: several tools in one package that share a schema.json, a guide.md and a handler.py.

A tool that has outgrown the shared files has a folder of its own with the same three files. Reading a family
imports nothing, so the ids of its tools are known before any of its code runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jackfield.contract.manifest import FAMILY_DEFAULTS, family_schema
from jackfield.distributions import FAMILIES, TOOLS, Distribution
from jackfield.strict_json import pointer

from jackfield_builder.field_errors import field_errors
from jackfield_builder.findings import CheckCode, Finding
from jackfield_builder.subschemas import walk
from jackfield_builder.tool_files import (
    GUIDE,
    HANDLER,
    MAX_FAMILY_BYTES,
    SCHEMA,
    FileProblem,
    parse_object,
    read_text,
)

if TYPE_CHECKING:
    from markdown_it.token import Token

_LINE = re.compile(r"line (\d+)")

_OF_THE_FILE = {
    CheckCode.SCHEMA_MISSING, CheckCode.GUIDE_MISSING, CheckCode.HANDLER_MISSING, CheckCode.UNREADABLE,
    CheckCode.NOT_UTF8, CheckCode.BAD_SYNTAX, CheckCode.IMPORT_RAISES, CheckCode.IMPORT_DIES,
}  # fmt: skip
"""Findings that concern a whole file, and so every tool that shares it."""


class GuideSection(NamedTuple):
    """One tool's section in the family's guide: the number of lines before it, and its text with heading."""

    lines_before: int
    text: str


@dataclass(frozen=True, slots=True)
class Family:
    """The shared files of a family, and its tools."""

    name: str
    package: str
    folder: Path
    distribution: Distribution
    version: str | None
    defaults: Mapping[str, Any]
    definitions: Mapping[str, Any]
    tools: Mapping[str, Mapping[str, Any]]
    """The manifests of the tools in the shared schema.json, as written."""
    folders: frozenset[str]
    """The ids of the tools that have a folder of their own."""
    sections: Mapping[str, GuideSection]
    guide_problem: FileProblem | None
    handler: str | FileProblem
    import_path: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    stray_titles: tuple[str, ...] = ()
    """The headings of the sections that belong to no tool."""
    lower_headings: Mapping[str, str] = field(default_factory=dict)
    """The lines of the headings below the top level that name a tool."""

    @property
    def tool_ids(self) -> tuple[str, ...]:
        """The ids of all tools, sorted."""
        return tuple(sorted({*self.tools, *self.folders}))

    def read_again(self) -> Family:
        """Read the family's files again."""
        return read_family(self.name, self.package, self.folder, self.distribution, self.import_path)

    def inherited(self, own: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields that a tool inherits from the family."""
        fields = {"version": self.version, **self.defaults} if self.version else dict(self.defaults)
        return {name: value for name, value in fields.items() if name not in own}

    def placed(self, finding: Finding, inherited: Mapping[str, Any]) -> Finding:
        """Return a finding about one of the tools with its place in the files of the family.

        A finding about a shared part names the family, so that it is reported once and not for every tool.
        """
        tool_id, shared = finding.subject, finding.subject not in self.folders
        file = finding.file if shared or not finding.file else f"{tool_id}/{finding.file}"
        if finding.file == SCHEMA and finding.path.startswith("/"):
            if path := self._shared_path(finding.path, inherited):
                return replace(finding, subject=self.name, file=SCHEMA, path=path)
            own = pointer("tools", tool_id) + finding.path.removesuffix("/") if shared else finding.path
            return replace(finding, file=file, path=own)
        if shared and finding.code in _OF_THE_FILE:
            return replace(finding, subject=self.name)
        if shared and finding.file == GUIDE and (section := self.sections.get(tool_id)):
            path = _LINE.sub(lambda line: f"line {int(line[1]) + section.lines_before}", finding.path)
            return replace(finding, path=path or f"line {section.lines_before + 1}")
        return replace(finding, file=file)

    def _shared_path(self, path: str, inherited: Mapping[str, Any]) -> str:
        """Return the place in the shared part of schema.json that a path in a manifest stands for."""
        field, *rest = path.removeprefix("/").split("/")
        if field in inherited:
            return path if field == "version" and "version" not in self.defaults else f"/defaults{path}"
        named = rest[1].replace("~1", "/").replace("~0", "~") if len(rest) > 1 else ""
        if field in {"parameters", "returns"} and rest[0:1] == ["$defs"] and named in self.definitions:
            return "/" + "/".join(rest)
        return ""


def read_family(
    name: str, package: str, folder: Path, distribution: Distribution, import_path: tuple[str, ...] = ()
) -> Family:
    """Read the shared files of a family; problems with them become findings."""
    document, problems = _document(folder, package)
    tools = {tool_id: each for tool_id, each in _table(document, "tools").items() if isinstance(each, dict)}
    folders = frozenset(
        path.parent.name for path in folder.glob(f"*/{SCHEMA}") if not path.parent.name.startswith((".", "_"))
    )
    problems += _family_problems(name, document, tools, folders)
    guide = read_text(folder, GUIDE, package, MAX_FAMILY_BYTES[GUIDE])
    sections, stray, titles = _sections(guide, tools) if isinstance(guide, str) else ({}, [], [])
    # If the ids of the tools are unknown, no section can be called stray.
    known = isinstance(document.get("tools", {} if document else None), dict)
    stray = stray if known and not _is_of_a_tool(document) else []
    version = document.get("version")
    return Family(
        name=name,
        package=package,
        folder=folder,
        distribution=distribution,
        version=version if isinstance(version, str) else None,
        defaults={
            field: value for field, value in _table(document, "defaults").items() if field in FAMILY_DEFAULTS
        },
        definitions=_table(document, "$defs"),
        # A tool that is defined twice is reported as such, and read from its folder.
        tools={tool_id: each for tool_id, each in tools.items() if tool_id not in folders},
        folders=folders,
        sections=sections,
        guide_problem=None if isinstance(guide, str) else guide,
        handler=read_text(folder, HANDLER, package, MAX_FAMILY_BYTES[HANDLER]),
        import_path=import_path,
        findings=tuple(
            Finding(each.code, each.message, distribution, name, each.file, each.path, each.hint)
            for each in (*problems, *stray)
        ),
        stray_titles=tuple(titles),
        lower_headings=_lower_headings(guide, tools) if isinstance(guide, str) else {},
    )


def _document(folder: Path, package: str) -> tuple[dict[str, Any], list[FileProblem]]:
    text = read_text(folder, SCHEMA, package, MAX_FAMILY_BYTES[SCHEMA])
    if isinstance(text, FileProblem):
        return {}, [text]
    document = parse_object(text)
    return (document, []) if isinstance(document, dict) else ({}, document)


def _family_problems(
    name: str, document: Mapping[str, Any], tools: Mapping[str, Any], folders: frozenset[str]
) -> list[FileProblem]:
    if not document:
        return []
    if _is_of_a_tool(document):
        message = "'category' belongs in the schema.json of a single tool"
        hint = (
            f'declare the package in [project.entry-points."{TOOLS}"], not in "{FAMILIES}", '
            "or move the fields under `tools`"
        )
        return [FileProblem(CheckCode.FIELD_UNKNOWN, message, SCHEMA, "/category", hint)]
    problems = [
        FileProblem(CheckCode.DEFAULT_NOT_ALLOWED, each.message, SCHEMA, each.path)
        if each.code is CheckCode.FIELD_UNKNOWN and each.path.startswith("/defaults/")
        else each
        for each in field_errors(document, _family_fields())
    ]
    stated = document.get("family")
    if isinstance(stated, str) and stated != name and all(each.path != "/family" for each in problems):
        message = f"family is {stated!r}, but the entry point is {name!r}"
        problems.append(FileProblem(CheckCode.FAMILY_NAME, message, SCHEMA, "/family"))
    if not tools and not folders and not problems:
        message = f"neither schema.json nor a folder in {name!r} defines a tool"
        problems.append(FileProblem(CheckCode.EMPTY_FAMILY, message, SCHEMA, "/tools"))
    for tool_id in sorted(folders.intersection(tools)):
        message = f"{tool_id!r} is in schema.json and in the folder {tool_id}"
        problems.append(FileProblem(CheckCode.TOOL_TWICE, message, SCHEMA, pointer("tools", tool_id)))
    return [*problems, *_definition_problems(_table(document, "$defs"))]


def _is_of_a_tool(document: Mapping[str, Any]) -> bool:
    return "category" in document and "family" not in document and "tools" not in document


def _family_fields() -> dict[str, Any]:
    """Return the published schema without the schemas of default values and of the tools' manifests.

    The checks of the tools cover both after the defaults are applied.
    """
    published = family_schema()
    defaults = dict.fromkeys(FAMILY_DEFAULTS, True)
    shallow = {
        "defaults": {"type": "object", "additionalProperties": False, "properties": defaults},
        "$defs": {"type": "object", "additionalProperties": {"type": ["object", "boolean"]}},
        "tools": {"type": "object", "additionalProperties": {"type": "object"}},
    }
    return {**published, "properties": {**published["properties"], **shallow}}


def _definition_problems(definitions: Mapping[str, Any]) -> Iterator[FileProblem]:
    for name, definition in definitions.items():
        for each in walk(definition, ("$defs", name)) if isinstance(definition, dict) else ():
            reference = each.schema.get("$ref")
            if isinstance(reference, str) and not reference.startswith("#/$defs/"):
                message = f"{reference!r} is outside `$defs`, so it would mean something else in each tool"
                path = pointer(*each.path, "$ref")
                yield FileProblem(CheckCode.BAD_REFERENCE, message, SCHEMA, path)


def _sections(
    text: str, tools: Mapping[str, Any]
) -> tuple[dict[str, GuideSection], list[FileProblem], list[str]]:
    """Return each tool's section, and the problems and titles of the sections that belong to no tool."""
    from markdown_it import MarkdownIt

    text = text.removeprefix("\ufeff")
    lines = text.split("\n")
    tokens = MarkdownIt("commonmark").parse(text)
    headings = list(_headings(tokens))
    found: dict[str, GuideSection] = {}
    stray: list[FileProblem] = []
    unknown: list[tuple[str, str]] = []
    first = headings[0][0] if headings else len(lines)
    if any(token.map and token.map[0] < first and token.level == 0 for token in tokens):
        message = "the text before the first heading"
        stray.append(FileProblem(CheckCode.STRAY_SECTION, message, GUIDE, "line 1"))
    for (start, title), (end, _) in zip(headings, [*headings[1:], (len(lines), "")], strict=True):
        where = f"line {start + 1}"
        if title in found:
            message = f"a second section {title!r}"
            stray.append(FileProblem(CheckCode.STRAY_SECTION, message, GUIDE, where))
        elif title not in tools:
            unknown.append((title, where))
        else:
            found[title] = GuideSection(start, "\n".join(lines[start:end]).rstrip() + "\n")
    for title, where in unknown:
        close = get_close_matches(title, sorted(tools.keys() - found.keys()), 1)
        meant = f"; did you mean {close[0]!r}?" if close else ""
        stray.append(FileProblem(CheckCode.STRAY_SECTION, f"{title!r}{meant}", GUIDE, where))
    return found, stray, [title for title, _ in unknown]


def _headings(tokens: list[Token], *, lower: bool = False) -> Iterator[tuple[int, str]]:
    for index, token in enumerate(tokens):
        if token.type == "heading_open" and (token.tag != "h1") is lower and token.level == 0 and token.map:
            yield token.map[0], tokens[index + 1].content.strip().strip("`")


def _lower_headings(text: str, tools: Mapping[str, Any]) -> dict[str, str]:
    from markdown_it import MarkdownIt

    tokens = MarkdownIt("commonmark").parse(text.removeprefix("\ufeff"))
    return {title: f"line {start + 1}" for start, title in _headings(tokens, lower=True) if title in tools}


def _table(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = document.get(name)
    return value if isinstance(value, dict) else {}
