"""Loads the settings of a deployment for a command: those of the kernel and the host, with their origins."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from jackfield.settings import Settings, SettingsFaults

    from jackfield_host.settings import HostSettings

DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class DeploymentSettings:
    """The settings of this process, of the kernel and of the host."""

    settings: Settings
    host: HostSettings
    faults: SettingsFaults
    """The faults in them; faulty settings have their defaults."""
    certain: bool
    """False if keys of the settings file are faulty, so that other settings may be missing."""
    file: Path | None
    """The file that was read."""
    document: Mapping[str, Any]
    """The content of the file."""
    config: str | None
    """The settings file that the flag names."""
    given: Mapping[str, Any]
    """The settings that were given as flags."""

    @property
    def flags(self) -> frozenset[str]:
        """The names of the settings that were given as flags."""
        return frozenset(self.given)

    def origin(self, key: str) -> str:
        """Return where a setting of the kernel comes from."""
        return self._origin(key, f"JACKFIELD_{key.upper()}", self.document)

    def host_origin(self, name: str) -> str:
        """Return where a setting of the host comes from."""
        from jackfield_host.settings import variable

        table = self.document.get("host")
        return self._origin(name, variable(name), table if isinstance(table, Mapping) else {})

    def _origin(self, name: str, variable: str, table: Mapping[str, Any]) -> str:
        if name in self.flags:
            return f"--{name.replace('_', '-')}"
        if found := next(_variables(variable, os.environ), None):
            return found
        return str(self.file) if name in table else DEFAULT

    def sources(self) -> tuple[str, ...]:
        """Return all sources of settings: flags, variables, the file."""
        from dataclasses import fields

        from jackfield.settings import KEYS

        from jackfield_host.settings import HostSettings

        named = {self.origin(key) for key in KEYS}
        named |= {self.host_origin(each.name) for each in fields(HostSettings)}
        if self.file and self.document:
            named.add(str(self.file))
        return tuple(sorted(named - {DEFAULT}))


def _variables(name: str, environ: Mapping[str, str]) -> Iterator[str]:
    """Return the variables that are set for a setting: its own, and those of its members."""
    return (
        each
        for each, text in environ.items()
        if text and (each.upper() == name or each.upper().startswith(f"{name}__"))
    )


def with_deployment(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add options for the settings file and the registry; pass the command `load`, which reads them."""

    @wraps(command)
    def wrapped(config: str | None, registry: str | None, **given: Any) -> Any:
        return command(lambda **flags: load_deployment(config, registry=registry, **flags), **given)

    for option in (
        click.option("--config", metavar="FILE", help="The settings file (default: jackfield.toml)."),
        click.option("--registry", metavar="FILE", help="The registry file (default: tool_registry.json)."),
    ):
        wrapped = option(wrapped)
    return wrapped


def load_deployment(config: str | None = None, **flags: Any) -> DeploymentSettings:
    """Load the settings from flags, environment and file."""
    from jackfield.settings import KEYS, Settings, SettingsError, SettingsFaults, config_path, read_config

    from jackfield_host.settings import HostSettings

    given = {name: value for name, value in flags.items() if value is not None}
    of_host = {name: value for name, value in given.items() if name not in KEYS}
    named = Path(config) if config else None
    faults = SettingsFaults()
    settings = Settings.load(
        named, faults=faults, **{name: value for name, value in given.items() if name in KEYS}
    )
    certain = not faults
    host = HostSettings.load(settings.sections.get("host", {}), faults=faults, **of_host)
    try:
        document = read_config(named)
    except SettingsError:
        document = {}
    path = config_path(named)
    file = path if path.exists() else None
    return DeploymentSettings(settings, host, faults, certain, file, document, config, given)
