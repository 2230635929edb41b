"""The owners of tool ids: one distribution owns each id, and others may only offer declared variants."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from jackfield.distributions import EntryPoint

from jackfield_builder.findings import CheckCode, Finding
from jackfield_builder.tool_families import Family
from jackfield_builder.tool_files import MAX_BYTES, SCHEMA, parse_object, read_text
from jackfield_builder.tool_sources import ToolSource, locate_tools


class Owners(NamedTuple):
    """The entry points of tools with one owner each, those of their variants, and the conflicts."""

    tools: list[EntryPoint]
    variants: list[EntryPoint]
    findings: list[Finding]


def resolve_owners(tools: Iterable[EntryPoint], families: Sequence[Family]) -> Owners:
    """Find the owner of each id; another distribution may offer the id if it declares a variant."""
    claims: dict[str, list[EntryPoint]] = defaultdict(list)
    for tool in tools:
        claims[tool.name].append(tool)
    owners = Owners([], [], [])
    for tool_id, listed in claims.items():
        claimants = list({(tool.distribution.name, tool.family): tool for tool in reversed(listed)}.values())
        claimants.reverse()
        if len(claimants) == 1:
            owners.tools.append(listed[0])
            continue
        declared: dict[EntryPoint, str | None] = {}
        for tool in claimants:
            sources, unlocated = locate_tools([tool], (), families)
            # Only its files say whether a tool is a variant. If they are missing, report only that.
            owners.findings.extend(unlocated)
            declared.update((tool, _declared_variant(source)) for source in sources)
        owning = [tool for tool, variant in declared.items() if variant is None]
        variants = [tool for tool, variant in declared.items() if variant is not None]
        conflicts = list(_conflicts(tool_id, owning, {tool: str(declared[tool]) for tool in variants}))
        owners.findings.extend(conflicts)
        if not conflicts:
            owners.tools.extend(owning)
            owners.variants.extend(variants)
    return owners


def _conflicts(tool_id: str, owning: list[EntryPoint], variants: dict[EntryPoint, str]) -> Iterator[Finding]:
    if len(owning) > 1:
        yield _taken(repr(tool_id), owning)
    elif variants and not owning:
        listed = " and ".join(f"{name!r} of {_owner(tool)}" for tool, name in variants.items())
        message = f"{tool_id!r} has only variants: {listed}"
        yield Finding(CheckCode.VARIANT_ALONE, message, next(iter(variants)).distribution, tool_id)
    for name, count in Counter(variants.values()).items():
        if count > 1:
            same = [tool for tool, each in variants.items() if each == name]
            yield _taken(f"the variant {name!r} of {tool_id!r}", same)


def _taken(what: str, claimants: list[EntryPoint]) -> Finding:
    message = f"{what} is claimed by " + " and by ".join(map(_owner, claimants))
    return Finding(CheckCode.TOOL_ID_TAKEN, message, claimants[0].distribution, claimants[0].name)


def _owner(tool: EntryPoint) -> str:
    return f"{tool.distribution}, family {tool.family}" if tool.family else str(tool.distribution)


def _declared_variant(source: ToolSource) -> str | None:
    written: Any = source.family.tools.get(source.tool_id) if source.family else None
    if written is None:
        folder = source.folder / source.tool_id if source.family else source.folder
        text = read_text(folder, SCHEMA, source.package, MAX_BYTES[SCHEMA])
        written = parse_object(text) if isinstance(text, str) else None
    variant = written.get("variant") if isinstance(written, dict) else None
    return variant if isinstance(variant, str) else None
