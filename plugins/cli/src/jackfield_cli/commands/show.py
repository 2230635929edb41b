"""`jackfield tools`, `describe` and `plugins`: show the registry's tools and the installed plugins."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import click

from jackfield_cli.options import as_json, load_snapshot, with_registry, with_settings
from jackfield_cli.terminal import echo, is_narrow, print_findings, print_json, print_table

if TYPE_CHECKING:
    from jackfield.contract.snapshot import FrozenTool, Snapshot
    from jackfield.plugins import Plugins
    from jackfield.settings import Settings
    from jackfield_builder.discovery import Discovery
    from jackfield_sessions.instructions import FixedPrompt

_MAX_REFERENCES = 4
"""How many nested references are followed; the number of members can grow exponentially."""


@click.command()
@click.option(
    "--tokens",
    "with_tokens",
    is_flag=True,
    help="Show how many tokens each tool takes in the prompt (an estimate).",
)
@with_registry
@as_json
def tools(settings: Settings, with_tokens: bool, as_json: bool) -> None:
    """List the tools in the registry, and show why any are withheld."""
    snapshot: Snapshot = load_snapshot(settings.registry)
    withheld = _withheld(snapshot, settings)
    if with_tokens:
        _show_tokens(snapshot, settings, withheld, as_json=as_json)
        return
    if as_json:
        print_json(
            {
                "version": snapshot.version,
                "tools": [_facts(tool, withheld) for tool in snapshot.tools.values()],
                "variants": [_facts(tool, withheld) for tool in snapshot.variants.values()],
            }
        )
        return
    rows = [_row(tool, withheld.get(tool.name)) for tool in snapshot.implementations.values()]
    if is_narrow():
        for tool_id, version, family, *facts, confirm, summary in rows:
            facts.append(f"confirm: {confirm}")
            facts.extend([f"family: {family}"] if family else [])
            echo(f"{click.style(tool_id, bold=True)} {version}  {click.style(' · '.join(facts), dim=True)}")
            echo(f"  {summary}")
    else:
        columns: tuple[str, ...] = (
            "tool",
            "version",
            "family",
            "category",
            "effects",
            "modes",
            "budget",
            "confirm",
            "summary",
        )
        if not any(row[2] for row in rows):
            # Without families, their column would only take space from the summaries.
            columns, rows = _without_family(columns), [_without_family(row) for row in rows]
        print_table(columns, rows)
    echo(f"registry {snapshot.version}, {settings.registry}")


def _facts(tool: FrozenTool, withheld: Mapping[str, str]) -> dict[str, Any]:
    return {
        **tool.manifest.metadata(),
        "summary": tool.summary,
        "distribution": tool.distribution,
        "family": tool.family,
        "withheld": withheld.get(tool.name),
    }


def _without_family(row: tuple[str, ...]) -> tuple[str, ...]:
    return (*row[:2], *row[3:])


def _withheld(snapshot: Snapshot, settings: Settings) -> dict[str, str]:
    """Return the withheld tools and variants, each with the reason: a change, or a missing capability."""
    from jackfield.registry.registry import Deployment, drift_for

    drift = drift_for(snapshot, Deployment(settings.deployment))
    found = snapshot.implementations
    reasons = {name: differs for name, tool in found.items() if (differs := drift.of_tool(tool))}
    reasons |= {
        name: f"no plugin provides {', '.join(missing)}"
        for name, tool in found.items()
        if (missing := snapshot.missing_requirements(tool))
    }
    rest = [tool for name, tool in found.items() if name not in reasons]
    if not any(tool.manifest.requires for tool in rest):
        return reasons
    from jackfield.components import PluginComponents
    from jackfield.registry.registry import RegistryError
    from jackfield.settings import SettingsError

    try:
        components = PluginComponents.of(snapshot, settings, drift)
        reasons |= {tool.name: why for tool in rest if (why := components.withheld_reason(tool))}
        components.faults.check()
    except (RegistryError, SettingsError) as error:
        raise click.ClickException(str(error)) from None
    return reasons


def _row(tool: FrozenTool, withheld: str | None) -> tuple[str, ...]:
    manifest = tool.manifest
    summary = f"withheld: {withheld}" if withheld else shorten(tool.summary, 90, placeholder=" …")
    confirm = {True: "yes", False: "no", "policy": "by policy"}[manifest.requires_confirmation]
    return (
        tool.name,
        manifest.version,
        tool.family or "",
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
    """Show everything the registry contains about TOOL or TOOL:VARIANT."""
    snapshot: Snapshot = load_snapshot(settings.registry)
    frozen = snapshot.implementations.get(tool)
    if frozen is None:
        from difflib import get_close_matches

        close = get_close_matches(tool, snapshot.implementations, 1)
        meant = f"; did you mean {close[0]}?" if close else "; `jackfield tools` lists the tools"
        raise click.UsageError(f"{settings.registry} has no tool {tool!r}{meant}")
    if as_json:
        entries = (*snapshot.wire["tools"], *snapshot.wire.get("variants", ()))
        names = [*snapshot.tools, *snapshot.variants]
        print_json(entries[names.index(tool)])
        return
    manifest = frozen.manifest
    echo(click.style(f"{tool} {manifest.version}", bold=True))
    echo(manifest.description)
    echo()
    facts = {**manifest.metadata(), "handler": frozen.handler, "content": frozen.content_hash[:23]}
    facts["variants"] = [
        each.manifest.variant for each in snapshot.variants.values() if each.manifest.tool_id == tool
    ]
    facts["family"] = frozen.family
    facts["server"] = frozen.origin["server"] if frozen.origin else None
    facts["distribution"] = f"{frozen.distribution} {frozen.distribution_version}"
    facts["declared for"] = ", ".join(frozen.provider_schemas) or "no provider yet"
    for name, value in facts.items():
        if name not in {"toolId", "version", "description", "returns"} and value not in (None, []):
            # A preview has several lines, which are indented to their column.
            echo(f"  {name:<20} {_value_text(value)}".replace("\n", "\n" + " " * 23))
    if why := _withheld(snapshot, settings).get(tool):
        echo(click.style(f"  withheld: {why}", fg="yellow"))
    echo()
    _print_arguments(list(_members(manifest.parameters, manifest.parameters, "", ())))
    echo()
    echo(frozen.documentation.rstrip())


def _value_text(value: Any) -> str:
    """Return a value as in schema.json, but strings without quotes."""
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


def _members(root: Any, schema: Any, prefix: str, followed: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each argument, required ones first; nested arguments have dotted names."""
    from jackfield.registry.arguments import resolve

    if not isinstance(schema, Mapping):
        return
    reference = schema.get("$ref")
    if reference is not None and reference not in followed and len(followed) < _MAX_REFERENCES:
        # A recursive schema is expanded once.
        yield from _members(root, resolve(root, reference), prefix, (*followed, reference))
    required = schema.get("required", ())
    members = schema.get("properties", {})
    for name, member in sorted(members.items(), key=lambda each: each[0] not in required):
        path = f"{prefix}.{name}" if prefix else name
        shown = member if isinstance(member, Mapping) else {}
        yield (
            path,
            _type(shown),
            "yes" if name in required else "",
            json.dumps(shown["default"], ensure_ascii=False) if "default" in shown else "",
            shown.get("description", ""),
        )
        yield from _members(root, member, path, followed)
    yield from _members(root, schema.get("items"), f"{prefix}[]", followed)


def _type(member: Any) -> str:
    if "enum" in member:
        return " | ".join(str(value) for value in member["enum"])
    kind = member.get("type", member.get("$ref", "any"))
    return " | ".join(kind) if isinstance(kind, list) else str(member.get("format", kind))


@click.command()
@with_settings
@as_json
def plugins(settings: Settings, as_json: bool) -> None:
    """Show what the installed plugins offer, and the order of the policies."""
    from jackfield.plugins import load
    from jackfield_builder.discovery import Selection, discover, plugin_findings
    from jackfield_builder.findings import sort_findings

    discovery = discover(Selection(settings.allow, settings.deny))
    loaded = load(discovery.plugins)
    findings = (*discovery.findings, *plugin_findings(loaded))
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
    print_findings(sort_findings(findings))


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


def _show_tokens(
    snapshot: Snapshot, settings: Settings, withheld: Mapping[str, str], *, as_json: bool
) -> None:
    """Print the tokens of every offered tool and of the prompt in each mode."""
    try:
        from jackfield_sessions.instructions import tool_tokens
    except ImportError:
        raise click.ClickException(
            "--tokens needs jackfield-sessions, which composes the prompts; install jackfield-host or "
            "jackfield-cli[tokens]"
        ) from None
    prompts = _prompts(snapshot, settings, withheld)
    costs: dict[str, Any] = {
        tool_id: cost for tool_id in snapshot.tools if (cost := tool_tokens(prompts, tool_id)) is not None
    }
    if as_json:
        listed = [{"toolId": tool_id, **cost} for tool_id, cost in costs.items()]
        print_json(
            {
                "version": snapshot.version,
                "tools": listed,
                "prompts": [prompt.to_wire() for prompt in prompts],
            }
        )
        return
    rows = [
        (
            tool_id,
            *(f"{cost[part]:,}" for part in ("declaration", "summary", "guide")),
            ", ".join(cost["guideInPrompt"]) or "no",
        )
        for tool_id, cost in costs.items()
    ]
    print_table(("tool", "declaration", "summary", "guide", "guide in the prompt"), rows)
    for prompt in prompts:
        echo(prompt.figures)
    for prompt in prompts:
        if prompt.excess:
            echo(click.style(prompt.excess, fg="yellow"), err=True)


def _prompts(snapshot: Snapshot, settings: Settings, withheld: Mapping[str, str]) -> list[FixedPrompt]:
    """Return the fixed part of the prompt for each mode that the provider supports."""
    from jackfield.components import PluginComponents
    from jackfield.registry.registry import RegistryError
    from jackfield.settings import SettingsError
    from jackfield_sessions.instructions import fixed_prompt, folders, token_budget

    try:
        components = PluginComponents.of(snapshot, settings)
        components.faults.check()
        transport = components.transport()
        if not transport.modes:
            choice = components.provider_choice
            raise SettingsError(f"provider: {choice.reason}; {'; or '.join(choice.hints)}")
        where, budget = folders(settings.prompts), token_budget(settings, transport)
        offered = [tool for tool_id, tool in snapshot.tools.items() if tool_id not in withheld]
        return [
            fixed_prompt(offered, mode, where, adapter=transport.adapter(mode), budget=budget)
            for mode in sorted(transport.modes)
        ]
    except (RegistryError, SettingsError) as error:
        raise click.ClickException(str(error)) from None
