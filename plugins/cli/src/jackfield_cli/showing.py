"""`jackfield tools`, `describe` and `plugins`: what a registry holds and who offers what."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import click

from jackfield_cli.options import as_json, load_snapshot, print_json, with_registry, with_settings
from jackfield_cli.report import echo, is_narrow, print_findings, print_table

if TYPE_CHECKING:
    from jackfield.contract.snapshot import FrozenTool, Snapshot
    from jackfield.plugins import Plugins
    from jackfield.settings import Settings
    from jackfield_builder.discovery import Discovery

_MAX_REFERENCES = 4
"""How many references one behind the other are followed: their members multiply."""


@click.command()
@click.option("--tokens", "with_tokens", is_flag=True, help="Show what each tool costs in the prompt.")
@with_registry
@as_json
def tools(settings: Settings, with_tokens: bool, as_json: bool) -> None:
    """List the tools of the registry, and why any of them is withheld."""
    snapshot: Snapshot = load_snapshot(settings.registry)
    withheld = _withheld(snapshot, settings)
    if with_tokens:
        from jackfield_cli.tokens import show_tokens

        show_tokens(snapshot, settings, withheld, as_json=as_json)
        return
    if as_json:
        print_json(
            {
                "version": snapshot.version,
                "tools": [
                    {
                        **tool.manifest.metadata(),
                        "summary": tool.summary,
                        "distribution": tool.distribution,
                        "withheld": withheld.get(tool.manifest.tool_id),
                    }
                    for tool in snapshot.tools.values()
                ],
            }
        )
        return
    rows = [_row(tool, withheld.get(tool.manifest.tool_id)) for tool in snapshot.tools.values()]
    if is_narrow():
        for tool_id, version, *facts, confirm, summary in rows:
            facts.append(f"confirm: {confirm}")
            echo(f"{click.style(tool_id, bold=True)} {version}  {click.style(' · '.join(facts), dim=True)}")
            echo(f"  {summary}")
    else:
        print_table(("tool", "version", "category", "effects", "modes", "budget", "confirm", "summary"), rows)
    echo(f"registry {snapshot.version}, {settings.registry}")


def _withheld(snapshot: Snapshot, settings: Settings) -> dict[str, str]:
    """Why each tool is withheld that is: it changed, nobody provides what it needs, or it is not set up."""
    from jackfield.registry.registry import Deployment, drift_for

    drift = drift_for(snapshot, Deployment(settings.deployment))
    reasons = {
        tool_id: differs for tool_id, tool in snapshot.tools.items() if (differs := drift.of_tool(tool))
    }
    reasons |= {
        tool_id: f"nobody provides {', '.join(missing)}"
        for tool_id, tool in snapshot.tools.items()
        if (missing := snapshot.missing_requirements(tool))
    }
    rest = [tool for tool_id, tool in snapshot.tools.items() if tool_id not in reasons]
    if not any(tool.manifest.requires for tool in rest):
        return reasons
    from jackfield.components import PluginComponents
    from jackfield.registry.registry import RegistryError
    from jackfield.settings import SettingsError

    try:
        components = PluginComponents.of(snapshot, settings, drift)
        reasons |= {tool.manifest.tool_id: why for tool in rest if (why := components.withheld_reason(tool))}
        components.faults.check()
    except (RegistryError, SettingsError) as error:
        raise click.ClickException(str(error)) from None
    return reasons


def _row(tool: FrozenTool, withheld: str | None) -> tuple[str, ...]:
    manifest = tool.manifest
    summary = f"withheld: {withheld}" if withheld else shorten(tool.summary, 90, placeholder=" …")
    confirm = {True: "yes", False: "no", "policy": "by policy"}[manifest.requires_confirmation]
    return (
        manifest.tool_id,
        manifest.version,
        manifest.category,
        manifest.side_effects,
        ", ".join(manifest.allowed_modes),
        f"{manifest.latency_budget_ms} ms",
        confirm,
        summary,
    )


@click.command()
@click.argument("tool")
@with_registry
@as_json
def describe(settings: Settings, tool: str, as_json: bool) -> None:
    """Show everything the registry knows about one TOOL."""
    snapshot: Snapshot = load_snapshot(settings.registry)
    frozen = snapshot.tools.get(tool)
    if frozen is None:
        from difflib import get_close_matches

        close = get_close_matches(tool, snapshot.tools, 1)
        meant = f"; did you mean {close[0]}?" if close else "; `jackfield tools` lists them"
        raise click.UsageError(f"{settings.registry} has no tool {tool!r}{meant}")
    if as_json:
        print_json(next(each for each in snapshot.wire["tools"] if each["toolId"] == tool))
        return
    manifest = frozen.manifest
    echo(click.style(f"{tool} {manifest.version}", bold=True))
    echo(manifest.description)
    echo()
    facts = {**manifest.metadata(), "handler": frozen.handler, "content": frozen.content_hash[:23]}
    facts["distribution"] = f"{frozen.distribution} {frozen.distribution_version}"
    facts["declared for"] = ", ".join(frozen.provider_schemas) or "no provider yet"
    for name, value in facts.items():
        if name not in {"toolId", "version", "description", "returns"} and value not in (None, []):
            # A preview has several lines, which stay in their column.
            echo(f"  {name:<20} {_spelled(value)}".replace("\n", "\n" + " " * 23))
    if why := _withheld(snapshot, settings).get(tool):
        echo(click.style(f"  withheld: {why}", fg="yellow"))
    echo()
    _print_arguments(list(_members(manifest.parameters, manifest.parameters, "", ())))
    echo()
    echo(frozen.documentation.rstrip())


def _spelled(value: Any) -> str:
    """A value as the author wrote it in schema.json, but for quotes around words."""
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ", ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _print_arguments(rows: list[tuple[str, ...]]) -> None:
    if not is_narrow():
        print_table(("argument", "type", "required", "default", "meaning"), rows)
        return
    for path, kind, required, default, meaning in rows:
        facts = [kind, "required" if required else "", f"default {default}" if default else ""]
        echo(f"{click.style(path, bold=True)}  {click.style(' · '.join(filter(None, facts)), dim=True)}")
        if meaning:
            echo(f"  {meaning}")


def _members(root: Any, schema: Any, within: str, behind: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """A row for each argument, those of nested objects under a dotted name, what is required first."""
    from jackfield.registry.arguments import resolve

    if not isinstance(schema, Mapping):
        return
    reference = schema.get("$ref")
    if reference is not None and reference not in behind and len(behind) < _MAX_REFERENCES:
        # A recursive schema is shown once.
        yield from _members(root, resolve(root, reference), within, (*behind, reference))
    required = schema.get("required", ())
    members = schema.get("properties", {})
    for name, member in sorted(members.items(), key=lambda each: each[0] not in required):
        path = f"{within}.{name}" if within else name
        shown = member if isinstance(member, Mapping) else {}
        yield (
            path,
            _type(shown),
            "yes" if name in required else "",
            json.dumps(shown["default"], ensure_ascii=False) if "default" in shown else "",
            shown.get("description", ""),
        )
        yield from _members(root, member, path, behind)
    yield from _members(root, schema.get("items"), f"{within}[]", behind)


def _type(member: Any) -> str:
    if "enum" in member:
        return " | ".join(str(value) for value in member["enum"])
    kind = member.get("type", member.get("$ref", "any"))
    return " | ".join(kind) if isinstance(kind, list) else str(member.get("format", kind))


@click.command()
@with_settings
@as_json
def plugins(settings: Settings, as_json: bool) -> None:
    """Show what installed plugins offer, in which order policies stand."""
    from jackfield.plugins import load
    from jackfield_builder.complaints import findings_about
    from jackfield_builder.discovery import Selection, discover
    from jackfield_builder.findings import in_order

    discovery = discover(Selection(settings.allow, settings.deny))
    loaded = load(discovery.plugins)
    findings = (*discovery.findings, *findings_about(loaded))
    if as_json:
        print_json(_plugins_as_json(discovery, loaded) | {"findings": [each.to_wire() for each in findings]})
        return
    rows = [
        (f"{entry.distribution}", entry.name, _offers(loaded, entry) or "nothing") for entry in loaded.loaded
    ]
    rows += [(f"{entry.distribution}", entry.name, "switched off") for entry in discovery.switched_off]
    if rows:
        print_table(("distribution", "entry", "offers"), rows)
    else:
        echo("No plugin is installed.")
    chain = [f"{offer.name} ({offer.stage.name.lower()})" for offer, _ in loaded.policy_chain()]
    echo(f"policy order: {' > '.join(chain) or 'no policies'}")
    print_findings(in_order(findings))


def _offers(loaded: Plugins, entry: Any) -> str:
    by_hook: dict[str, list[str]] = {}
    for each in loaded.offered:
        if each.plugin == entry:
            by_hook.setdefault(each.hook.removeprefix("jackfield_").replace("_", " "), []).append(each.name)
    return "; ".join(f"{kind}: {', '.join(names)}" for kind, names in by_hook.items())


def _plugins_as_json(discovery: Discovery, loaded: Plugins) -> dict[str, Any]:
    return {
        "plugins": [
            {
                "distribution": entry.distribution.name,
                "version": entry.distribution.version,
                "name": entry.name,
                "offers": [
                    {"hook": each.hook, "name": each.name} for each in loaded.offered if each.plugin == entry
                ],
            }
            for entry in loaded.loaded
        ],
        "policyOrder": [
            {"name": offer.name, "stage": offer.stage.name} for offer, _ in loaded.policy_chain()
        ],
        "switchedOff": [
            {"group": entry.group, "name": entry.name, "distribution": entry.distribution.name}
            for entry in discovery.switched_off
        ],
    }
