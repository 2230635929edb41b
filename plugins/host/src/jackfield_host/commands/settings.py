"""`jackfield settings`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from jackfield_cli.options import as_json as json_option
from jackfield_cli.terminal import print_json

from jackfield_host.commands.deployment import DEFAULT, with_deployment

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackfield.components import PluginComponents

    from jackfield_host.commands.deployment import DeploymentSettings

_LONGEST = 60
"""The maximum length of a list that is shown, in characters."""

_WIDTH = 100
"""The width of the text on a wide terminal and in a pipe, in columns."""


class _Setting(NamedTuple):
    """A setting in effect."""

    value: Any
    origin: str
    default: Any
    """None if the setting is required, or has no default value."""
    help: str

    def as_json(self) -> dict[str, Any]:
        return {"value": self.value, "from": self.origin, "default": self.default, "help": self.help}


@click.command()
@with_deployment
@json_option
def settings(load: Callable[..., DeploymentSettings], as_json: bool) -> None:
    """Show every setting with its value, its source, its default and its meaning.

    Secrets are not shown.
    """
    deployment = load()
    components = _components(deployment)
    if deployment.faults:
        raise click.ClickException(str(deployment.faults))
    tables = {"deployment": _kernel(deployment, components), "host": _host(deployment)}
    tables |= _offers(deployment, components)
    if as_json:
        shown = {
            table: {name: each.as_json() for name, each in rows.items()} for table, rows in tables.items()
        }
        print_json({"file": str(deployment.file) if deployment.file else None, "settings": shown})
        return
    from jackfield_cli.terminal import echo

    echo(f"file: {deployment.file or 'none; jackfield.toml is read if it exists'}")
    width = _width()
    for table, rows in tables.items():
        echo("")
        echo(click.style("settings" if table == "deployment" else f"[{table}]", bold=True))
        for name, each in rows.items():
            _print_setting(name, each, width)


def _width() -> int:
    """Return how many columns to use; in a pipe, that does not depend on the terminal."""
    import shutil
    import sys

    # `sys.stdout` is None if the process has no standard output.
    is_terminal = sys.stdout and sys.stdout.isatty()
    return min(_WIDTH, shutil.get_terminal_size().columns) if is_terminal else _WIDTH


def _print_setting(name: str, setting: _Setting, width: int) -> None:
    """Print a setting's value and source, and below them its meaning."""
    from textwrap import fill

    from jackfield_cli.terminal import echo

    value = f"{name}: {_shown(setting.value)}"
    # Values are not wrapped, so that they can be searched for and copied.
    echo(f"  {value}  {click.style(f'({_source(setting)})', dim=True)}")
    if setting.help:
        # Names such as `jackfield-store-sqlite` stay whole.
        indent = " " * 6
        wrapped = fill(
            setting.help, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
        )
        echo(wrapped)


def _source(setting: _Setting) -> str:
    default = _shown(setting.default)
    if setting.origin == DEFAULT:
        return DEFAULT if default == _shown(setting.value) else f"default: {default}"
    return f"from {setting.origin}" + ("" if setting.default is None else f"; default: {default}")


def _components(deployment: DeploymentSettings) -> PluginComponents:
    """Load the installed plugins and read their tables; faults are added to the deployment's."""
    from jackfield.components import PluginComponents
    from jackfield.plugins import load
    from jackfield_builder.entry_points import Selection, installed_plugins

    chosen = deployment.settings
    plugins = load(installed_plugins(Selection(chosen.allow, chosen.deny)))
    return PluginComponents(plugins, chosen, faults=deployment.faults)


def _kernel(deployment: DeploymentSettings, components: PluginComponents) -> dict[str, _Setting]:
    from jackfield.settings import KEYS, KernelSettings

    values = {key: getattr(deployment.settings, key) for key in KEYS}
    values["store"] = values["store"] or components.store_name
    return _described(KernelSettings, values, {key: deployment.origin(key) for key in KEYS})


def _host(deployment: DeploymentSettings) -> dict[str, _Setting]:
    from dataclasses import fields

    from jackfield_host.settings import HostSettings

    names = [each.name for each in fields(HostSettings)]
    values = {name: getattr(deployment.host, name) for name in names}
    return _described(HostSettings, values, {name: deployment.host_origin(name) for name in names})


def _offers(deployment: DeploymentSettings, components: PluginComponents) -> dict[str, dict[str, _Setting]]:
    """Return the tables of every offer that has settings or a table."""
    from jackfield.components import HOOKS
    from jackfield.settings import FileTable

    tables = {}
    for kind, hook in HOOKS.items():
        for each in components.plugins.of(hook):
            offer: Any = each.offer
            table = deployment.settings.tables.get(kind, {}).get(each.name, {})
            if offer.settings is not None and isinstance(table, FileTable):
                table = table.resolved(offer.settings)
            origins = dict.fromkeys(table, str(deployment.file))
            rows = {name: _Setting(_plain(name, table[name]), origins[name], None, "") for name in table}
            if offer.settings is not None:
                rows |= _described(offer.settings, table, origins)
            if rows:
                tables[f"{kind}.{each.name}"] = rows
    return tables


def _described(
    declaration: type, values: Mapping[str, Any], origins: Mapping[str, str]
) -> dict[str, _Setting]:
    from dataclasses import MISSING

    from jackfield.settings import describe_settings

    rows = {}
    for each in describe_settings(declaration):
        default = None if each.default is MISSING else _plain(each.name, each.default)
        value = _plain(each.name, values[each.name]) if each.name in values else default
        rows[each.name] = _Setting(
            value, origins.get(each.name, DEFAULT), each.default_text or default, each.help
        )
    return rows


def _plain(name: str, value: Any) -> Any:
    """Return a value as JSON, without secrets."""
    from jackfield_host.logs import redact_setting

    return redact_setting(name, _as_json(value))


def _as_json(value: Any) -> Any:
    from dataclasses import asdict, is_dataclass

    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {str(key): _as_json(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_as_json(each) for each in value]
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(_flat(value)) or "empty"
    if isinstance(value, list):
        text = ", ".join(map(str, value)) or "empty"
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.15g}"
    return "not set" if value is None or value == "" else str(value)


def _flat(table: Mapping[str, Any], before: str = "") -> Iterator[str]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        elif value is not None:
            yield f"{before}{name}={_shown(value)}"
