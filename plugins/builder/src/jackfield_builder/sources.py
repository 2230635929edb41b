"""Where a tool's files lie, found without importing the tool."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from jackfield.distributions import Distribution, EntryPoint, locate
from jackfield.offers import ToolOffer
from jackfield.plugins import RegisteredOffer

from jackfield_builder.findings import Code, Finding


@dataclass(frozen=True, slots=True)
class ToolSource:
    """A tool as it is announced: by whom, under which id, and in which folder its package lies."""

    tool_id: str
    package: str
    folder: Path
    distribution: Distribution
    schema: str | None = None
    guide: str | None = None
    import_path: tuple[str, ...] = ()
    """Folders that importing the handler needs besides the interpreter's own; for packages not installed."""

    @property
    def handler(self) -> str:
        """The handler as the snapshot names it."""
        return f"{self.package}.handler:execute"


def sources(
    tools: Iterable[EntryPoint], offered: Iterable[RegisteredOffer]
) -> tuple[list[ToolSource], list[Finding]]:
    """The tools of entry points and those that plugins offer, with an owner for every id."""
    found: dict[str, ToolSource] = {}
    findings: list[Finding] = []
    announced = [(tool.name, tool.value, tool.distribution, None) for tool in tools] + [
        (each.offer.tool_id, each.offer.package, each.plugin.distribution, each.offer)
        for each in offered
        if isinstance(each.offer, ToolOffer)
    ]
    for tool_id, package, distribution, offer in announced:
        if tool_id in found:
            owners = f"{found[tool_id].distribution} and by {distribution}"
            findings.append(
                Finding(Code.TOOL_ID_TAKEN, f"{tool_id!r} is claimed by {owners}", distribution, tool_id)
            )
        elif not all(part.isidentifier() for part in package.split(".")):
            message = f"{tool_id!r} points at {package!r}"
            findings.append(Finding(Code.BAD_ENTRY_POINT, message, distribution, tool_id))
        elif (folder := locate(package)) is None:
            message = f"{package!r} is not a package on this interpreter's path"
            findings.append(Finding(Code.PACKAGE_NOT_FOUND, message, distribution, tool_id))
        else:
            texts = (offer.schema, offer.guide) if offer else (None, None)
            found[tool_id] = ToolSource(tool_id, package, folder, distribution, *texts)
    return list(found.values()), findings
