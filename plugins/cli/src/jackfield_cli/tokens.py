"""`jackfield tools --tokens`: what each tool costs a session, and what sessions begin with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from jackfield_cli.options import print_json
from jackfield_cli.report import echo, print_table

if TYPE_CHECKING:
    from jackfield.contract.snapshot import Snapshot
    from jackfield.settings import Settings
    from jackfield_sessions.instructions import FixedPrompt


def show_tokens(
    snapshot: Snapshot, settings: Settings, withheld: Mapping[str, str], *, as_json: bool
) -> None:
    """Print the tokens of every tool that is offered, and of the prompt of each mode."""
    try:
        from jackfield_sessions.instructions import tool_tokens
    except ImportError:
        raise click.ClickException(
            "--tokens needs jackfield-sessions, which composes prompts; jackfield-host brings it, and so "
            "does pip install 'jackfield-cli[tokens]'"
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
    """The fixed part of the prompt of each mode that the provider carries."""
    from jackfield.components import PluginComponents
    from jackfield.registry.registry import RegistryError
    from jackfield.settings import SettingsError
    from jackfield_sessions.instructions import fixed_prompt, folders, token_budget

    try:
        components = PluginComponents.of(snapshot, settings)
        components.faults.check()
        transport = components.transport()
        where, budget = folders(settings.prompts), token_budget(settings, transport)
        offered = [tool for tool_id, tool in snapshot.tools.items() if tool_id not in withheld]
        return [
            fixed_prompt(offered, mode, where, adapter=transport.adapter(mode), budget=budget)
            for mode in sorted(transport.modes)
        ]
    except (RegistryError, SettingsError) as error:
        raise click.ClickException(str(error)) from None
