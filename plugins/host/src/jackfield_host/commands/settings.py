"""`jackfield settings`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click
from jackfield_cli.options import as_json as json_option
from jackfield_cli.options import print_json

from jackfield_host.commands.deployment import with_deployment

if TYPE_CHECKING:
    from collections.abc import Callable

    from jackfield_host.commands.deployment import Deployment


@click.command()
@with_deployment
@json_option
def settings(load: Callable[..., Deployment], as_json: bool) -> None:
    """Show the settings this deployment would run with, and where each comes from; secrets are hidden."""
    deployment = load()
    said = {"deployment": _kernel(deployment), "host": _host(deployment), **_plugins(deployment)}
    if as_json:
        print_json({"file": str(deployment.file) if deployment.file else None, "settings": said})
        return
    from jackfield_cli.report import echo, print_table

    echo(f"file: {deployment.file or 'none; jackfield.toml is read where it exists'}")
    for table, settings in said.items():
        echo("")
        echo(click.style("settings" if table == "deployment" else f"[{table}]", bold=True))
        rows = [(name, _shown(each["value"]), each["from"]) for name, each in settings.items()]
        print_table(("setting", "value", "from"), rows)


def _kernel(deployment: Deployment) -> dict[str, Any]:
    from jackfield.settings import KEYS

    used = _chosen_by_default(deployment)
    values = {key: getattr(deployment.settings, key) for key in KEYS}
    values |= {key: name for key, name in used.items() if not values[key]}
    return {key: _said(key, value, deployment.origin(key)) for key, value in values.items()}


def _chosen_by_default(deployment: Deployment) -> dict[str, str]:
    """The store that is used where none is named, as far as there is a registry to tell."""
    from jackfield.contract.snapshot import Snapshot, SnapshotError
    from jackfield.provision import Provision
    from jackfield.registry.registry import RegistryError
    from jackfield.settings import SettingsError

    settings = deployment.settings
    if settings.store:
        return {}
    try:
        provision = Provision.of(Snapshot.load(settings.registry), settings)
    except (SnapshotError, RegistryError, SettingsError):
        return {}
    return {"store": provision.store_name}


def _host(deployment: Deployment) -> dict[str, Any]:
    options = deployment.options.model_dump(mode="json")
    return {name: _said(name, value, deployment.host_origin(name)) for name, value in options.items()}


def _plugins(deployment: Deployment) -> dict[str, Any]:
    """The tables of the file, which their plugins complete with defaults of their own."""
    return {
        f"{kind}.{name}": {key: _said(key, value, str(deployment.file)) for key, value in table.items()}
        for kind, tables in deployment.settings.tables.items()
        for name, table in tables.items()
    }


def _said(name: str, value: Any, origin: str) -> dict[str, Any]:
    from jackfield_host.security.redaction import hidden

    plain = value if isinstance(value, (bool, int, float, str, Mapping, list, type(None))) else _plain(value)
    return {"value": hidden(name, plain), "from": origin}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, (tuple, set, frozenset)) else str(value)


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(_flat(value)) or "empty"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "empty"
    if isinstance(value, bool):
        return str(value).lower()
    return "not set" if value is None or value == "" else str(value)


def _flat(table: Mapping[str, Any], before: str = "") -> Iterator[str]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        elif value is not None:
            yield f"{before}{name}={_shown(value)}"
