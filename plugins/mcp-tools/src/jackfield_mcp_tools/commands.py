"""`jackfield mcp add`, `list` and `inspect`: a deployment's MCP servers, and the texts of their tools."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from jackfield.settings import CONFIG_FILE, SettingsError, SettingsFaults, parse_settings, read_offer
from jackfield_cli.options import as_json, with_registry
from jackfield_cli.terminal import echo, print_json

from jackfield_mcp_tools import jackfield_capabilities
from jackfield_mcp_tools.settings import MAX_SERVER_NAME, McpToolsSettings, ServerSettings

if TYPE_CHECKING:
    from jackfield.settings import Settings

    from jackfield_mcp_tools.definitions import Definition

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")


@click.command()
@click.argument("name")
@click.argument("command", nargs=-1)
@click.option("--url", help="The URL of an HTTP server; give this instead of a command.")
@click.option("--bearer-env", metavar="VARIABLE", help="The environment variable with the bearer token.")
@click.option(
    "--header-env",
    metavar="HEADER=VARIABLE",
    multiple=True,
    help="A header, and the environment variable with its value; repeatable.",
)
@click.option(
    "--pass-env",
    metavar="VARIABLE",
    multiple=True,
    help="An environment variable to pass to the command; repeatable.",
)
@click.option("--allow", metavar="TOOL", multiple=True, help="Offer only this tool; repeatable.")
@click.option("--deny", metavar="TOOL", multiple=True, help="Do not offer this tool; repeatable.")
@click.option(
    "--config", metavar="FILE", default=CONFIG_FILE, help=f"The settings file (default: {CONFIG_FILE})."
)
@click.option("--yes", is_flag=True, help="Add the server without asking.")
def add(name: str, command: tuple[str, ...], config: str, yes: bool, **options: Any) -> None:
    """Add the MCP server NAME to the settings, after showing its tools.

    For a stdio server, give its COMMAND after `--`; for an HTTP server, give --url. Jackfield connects to the
    server, shows its tools and any text that looks like instructions to a model, and asks before it changes
    the settings. Secrets stay in environment variables.

    \b
    jackfield mcp add time -- uvx mcp-server-time
    jackfield mcp add shop --url https://shop.example/mcp --bearer-env SHOP_TOKEN
    """
    from jackfield_mcp_tools.server_report import print_server

    if command and command[0].startswith(("http://", "https://")):
        raise click.UsageError(f"{command[0]} is the URL of an HTTP server; put --url before it")
    table = _table(command, **options)
    server = _checked(name, table)
    path = Path(config)
    if f"[capabilities.mcp.servers.{name}" in (path.read_text("utf-8") if path.exists() else ""):
        raise click.ClickException(f"{path}: there is already a server {name!r}; edit its table there")
    definitions = _definitions(name, server)
    print_server(name, server, definitions, {})
    if not yes:
        click.confirm(f"Add {name} to {path}?", abort=True, err=True)
    with path.open("a", encoding="utf-8") as file:
        file.write("\n".join(_lines(name, table)))
    echo(f"{path}: added [capabilities.mcp.servers.{name}]. `jackfield build` freezes its tools.")


@click.command("list")
@with_registry
@as_json
def list_servers(settings: Settings, as_json: bool) -> None:
    """List the MCP servers in the settings, with the number of their frozen tools."""
    servers, frozen = _settings_of(settings).servers, _frozen(settings)
    names = sorted({*servers, *frozen})
    rows = {
        name: {
            "address": servers[name].address if name in servers else None,
            "tools": len(frozen.get(name, ())),
        }
        for name in names
    }
    if as_json:
        print_json(rows)
        return
    for name, row in rows.items():
        where = row["address"] or "not in the settings: its tools are withheld"
        number = row["tools"]
        counted = f"{number} frozen tool{'' if number == 1 else 's'}"
        tools = counted if number else "no frozen tools; run `jackfield build`"
        echo(f"  {name:<{MAX_SERVER_NAME}}  {where}  ({tools})")
    if not rows:
        echo("The settings have no MCP servers. To add one: jackfield mcp add NAME -- COMMAND")


@click.command()
@click.argument("name", required=False)
@with_registry
@as_json
def inspect(settings: Settings, name: str | None, as_json: bool) -> None:
    """Connect to the MCP server NAME, or to all MCP servers, and show their current tools.

    Also shows any tool text that looks like instructions to a model, and what has changed since the build.
    The exit status is 1 if a frozen tool has changed or a server cannot be reached.
    """
    from jackfield_mcp_tools.foreign_servers import HOW_TO_ACCEPT, compare
    from jackfield_mcp_tools.server_report import print_server, report_to_wire
    from jackfield_mcp_tools.server_tools import read_definitions

    servers = _settings_of(settings).servers
    if name is not None and name not in servers:
        known = ", ".join(sorted(servers)) or "none"
        raise click.ClickException(f"the settings have no MCP server {name!r}; known servers: {known}")
    chosen = {each: servers[each] for each in sorted(servers) if name in (None, each)}
    frozen = _frozen(settings)
    report: dict[str, Any] = {}
    changed = unreachable = False
    for each, listed in read_definitions(chosen).items():
        if isinstance(listed, Exception):
            report[each] = {"error": str(listed)}
            unreachable = True
            if not as_json:
                echo(click.style(f"{each}: {listed}", fg="red"), err=True)
            continue
        drift = {
            pinned.name: found.changes
            for pinned in frozen.get(each, {}).values()
            if (found := compare(pinned, listed))
        }
        changed = changed or bool(drift)
        report[each] = report_to_wire(each, chosen[each], listed, drift)
        if not as_json:
            print_server(each, chosen[each], listed, drift)
    if as_json:
        print_json(report)
    elif changed:
        echo(f"Hosts withhold tools that have changed since the build; {HOW_TO_ACCEPT}.")
    sys.exit(1 if changed or unreachable else 0)


def _table(
    command: tuple[str, ...],
    *,
    url: str | None,
    bearer_env: str | None,
    header_env: tuple[str, ...],
    pass_env: tuple[str, ...],
    allow: tuple[str, ...],
    deny: tuple[str, ...],
) -> dict[str, Any]:
    headers = {}
    for each in header_env:
        header, equals, variable = each.partition("=")
        if not equals:
            raise click.UsageError(f"--header-env {each}: write it as HEADER=VARIABLE")
        headers[header] = variable
    table = {
        "command": list(command), "url": url, "bearer_env": bearer_env, "headers_env": headers,
        "pass_env": list(pass_env), "allow": list(allow), "deny": list(deny),
    }  # fmt: skip
    return {key: value for key, value in table.items() if value}


def _checked(name: str, table: Mapping[str, Any]) -> ServerSettings:
    if not _NAME.fullmatch(name) or len(name) > MAX_SERVER_NAME:
        raise click.UsageError(
            f"{name!r}: expected a name in snake_case of at most {MAX_SERVER_NAME} characters, such as github"
        )
    try:
        return parse_settings(ServerSettings, table, f"[capabilities.mcp.servers.{name}]")
    except SettingsError as error:
        raise click.UsageError(str(error)) from None


def _lines(name: str, table: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    yield f"[capabilities.mcp.servers.{name}]"
    for key, value in table.items():
        yield f"{key} = {_toml(value)}"
    yield ""


def _toml(value: Any) -> str:
    from jackfield_importers.literals import toml_string

    if isinstance(value, dict):
        inner = ", ".join(
            f"{key if _BARE.fullmatch(key) else toml_string(key)} = {_toml(each)}"
            for key, each in value.items()
        )
        return f"{{ {inner} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return toml_string(str(value))


def _settings_of(settings: Settings) -> McpToolsSettings:
    (offer,) = jackfield_capabilities()
    faults = SettingsFaults()
    read = read_offer("capabilities", offer, settings.table("capabilities", "mcp"), faults)
    if faults:
        raise click.UsageError(str(faults))
    assert isinstance(read, McpToolsSettings)  # noqa: S101 - the type that the offer declares
    return read


def _frozen(settings: Settings) -> dict[str, dict[str, Definition]]:
    """Return the definitions in the registry by server and tool id; empty if there is no registry."""
    from jackfield.contract.snapshot import Snapshot, SnapshotError

    from jackfield_mcp_tools.definitions import frozen_definitions

    try:
        return frozen_definitions(Snapshot.load(settings.registry))
    except SnapshotError:
        return {}


def _definitions(name: str, server: ServerSettings) -> dict[str, Definition]:
    from jackfield_mcp_tools.server_tools import read_definitions

    listed = read_definitions({name: server})[name]
    if isinstance(listed, Exception):
        raise click.ClickException(f"{name} ({server.address}): {listed}")
    return listed
