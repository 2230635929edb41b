"""The family of tools that an import generates: its tools, and the text of each of its files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from jackfield_importers.definitions import Definitions, reached
from jackfield_importers.effects import EffectsGuess
from jackfield_importers.literals import code_span, json_text, prose, sentence, shortened, toml_string
from jackfield_importers.names import words
from jackfield_importers.preview import preview_template
from jackfield_importers.review import review_text
from jackfield_importers.samples import NoSampleError, Sampler
from jackfield_importers.schema_conversion import accepts, without_invalid_values

MAX_SUMMARY = 240
_SPOKEN = (str, int, float)


@dataclass(slots=True)
class ImportedTool:
    """One tool of the family, as read from the source."""

    tool_id: str
    origin: str
    """The tool's name in the source, such as `GET /pets/{petId}`."""
    summary: str
    details: str
    effects: EffectsGuess
    parameters: dict[str, Any]
    call: str
    """The Python expression that runs the tool with `args`."""
    returns: dict[str, Any] | None = None
    examples: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    generated: list[dict[str, Any]] = field(default_factory=list)
    """The examples that the source does not contain."""

    @property
    def preview(self) -> str | None:
        """The text of the confirmation card, if the tool writes and a text can show every argument."""
        if not self.effects.writes:
            return None
        return preview_template(self.tool_id, self.summary, self.parameters)


@dataclass(slots=True)
class ImportedFamily:
    """A family of tools, ready to be written."""

    name: str
    title: str
    source: str
    """The kind of source, in words, for the readme."""
    definitions: Definitions
    tools: list[ImportedTool]
    dependencies: tuple[str, ...]
    modules: dict[str, str]
    """The package's other modules: file name and text."""
    imports: tuple[str, ...]
    """Import lines of the handler module."""
    setup: tuple[str, ...] = ()
    """Lines of the readme: what the operator has to configure."""
    notes: list[str] = field(default_factory=list)

    @property
    def package(self) -> str:
        """The name of the import package."""
        return f"{self.name}_tools"

    @property
    def distribution(self) -> str:
        """The name of the distribution and of its folder."""
        return self.package.replace("_", "-")

    def complete(self) -> None:
        """Remove invalid defaults and examples, generate missing examples, and add notes for the author."""
        definitions = self.definitions.schemas
        for name, schema in definitions.items():
            definitions[name] = without_invalid_values(schema, definitions)
        sampler = Sampler(definitions)
        for tool in self.tools:
            tool.parameters = without_invalid_values(tool.parameters, definitions)
            given = [each for each in tool.examples if accepts(tool.parameters, definitions, [each])]
            tool.examples = distinct([*given, *_generated(tool, sampler, definitions)])[:2]
            tool.generated = [each for each in tool.examples if each not in given]
            if not tool.examples:
                tool.notes.append("no example was found that the schema accepts: write one in guide.md")
            if tool.effects.writes and not tool.preview:
                tool.notes.append(
                    "the confirmation card shows the raw arguments, because some are optional or have parts: "
                    "write `preview` in schema.json"
                )

    def files(self, *, results: bool = True) -> dict[str, str]:
        """Return the text of every file by its path in the project; without `results`, no `returns`."""
        source = f"src/{self.package}"
        modules = {f"{source}/{name}": text for name, text in self.modules.items()}
        return {
            "pyproject.toml": self._pyproject(),
            "README.md": self._readme(),
            "REVIEW.md": review_text(self),
            f"{source}/__init__.py": f'"""The tools of the family {self.name}."""\n',
            f"{source}/schema.json": json_text(self._schema(results=results)) + "\n",
            f"{source}/guide.md": "\n".join(self.section(tool) for tool in self.tools),
            f"{source}/handler.py": self._handler(),
            **modules,
        }

    def _schema(self, *, results: bool) -> dict[str, Any]:
        tools = {tool.tool_id: _manifest(tool, results=results) for tool in self.tools}
        shared = reached(self.definitions.schemas, tools)
        return {"family": self.name, **({"$defs": shared} if shared else {}), "tools": tools}

    def section(self, tool: ImportedTool) -> str:
        """Return the tool's section of the guide."""
        lines = [f"# {tool.tool_id}", "", tool.summary, ""]
        if tool.details:
            lines += [tool.details, ""]
        if tool.examples:
            lines += ["## Examples", ""]
        for example in tool.examples:
            lines += [request_sentence(tool.summary, example), "", "```json", json_text(example, indent=None)]
            lines += ["```", ""]
        return "\n".join(lines)

    def _handler(self) -> str:
        lines = [f'"""The handlers of the family {self.name}; each calls the original."""', ""]
        lines += [*self.imports, ""]
        for tool in self.tools:
            effect = "writes" if tool.effects.writes else "reads"
            lines += [
                "",
                f"# Guessed; confirm it in schema.json: this {effect}, because {tool.effects.reason}.",
                f"async def {tool.tool_id}(args, ctx):",
                f"    return await {tool.call}",
                "",
            ]
        return "\n".join(lines).rstrip("\n") + "\n"

    def _pyproject(self) -> str:
        dependencies = "".join(
            f"    {toml_string(each)},\n" for each in ("jackfield-kernel>=0.1", *self.dependencies)
        )
        return (
            "[project]\n"
            f"name = {toml_string(self.distribution)}\n"
            'version = "0.1.0"\n'
            f"description = {toml_string(shortened(f'Tools for {self.title}', 200))}\n"
            'readme = "README.md"\n'
            'requires-python = ">=3.11"\n'
            f"dependencies = [\n{dependencies}]\n\n"
            '[project.entry-points."jackfield.families"]\n'
            f"{self.name} = {toml_string(self.package)}\n\n"
            "[build-system]\n"
            'requires = ["hatchling>=1.27"]\n'
            'build-backend = "hatchling.build"\n\n'
            "[tool.hatch.build.targets.wheel]\n"
            f"packages = [{toml_string(f'src/{self.package}')}]\n"
        )

    def _readme(self) -> str:
        lines = [
            f"# {self.distribution}",
            "",
            f"The tools of the family `{self.name}`, generated from {self.source}: {self.title}.",
        ]
        lines += ["", "Read [REVIEW.md](REVIEW.md) before you publish them.", ""]
        if self.setup:
            lines += ["## Settings", "", *self.setup, ""]
        lines += ["## Tools", "", "| tool | calls |", "|---|---|"]
        lines += [f"| `{tool.tool_id}` | {code_span(tool.origin)} |" for tool in self.tools]
        return "\n".join(lines) + "\n"


def summary_of(*texts: object, fallback: str) -> str:
    """Return the summary of a tool: the first text that has words."""
    found = next((line for text in texts if (line := prose(text, MAX_SUMMARY - 1))), fallback)
    return sentence(found)


def distinct(values: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the values without repetitions."""
    return [each for index, each in enumerate(values) if each not in values[:index]]


def request_sentence(summary: str, example: dict[str, Any]) -> str:
    """Return what a user might say for an example: the summary's first sentence and the values."""
    asked = summary.partition(". ")[0].rstrip(".?!")
    values = [
        f"{words(name)} {prose(str(value), 60)}".rstrip()
        for name, value in example.items()
        if isinstance(value, _SPOKEN) and not isinstance(value, bool)
    ]
    return f"{asked}, with {', '.join(values)}." if values else f"{asked}."


def _generated(tool: ImportedTool, sampler: Sampler, definitions: dict[str, Any]) -> list[dict[str, Any]]:
    made = []
    for optional in (0, 2):
        try:
            value = sampler.object(tool.parameters, optional=optional)
        except NoSampleError:
            continue
        if accepts(tool.parameters, definitions, [value]):
            made.append(value)
    return made


def _manifest(tool: ImportedTool, *, results: bool) -> dict[str, Any]:
    manifest = tool.effects.manifest()
    if tool.preview:
        manifest["preview"] = tool.preview
    if tool.parameters.get("properties"):
        manifest["parameters"] = tool.parameters
    if results and tool.returns:
        manifest["returns"] = tool.returns
    return manifest
