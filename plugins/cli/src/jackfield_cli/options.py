"""What several commands share: settings from options, and errors without a traceback."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from jackfield.settings import Settings, SettingsFaults

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")

no_import = click.option(
    "--no-import", is_flag=True, help="Judge handlers by their source alone; run no code of any tool."
)


_REGISTRY = (
    click.option("--registry", metavar="FILE", help="The registry file (default: tool_registry.json)."),
    click.option("--config", metavar="FILE", help="Settings file (default: jackfield.toml)."),
)
_SELECTION = (
    click.option(
        "--allow", metavar="NAME", multiple=True, help="Use only this distribution or entry; repeatable."
    ),
    click.option(
        "--deny", metavar="NAME", multiple=True, help="Leave out this distribution or entry; repeatable."
    ),
)


def with_registry(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `settings`, and the options that say which registry."""
    return _with(command, _REGISTRY)


def with_settings(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `settings`, and the options that also say what takes part."""
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


def print_json(value: Any) -> None:
    """JSON on standard output, readable and stable; what JSON cannot carry, as nearly as it can be.

    An event that a tool sends to its client may hold anything.
    """
    plain = json.loads(json.dumps(value, default=str, skipkeys=True), parse_constant=lambda _: None)
    click.echo(json.dumps(plain, indent=2, ensure_ascii=False).encode("utf-8", "replace").decode())


def load_snapshot(path: Path) -> Any:
    """A registry file, or an error that says how to get one."""
    from jackfield.contract.snapshot import Snapshot, SnapshotError

    try:
        return Snapshot.load(path)
    except SnapshotError as error:
        raise click.ClickException(str(error)) from None
