"""Options that several commands share: settings, registry, allow and deny lists, JSON output."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from jackfield.settings import Settings, SettingsFaults

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")

no_import = click.option(
    "--no-import", is_flag=True, help="Check only the handlers' source; do not run any tool code."
)


_REGISTRY = (
    click.option("--registry", metavar="FILE", help="The registry file (default: tool_registry.json)."),
    click.option("--config", metavar="FILE", help="The settings file (default: jackfield.toml)."),
)
_SELECTION = (
    click.option(
        "--allow",
        metavar="NAME",
        multiple=True,
        help="Use only this distribution or entry point; repeatable.",
    ),
    click.option(
        "--deny", metavar="NAME", multiple=True, help="Exclude this distribution or entry point; repeatable."
    ),
)


def with_registry(command: Callable[..., Any]) -> Callable[..., Any]:
    """Pass `settings` to a command, and add the options that select the registry."""
    return _with(command, _REGISTRY)


def with_settings(command: Callable[..., Any]) -> Callable[..., Any]:
    """Pass `settings` to a command, and add the options for the registry and for allow and deny lists."""
    return _with(command, _REGISTRY + _SELECTION)


def _with(command: Callable[..., Any], options: tuple[Callable[..., Any], ...]) -> Callable[..., Any]:
    @functools.wraps(command)
    def wrapped(config: str | None, **given: Any) -> Any:
        chosen = {name: given.pop(name) for name in ("registry", "allow", "deny") if name in given}
        faults = SettingsFaults()
        settings = Settings.load(Path(config) if config else None, faults=faults, **chosen)
        if faults:
            from jackfield.components import add_table_faults

            add_table_faults(settings, faults)
            raise click.UsageError(str(faults))
        return command(settings=settings, **given)

    for option in reversed(options):
        wrapped = option(wrapped)
    return wrapped


def load_snapshot(path: Path) -> Any:
    """Load a registry file; if there is none, the error says how to create it."""
    from jackfield.contract.snapshot import Snapshot, SnapshotError

    try:
        return Snapshot.load(path)
    except SnapshotError as error:
        raise click.ClickException(str(error)) from None
