"""The command group of `jackfield`: the built-in commands, then the commands that plugins offer."""

from __future__ import annotations

import importlib
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from jackfield_cli.shared_group import load_command, top_level

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem
    from jackfield.offers import CommandOffer
    from jackfield_builder.entry_points import Selection

COMMAND_DISTRIBUTIONS = {
    "chat": "jackfield-client",
    "talk": "jackfield-client",
    "dev": "jackfield-host",
    "serve": "jackfield-host",
    "settings": "jackfield-host",
    "sessions": "jackfield-host",
    "hosts": "jackfield-host",
    "key": "jackfield-host",
    "bans": "jackfield-policies",
    "rollout": "jackfield-experiments",
    "import": "jackfield-importers",
    "kb": "jackfield-capability-kb",
    "mcp": "jackfield-mcp-server",
    "mcp add": "jackfield-mcp-tools",
    "mcp inspect": "jackfield-mcp-tools",
    "mcp list": "jackfield-mcp-tools",
    "model": "jackfield-transport-local",
}
"""Plugins' documented commands, each with the distribution that provides it, which may be missing."""


class BuiltinCommand(NamedTuple):
    """A command of this package: its module, its name in the module, and its line in `jackfield --help`."""

    module: str
    attribute: str
    help: str


BUILTIN_COMMANDS = {
    "build": BuiltinCommand(
        "build", "build", "Discover the installed tools, check them, and freeze them into the registry."
    ),
    "call": BuiltinCommand("call", "call", "Run TOOL with ARGUMENTS and apply all policies."),
    "calls": BuiltinCommand("calls", "calls", "List and settle calls in doubt."),
    "check": BuiltinCommand(
        "build", "check", "Check that the registry matches the installed tools; write nothing."
    ),
    "describe": BuiltinCommand(
        "show", "describe", "Show everything the registry contains about TOOL or TOOL:VARIANT."
    ),
    "diff": BuiltinCommand("build", "diff", "Compare two registry files."),
    "keys": BuiltinCommand(
        "signatures", "keys", "Create keys for signing registries, or print the id of a key."
    ),
    "new-tool": BuiltinCommand(
        "tool_package",
        "new_tool",
        "Create a working tool package called NAME (e.g. book_table) as a starting point.",
    ),
    "plugins": BuiltinCommand(
        "show", "plugins", "Show what the installed plugins offer, and the order of the policies."
    ),
    "replay": BuiltinCommand(
        "replay", "replay", "Check recorded calls against another registry, and report what would change."
    ),
    "schema": BuiltinCommand(
        "schema", "schema", "Print the schema for schema.json, or compare schema.json with typed handlers."
    ),
    "sign": BuiltinCommand(
        "signatures",
        "sign",
        "Sign the registry: write its envelope, or add your signature to it.",
    ),
    "store": BuiltinCommand(
        "store", "store", "Create this deployment's store, show its identity, or back it up."
    ),
    "tools": BuiltinCommand(
        "show", "tools", "List the tools in the registry, and show why any are withheld."
    ),
    "validate": BuiltinCommand("tool_package", "validate", "Check tool packages without installing them."),
    "verify": BuiltinCommand(
        "signatures",
        "verify",
        "Verify the registry's signatures offline.",
    ),
}
"""The built-in commands. A command is imported when it runs; tests compare the help with its docstring."""


_OFFERS = f"{__name__}.offers"
"""The key of the plugins' offers in the click context, so that plugins are loaded only once."""


def _discard_output() -> None:
    """Redirect standard output to null: otherwise Python's flush at exit fails and changes the exit code."""
    if sys.stdout is None:
        return
    # In a test, standard output may not be a file.
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class PluginCommandGroup(click.Group):
    """A group of built-in commands and of the commands that installed plugins offer."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run a command; print an OSError, such as a full disk or an unreadable file, without traceback."""
        try:
            return super().main(*args, **extra)
        except OSError as error:
            # An error of standard output, such as a full disk, has no file name.
            where = f"{error.filename}: " if error.filename else ""
            click.echo(f"Error: {where}{error.strerror or str(error) or type(error).__name__}", err=True)
            _discard_output()
            sys.exit(1)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names, built-in commands first."""
        return [*BUILTIN_COMMANDS, *top_level(self._offers(ctx))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a built-in command, or else a plugin's; a plugin cannot replace a built-in command."""
        if (own := BUILTIN_COMMANDS.get(cmd_name)) is not None:
            module = importlib.import_module(f"jackfield_cli.commands.{own.module}")
            command: click.Command = getattr(module, own.attribute)
            return command
        try:
            return load_command(cmd_name, self._offers(ctx))
        except Exception as error:  # noqa: BLE001 - a plugin is third-party code
            raise click.ClickException(f"`jackfield {cmd_name}` cannot be loaded: {error}") from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command; if it is missing, the error says how to get it."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            if args[0].startswith("-"):
                raise
            raise click.UsageError(self._why_missing(args[0]), ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands for `--help`, with the help lines of the offers; load no command."""
        with formatter.section("Commands"):
            formatter.write_dl(_builtin_lines())
        offered = self._offered_lines(ctx)
        if offered:
            with formatter.section("Plugin commands"):
                formatter.write_dl(offered)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the names of commands without loading them."""
        from click.shell_completion import CompletionItem

        lines = [*_builtin_lines(), *self._offered_lines(ctx)]
        names = [CompletionItem(name, help=line) for name, line in lines if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def _offered_lines(self, ctx: click.Context) -> list[tuple[str, str]]:
        return list(top_level(self._offers(ctx)).items())

    def _offers(self, ctx: click.Context) -> dict[str, CommandOffer]:
        if _OFFERS not in ctx.meta:
            ctx.meta[_OFFERS] = _command_offers()
        offers: dict[str, CommandOffer] = ctx.meta[_OFFERS]
        return {name: offers[name] for name in sorted(set(offers) - set(BUILTIN_COMMANDS))}

    def _why_missing(self, name: str) -> str:
        from difflib import get_close_matches

        from jackfield.plugins import load
        from jackfield_builder.discovery import discover

        discovery = discover(_selection())
        plugins = load(discovery.plugins)
        broken = {each.plugin.distribution.name for each in plugins.faults}
        owner = COMMAND_DISTRIBUTIONS.get(name)
        if owner is None:
            offered = (each.name.partition(" ")[0] for each in plugins.of("jackfield_commands"))
            known = [*BUILTIN_COMMANDS, *offered]
            close = get_close_matches(name, known, 1, cutoff=0.75)
            meant = f" Did you mean {close[0]!r}?" if close else " `jackfield --help` lists all commands."
            unloaded = " A plugin could not be loaded; see `jackfield plugins`." if broken else ""
            return f"No such command {name!r}.{meant}{unloaded}"
        if owner in broken:
            why = "could not be loaded; see `jackfield plugins`"
        elif owner in {entry.distribution.name for entry in discovery.switched_off}:
            why = "is switched off by the allow or deny setting"
        else:
            why = "is not installed"
        return f"`jackfield {name}` comes with {owner}, which {why}."


def _builtin_lines() -> list[tuple[str, str]]:
    return [(name, command.help) for name, command in BUILTIN_COMMANDS.items()]


def _command_offers() -> dict[str, CommandOffer]:
    """Return the commands that plugins offer; only this hook runs, because the others import more."""
    from jackfield.offers import CommandOffer
    from jackfield.plugins import load

    from jackfield_cli.installed_plugins import installed_plugins

    plugins = load(installed_plugins(_selection()), hooks=["jackfield_commands"])
    return {each.name: each.offer for each in plugins.offered if isinstance(each.offer, CommandOffer)}


def _selection() -> Selection:
    from jackfield.settings import Settings, SettingsError
    from jackfield_builder.entry_points import Selection

    try:
        settings = Settings.load()
    except SettingsError:
        # The command itself reports the error.
        settings = Settings()
    return Selection(settings.allow, settings.deny)
