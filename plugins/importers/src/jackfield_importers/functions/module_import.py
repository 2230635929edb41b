"""Turns the tools of a Python module into a family whose handlers call the originals."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from fnmatch import fnmatchcase
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

from jackfield import strict_json

from jackfield_importers.definitions import Definitions, dereferenced, reached
from jackfield_importers.effects import from_hints
from jackfield_importers.errors import SourceError
from jackfield_importers.family import ImportedFamily, ImportedTool, summary_of
from jackfield_importers.literals import prose, python_literal, sentence, shortened
from jackfield_importers.names import python_name, snake_case, unique
from jackfield_importers.openapi.operations import runtime_module
from jackfield_importers.schema_conversion import WIRE, SchemaConverter

MAX_SOURCE = 1024 * 1024
MAX_LISTING = 8 * 1024 * 1024
IMPORT_SECONDS = 60
FRAMEWORKS = {
    "fastmcp": ("FastMCP server", "fastmcp>=4", "fastmcp_server.py"),
    "langchain": ("module of LangChain tools", "langchain-core>=1", "langchain_tools.py"),
}
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_ATTRIBUTE = re.compile(r"[A-Za-z_]\w*")


class ModuleImport:
    """The import of one module, which runs in a child process."""

    def __init__(self, kind: str, source: str, *, python: str, name: str, only: str, prefix: str) -> None:
        self._kind, self._python, self._only, self._prefix = kind, python, only, prefix
        place, _, attribute = source.partition(":")
        if attribute and not _ATTRIBUTE.fullmatch(attribute):
            raise SourceError(f"{attribute!r} is not the name of a variable")
        self._attribute = attribute
        self._file = Path(place) if place.endswith(".py") else None
        if self._file is None and not _MODULE.fullmatch(place):
            raise SourceError(f"{place!r} is neither a Python file nor the name of a module")
        self._place = place
        stem = self._file.stem if self._file else place.rpartition(".")[2]
        self._name = name or snake_case(stem, kind)[:40].rstrip("_")
        self._definitions = Definitions()
        self._skipped: list[str] = []

    def family(self) -> ImportedFamily:
        """Return the family; raises `SourceError` if no tool can be imported."""
        text = self._source_text()
        listing = self._listing()
        tools: dict[str, ImportedTool] = {}
        for each in listing["tools"]:
            wanted = python_name(snake_case(f"{self._prefix} {each['name']}".strip(), "call"))
            if not any(fnmatchcase(name, self._only) for name in (wanted, str(each["name"]))):
                continue
            tool_id = unique(wanted, tools)
            tool = self._tool(tool_id, each)
            if tool is not None:
                tools[tool_id] = tool
        if not tools:
            reason = self._skipped[0] if self._skipped else f"--only {self._only!r} matches none"
            raise SourceError(f"no tool of {self._place} can be imported: {reason}")
        original = 'f"{__package__}.original"' if self._file else python_literal(self._place)
        source, requirement, runtime = FRAMEWORKS[self._kind]
        modules = {
            runtime: runtime_module(runtime),
            "wire_arguments.py": runtime_module("wire_arguments.py"),
        }
        if text is not None:
            modules["original.py"] = text
        return ImportedFamily(
            name=self._name,
            title=prose(listing.get("title"), 120) or self._name,
            source=f"a {source}",
            definitions=self._definitions,
            tools=list(tools.values()),
            dependencies=(requirement, *self._distributions()),
            modules=modules,
            imports=(
                f"from .{runtime.removesuffix('.py')} import call as _call",
                "",
                f"_ORIGINAL = {original}",
            ),
            notes=self._notes(),
        )

    def _source_text(self) -> str | None:
        if self._file is None:
            return None
        try:
            if self._file.stat().st_size > MAX_SOURCE:
                raise SourceError(f"{self._file} is larger than {MAX_SOURCE // 1024} KiB")
            return self._file.read_text("utf-8")
        except OSError as error:
            raise SourceError(f"{self._file} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise SourceError(f"{self._file} is not UTF-8") from None

    def _listing(self) -> dict[str, Any]:
        source = str(self._file.resolve()) if self._file else self._place
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "tools.json"
            command = [self._python, "-P", str(Path(__file__).with_name("probe.py")), self._kind]
            try:
                done = subprocess.run(  # noqa: S603 - runs the module that the user names, as documented
                    [*command, source, self._attribute, str(out)],
                    stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                    timeout=IMPORT_SECONDS, check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                raise SourceError(
                    f"importing {self._place} took longer than {IMPORT_SECONDS} seconds"
                ) from None
            except OSError as error:
                raise SourceError(f"{self._python} cannot be run: {error.strerror}") from None
            if not out.exists():
                last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
                raise SourceError(f"importing {self._place} ended the process: {prose(last, 200)}")
            if out.stat().st_size > MAX_LISTING:
                raise SourceError(
                    f"the tools of {self._place} have more than {MAX_LISTING // 1024 // 1024} MiB"
                )
            listing: dict[str, Any] = json.loads(out.read_text("utf-8"))
        if "error" in listing:
            raise SourceError(f"{self._place}: {shortened(' '.join(str(listing['error']).split()), 300)}")
        return listing

    def _tool(self, tool_id: str, listed: dict[str, Any]) -> ImportedTool | None:
        schema = listed.get("parameters") or {}
        try:
            strict_json.loads(json.dumps(schema))
        except strict_json.StrictJsonError as error:
            self._skipped.append(
                f"`{tool_id}` was not imported, because of its schema: {prose(str(error), 120)}"
            )
            return None
        converter = SchemaConverter(schema, self._definitions, key=tool_id)
        parameters = converter.convert(dereferenced(schema, schema))
        if not schema.get("properties"):
            parameters = {"type": "object", "properties": {}}
        if parameters.get("type") != "object":
            self._skipped.append(f"`{tool_id}` was not imported, because its arguments are not an object")
            return None
        for word in ("type", "description", "examples"):
            parameters.pop(word, None)
        returns = self._returns(tool_id, listed.get("returns"))
        self._definitions.convert_waiting()
        effects = from_hints(snake_case(str(listed["name"]), "call"), listed.get("hints") or {})
        members = f", writes={effects.writes}"
        if WIRE in str(parameters) or WIRE in str(reached(self._definitions.schemas, parameters)):
            members += f", encoded={python_literal(tool_id)}"
        original = f"{python_literal(str(listed['name']))}, {python_literal(str(listed['place']))}"
        summary = summary_of(_first_paragraph(listed.get("summary")), fallback=tool_id.replace("_", " "))
        details = sentence(prose(listed.get("summary"), 600))
        return ImportedTool(
            tool_id=tool_id,
            origin=str(listed["name"]),
            summary=summary,
            details="" if details == summary else details,
            effects=effects,
            parameters=parameters,
            returns=returns,
            call=f"_call(_ORIGINAL, {original}, args{members})",
            notes=list(converter.notes),
        )

    def _returns(self, tool_id: str, schema: Any) -> dict[str, Any] | None:
        if not isinstance(schema, dict) or not schema:
            return None
        return SchemaConverter(schema, self._definitions, key=tool_id, results=True).convert(schema) or None

    def _distributions(self) -> tuple[str, ...]:
        """Return the installed distribution that provides the module, if it is in this environment."""
        if self._file or self._python != sys.executable:
            return ()
        return tuple(sorted(set(packages_distributions().get(self._place.partition(".")[0], ()))))

    def _notes(self) -> list[str]:
        if self._file:
            note = "`original.py` is a copy of the file; add the packages that it imports to `dependencies`"
        elif self._distributions():
            note = f"the handlers call `{self._place}`, whose code is not part of the frozen package"
        else:
            note = f"add the distribution that provides `{self._place}` to `dependencies` in pyproject.toml"
        return [note, *self._skipped]


def _first_paragraph(text: Any) -> Any:
    return re.split(r"\n\s*\n", text.strip(), maxsplit=1)[0] if isinstance(text, str) else None
