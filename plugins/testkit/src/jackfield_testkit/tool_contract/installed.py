"""The tool under test: found by its entry point, read as by the build, loaded as by the registry."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache

from jackfield import plugins as plugin_loading
from jackfield.contract.manifest import ToolManifest, tool_schema
from jackfield.installed import Entry
from jackfield.plugins import Plugins
from jackfield.registry.arguments import Arguments, compile_schema
from jackfield.registry.invoke import Handler, as_handler
from jackfield.registry.returns import Returns
from jackfield_builder import drafts, pipeline
from jackfield_builder.discovery import Discovery, discover
from jackfield_builder.findings import Finding, in_order
from jackfield_builder.sources import ToolSource, sources


class ToolUnusableError(Exception):
    """A tool that cannot be found, or not be run, and what to do about it."""


@dataclass(frozen=True, slots=True)
class InstalledTool:
    """A tool as the registry would hold it."""

    source: ToolSource
    manifest: ToolManifest
    arguments: Arguments
    returns: Returns | None
    handler: Handler

    @property
    def repeatable(self) -> bool:
        """Whether running it twice leaves the world as running it once does."""
        return self.manifest.idempotent or not self.manifest.writes

    def runs(self, wanted: int) -> int:
        """How often it may be run where running it several times would be better."""
        return wanted if self.repeatable else 1


@cache
def load(tool_id: str) -> InstalledTool:
    """The installed tool of that id, ready to run; `ToolUnusableError` says what stands in the way."""
    source = _locate(tool_id, discover())
    draft = drafts.read(source)
    broken = f"{tool_id} cannot be run as it stands; test_contract, or `jackfield build`, says why"
    if draft.schema is None or not compile_schema(tool_schema()).is_valid(draft.schema):
        raise ToolUnusableError(broken)
    manifest = ToolManifest.from_wire(draft.schema)
    try:
        arguments = Arguments(manifest.parameters)
        returns = None if manifest.returns is None else Returns(manifest.returns)
        execute = importlib.import_module(source.handler.partition(":")[0]).execute
    except (Exception, SystemExit) as error:
        raise ToolUnusableError(f"{broken}: {type(error).__name__}: {error}") from error
    return InstalledTool(source, manifest, arguments, returns, as_handler(execute))


def findings(tool_id: str) -> tuple[Finding, ...]:
    """Everything the build has to say about one tool, the import of its handler included."""
    discovery = discover()
    source = _locate(tool_id, discovery)
    (examined,) = pipeline.examine([source], plugins(discovery.plugins))
    return in_order([*_about(source, discovery.findings), *examined.draft.findings])


def _locate(tool_id: str, discovery: Discovery) -> ToolSource:
    announced = [entry for entry in discovery.tools if entry.name == tool_id]
    # Importing every plugin is only worth it for a tool that no entry point of its own announces.
    offered = () if announced else plugins(discovery.plugins).of("jackfield_tools")
    found, unlocated = sources(announced, (each for each in offered if each.name == tool_id))
    if found:
        return found[0]
    complaints = [each for each in (*discovery.findings, *unlocated) if each.subject == tool_id]
    raise ToolUnusableError(_not_found(tool_id, complaints, discovery))


@cache
def plugins(entries: tuple[Entry, ...]) -> Plugins:
    """What the plugins behind these entry points offer; each is asked once."""
    return plugin_loading.load(entries)


def _about(source: ToolSource, found: Iterable[Finding]) -> Iterator[Finding]:
    for finding in found:
        owner = finding.distribution.name if finding.distribution else ""
        if finding.subject == source.tool_id or owner == source.distribution.name:
            yield finding


def _not_found(tool_id: str, complaints: list[Finding], discovery: Discovery) -> str:
    if complaints:
        reasons = "; ".join(f"{each.code.id} {each.code.title}: {each.message}" for each in complaints)
        return f"{tool_id} cannot be used: {reasons}"
    close = get_close_matches(tool_id, [entry.name for entry in discovery.tools], 1)
    meant = f"did you mean {close[0]!r}? Otherwise install it" if close else "install it"
    return (
        f"no installed distribution announces a tool {tool_id!r} in the entry point group jackfield.tools; "
        f"{meant}, e.g. with `pip install -e .` in its folder, into the environment that runs pytest"
    )
