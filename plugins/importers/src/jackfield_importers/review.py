"""The text of REVIEW.md: every guess of an import, for the author to confirm or correct."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from jackfield_importers.definitions import reached
from jackfield_importers.literals import code_span, json_text
from jackfield_importers.names import words

if TYPE_CHECKING:
    from jackfield_importers.family import ImportedFamily, ImportedTool

_INTRODUCTION = (
    "The import guessed what the source does not say. Confirm or correct each line, then delete this file."
)
_EFFECTS = "A tool that writes asks the user first. A tool that reads can be called and repeated at any time."
_DESCRIPTIONS = (
    "These descriptions only repeat a name, so they tell the model nothing new. Write what each "
    "argument means in schema.json, and what each tool does in guide.md."
)
_EXAMPLES = (
    "The values of these examples in guide.md are generated. Replace them with real ones. The sentence "
    "above every example is also generated: write what your users say."
)


def review_text(family: ImportedFamily) -> str:
    """Return the text of REVIEW.md."""
    sections = {
        "The family": [f"- [ ] {note}." for note in family.notes],
        "Effects": [_EFFECTS, "", *_effects(family.tools)],
        "Tools": list(_tool_notes(family.tools)),
        "Descriptions": _with_text(_DESCRIPTIONS, _descriptions(family)),
        "Examples": _with_text(_EXAMPLES, _examples(family.tools)),
        "Tests": ["- [ ] No tests were generated: write contract tests with examples of every outcome."],
    }
    lines = ["# Review", "", _INTRODUCTION]
    for heading, section in sections.items():
        lines += ["", f"## {heading}", "", *section] if section else []
    return "\n".join(lines) + "\n"


def _with_text(text: str, items: Iterator[str]) -> list[str]:
    listed = list(items)
    return [text, "", *listed] if listed else []


def _effects(tools: list[ImportedTool]) -> Iterator[str]:
    yield "| confirmed | tool | effect | idempotent | because |"
    yield "|---|---|---|---|---|"
    for tool in tools:
        effect = "writes" if tool.effects.writes else "reads"
        repeat = "yes" if tool.effects.idempotent else "no"
        yield f"| [ ] | `{tool.tool_id}` | {effect} | {repeat} | {tool.effects.reason} |"


def _tool_notes(tools: list[ImportedTool]) -> Iterator[str]:
    noted: dict[str, list[str]] = {}
    for tool in tools:
        for note in tool.notes:
            noted.setdefault(note, []).append(f"`{tool.tool_id}`")
    for note, ids in noted.items():
        yield f"- [ ] {', '.join(ids)}: {note}."


def _descriptions(family: ImportedFamily) -> Iterator[str]:
    for tool in family.tools:
        found = ["the tool itself"] if _repeats(tool.tool_id, tool.summary) else []
        found += map(code_span, undescribed(tool.parameters))
        if found:
            yield f"- [ ] `{tool.tool_id}`: {', '.join(found)}"
    shared = reached(family.definitions.schemas, *(tool.parameters for tool in family.tools))
    for name, schema in shared.items():
        found = ["the part itself"] if _repeats(name, schema.get("description")) else []
        found += map(code_span, undescribed(schema))
        if found:
            yield f"- [ ] the shared part {code_span(name)} in `$defs`: {', '.join(found)}"


def _examples(tools: list[ImportedTool]) -> Iterator[str]:
    for tool in tools:
        for number, example in enumerate(tool.examples, 1):
            if example in tool.generated:
                values = code_span(json_text(example, indent=None))
                yield f"- [ ] `{tool.tool_id}`, example {number}: {values}"


def undescribed(schema: Any, place: str = "") -> Iterator[str]:
    """Yield the members of a schema whose description only repeats their name, as dotted paths."""
    if isinstance(schema, list):
        for each in schema:
            yield from undescribed(each, place)
    if not isinstance(schema, dict):
        return
    members = schema.get("properties")
    for name, member in members.items() if isinstance(members, dict) else ():
        path = f"{place}.{name}" if place else name
        if isinstance(member, dict) and _repeats(name, member.get("description")):
            yield path
        yield from undescribed(member, path)
    for keyword in ("items", "prefixItems", "anyOf"):
        yield from undescribed(schema.get(keyword), place)


def _repeats(name: str, description: object) -> bool:
    # `words` drops letters outside ASCII, so it cannot compare such a description.
    if not isinstance(description, str) or not description.isascii():
        return False
    return set(words(description).split()) <= set(words(name).split())
