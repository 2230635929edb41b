"""Commands that plugins add: looked for only when the command is not one of our own."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from jackfield.plugins import Plugins
    from jackfield_builder.discovery import Discovery

COMES_WITH = {
    "chat": "jackfield-client",
    "talk": "jackfield-client",
    "serve": "jackfield-host",
    "settings": "jackfield-host",
    "sessions": "jackfield-host",
    "key": "jackfield-host",
    "bans": "jackfield-policies",
    "kb": "jackfield-capability-kb",
    "model": "jackfield-transport-local",
}
"""Commands that are documented here and brought by a plugin, which may be missing."""


class OfferedCommands(click.Group):
    """Our own commands, and behind them those of the installed plugins."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, our own first."""
        return [*super().list_commands(ctx), *sorted(set(self._offers()) - set(self.commands))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command of our own, else one that a plugin offers; a plugin cannot take a name away."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        offer = self._offers().get(cmd_name)
        if offer is None:
            return None
        try:
            command: click.Command = offer.load()
        except ImportError as error:
            raise click.ClickException(f"`jackfield {cmd_name}` cannot be loaded: {error}") from None
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that was asked for, or a sentence that says how to get it."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            if args[0].startswith("-"):
                raise
            raise click.UsageError(self._why_missing(args[0]), ctx) from None

    def _why_missing(self, name: str) -> str:
        discovery, plugins = _installed()
        broken = {each.plugin.distribution.name for each in plugins.complaints}
        owner = COMES_WITH.get(name)
        if owner is None:
            known = [*self.commands, *(each.name for each in plugins.of("jackfield_commands"))]
            close = get_close_matches(name, known, 1, cutoff=0.75)
            meant = f" Did you mean {close[0]!r}?" if close else " `jackfield --help` lists them."
            unloaded = " A plugin could not be loaded; see `jackfield plugins`." if broken else ""
            return f"No such command {name!r}.{meant}{unloaded}"
        if owner in broken:
            why = "could not be loaded; see `jackfield plugins`"
        elif owner in {entry.distribution.name for entry in discovery.switched_off}:
            why = "is switched off by allow or deny"
        else:
            why = "is not installed"
        return f"`jackfield {name}` comes with {owner}, which {why}."

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The list in `--help`, for which an offer's own line serves and nothing is loaded."""
        own = [(name, self.commands[name].get_short_help_str(80)) for name in sorted(self.commands)]
        with formatter.section("Commands"):
            formatter.write_dl(own)
        offered = [(name, offer.help) for name, offer in sorted(self._offers().items())]
        if offered:
            with formatter.section("Commands of plugins"):
                formatter.write_dl(offered)

    def _offers(self) -> dict[str, Any]:
        _, plugins = _installed()
        return {each.name: each.offer for each in plugins.of("jackfield_commands")}


def _installed() -> tuple[Discovery, Plugins]:
    from jackfield.plugins import load
    from jackfield.settings import Settings, SettingsError
    from jackfield_builder.discovery import Selection, discover

    try:
        settings = Settings.load()
    except SettingsError:
        # Whatever command this is will say what is wrong, in its own way.
        settings = Settings()
    discovery = discover(Selection(settings.allow, settings.deny))
    return discovery, load(discovery.plugins)
