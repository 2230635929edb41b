"""What a command is told of a deployment: its settings, the host's, and where each of them came from."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

if TYPE_CHECKING:
    from jackfield.settings import Settings

    from jackfield_host.options import HostOptions

DEFAULT = "default"


class Deployment(NamedTuple):
    """The settings of this process, of the kernel and of the host."""

    settings: Settings
    options: HostOptions
    file: Path | None
    """The file that was read."""
    document: Mapping[str, Any]
    """What stands in it."""
    flags: frozenset[str]
    """The settings that were given as flags."""

    def origin(self, key: str) -> str:
        """Where a setting of the kernel came from."""
        if key in self.flags:
            return _flag(key)
        variable = f"JACKFIELD_{key.upper()}"
        if os.environ.get(variable):
            return variable
        return str(self.file) if key in self.document else DEFAULT

    def host_origin(self, name: str) -> str:
        """Where a setting of the host came from."""
        from jackfield_host.options import variables_of

        if name in self.flags:
            return _flag(name)
        if variables := variables_of(name, os.environ):
            return variables[0]
        return str(self.file) if name in self.document.get("host", {}) else DEFAULT

    def sources(self) -> tuple[str, ...]:
        """Everything that said something: flags, variables, the file."""
        from jackfield.settings import KEYS

        from jackfield_host.options import HostOptions

        named = {self.origin(key) for key in KEYS} | {self.host_origin(n) for n in HostOptions.model_fields}
        if self.file and self.document:
            named.add(str(self.file))
        return tuple(sorted(named - {DEFAULT}))


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def with_deployment(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `deployment`, and options for the settings file and the registry."""

    @wraps(command)
    def wrapped(config: str | None, registry: str | None, **given: Any) -> Any:
        return command(lambda **flags: deployment(config, registry=registry, **flags), **given)

    for option in (
        click.option("--config", metavar="FILE", help="Settings file (default: jackfield.toml)."),
        click.option("--registry", metavar="FILE", help="The registry file (default: tool_registry.json)."),
    ):
        wrapped = option(wrapped)
    return wrapped


def deployment(config: str | None = None, **flags: Any) -> Deployment:
    """The deployment as flags, environment and file describe it; all that is wrong in it ends the command."""
    from jackfield.settings import KEYS, Mistakes, Settings, SettingsError

    from jackfield_host.options import HostOptions

    given = {name: value for name, value in flags.items() if value is not None}
    of_kernel = {name: value for name, value in given.items() if name in KEYS}
    of_host = {name: value for name, value in given.items() if name not in KEYS}
    mistakes = Mistakes()
    file = _file(config)
    try:
        with mistakes:
            settings = Settings.load(Path(config) if config else None, **of_kernel)
        with mistakes:
            document = _document(file)
            options = HostOptions.load(document.get("host", {}), **of_host)
        mistakes.tell()
    except SettingsError as error:
        raise click.ClickException(str(error)) from None
    return Deployment(settings, options, file, document, frozenset(given))


def _file(config: str | None) -> Path | None:
    from jackfield.settings import CONFIG_FILE

    path = Path(config or os.environ.get("JACKFIELD_CONFIG") or CONFIG_FILE)
    return path if path.exists() else None


def _document(file: Path | None) -> dict[str, Any]:
    import tomllib

    return tomllib.loads(file.read_text("utf-8")) if file else {}
