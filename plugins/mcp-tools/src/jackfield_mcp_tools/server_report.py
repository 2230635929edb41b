"""Shows a server's tools to a person: every text, what looks like instructions, and what changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
from jackfield_builder.listed_definitions import visible
from jackfield_cli.terminal import echo

from jackfield_mcp_tools.definitions import Definition, tool_ids
from jackfield_mcp_tools.settings import ServerSettings, manifest_fields
from jackfield_mcp_tools.suspicious_text import MarkedText, marked_texts


def report_to_wire(
    name: str,
    server: ServerSettings,
    listed: Mapping[str, Definition],
    drift: Mapping[str, tuple[str, ...]],
) -> dict[str, Any]:
    """Return a server's tools as JSON, with their marks and their changes since the build."""
    ids = tool_ids(name, listed)
    tools = {
        tool: {
            "toolId": ids[tool],
            "offered": server.offers(tool),
            "definition": dict(definition.wire),
            "marks": [
                {"path": mark.path, "start": mark.start, "end": mark.end, "why": mark.why}
                for text in marked_texts(definition.wire, ())
                for mark in text.marks
            ],
        }
        for tool, definition in sorted(listed.items())
    }
    return {
        "address": server.address,
        "tools": tools,
        "drift": {tool: list(each) for tool, each in drift.items()},
    }


def print_server(
    name: str,
    server: ServerSettings,
    listed: Mapping[str, Definition],
    drift: Mapping[str, tuple[str, ...]],
) -> None:
    """Print a server's tools with their texts, marks and changes, so that a person can review them."""
    tools = "1 tool" if len(listed) == 1 else f"{len(listed)} tools"
    echo(click.style(f"{name} ({server.address}), {tools}", bold=True))
    for tool, tool_id in sorted(tool_ids(name, listed).items()):
        if not server.offers(tool):
            echo(click.style(f"\n  {tool_id}: excluded by allow or deny", dim=True))
            continue
        fields = manifest_fields(server.overrides(tool), server.timeout)
        asks = {True: "needs confirmation", False: "needs no confirmation"}.get(
            fields["requiresConfirmation"], "needs confirmation if a policy requires it"
        )
        echo(f"\n  {click.style(tool_id, bold=True)}  {fields['category']}, {fields['sideEffects']}, {asks}")
        marked = {each.path: each for each in marked_texts(listed[tool].wire, ())}
        description = marked.pop("/description", None)
        _show_text(listed[tool].description or "(no description)", description)
        for each in marked.values():
            echo(click.style(f"    {each.path}:", dim=True))
            _show_text(each.text, each)
        for what in drift.get(tool, ()):
            echo(click.style(f"    since the build: {what}", fg="yellow"))
    for tool in sorted(set(drift) - set(listed)):
        echo(click.style(f"\n  {tool}: since the build: {'; '.join(drift[tool])}", fg="yellow"))
    echo()


def _show_text(text: str, marked: MarkedText | None) -> None:
    """Print a text with its marks in colour, and the reasons below it."""

    marks = marked.marks if marked else ()
    inside = [any(mark.start <= index < mark.end for mark in marks) for index in range(len(text))]
    shown = "".join(
        click.style(visible(each), fg="red", bold=True) if hit and each not in "\r\n" else _layout(each)
        for each, hit in zip(text, inside, strict=True)
    )
    for line in shown.splitlines():
        echo(f"    {line}")
    for why in dict.fromkeys(mark.why for mark in marks):
        echo(click.style(f"    ^ {why}", fg="red"))


def _layout(character: str) -> str:

    return character if character in "\n\t" else visible(character)
