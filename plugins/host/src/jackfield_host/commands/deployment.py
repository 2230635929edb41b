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


Rest = Callable[["Settings", "HostOptions | None", bool], str]
"""Says what else is wrong with settings that are right so far, and whether they are all that was said."""


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


def deployment(config: str | None = None, rest: Rest | None = None, **flags: Any) -> Deployment:
    """The deployment as flags, environment and file describe it; all that is wrong in it ends the command.

    `rest` is asked what else is wrong, as far as what is right goes, so that all is told at once.
    """
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
            options = HostOptions.load(_of_host(document), **of_host)
        mistakes.tell()
    except SettingsError as error:
        further = _further(rest, config, of_kernel, of_host) if rest else ""
        raise click.ClickException(f"{error}\n{further}".rstrip()) from None
    return Deployment(settings, options, file, document, frozenset(given))


def _further(rest: Rest, config: str | None, of_kernel: Mapping[str, Any], of_host: Mapping[str, Any]) -> str:
    from jackfield.settings import Settings, SettingsError

    from jackfield_host.commands.usable import usable_settings
    from jackfield_host.options import HostOptions

    try:
        document = _document(_file(config))
    except (OSError, ValueError):
        # A file that cannot be read says nothing else, either.
        return ""
    settings: Settings | None
    try:
        settings, certain = Settings.load(Path(config) if config else None, **of_kernel), True
    except SettingsError:
        settings, certain = usable_settings(document, of_kernel), False
    if settings is None:
        return ""
    return rest(settings, HostOptions.as_far_as_right(_of_host(document), **of_host), certain)


def _file(config: str | None) -> Path | None:
    from jackfield.settings import CONFIG_FILE

    path = Path(config or os.environ.get("JACKFIELD_CONFIG") or CONFIG_FILE)
    return path if path.exists() else None


def _document(file: Path | None) -> dict[str, Any]:
    import tomllib

    return tomllib.loads(file.read_text("utf-8")) if file else {}


def _of_host(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is said to the host; that it is a table at all, the kernel sees to."""
    table = document.get("host")
    return table if isinstance(table, Mapping) else {}
