"""Commands that plugins add: looked for only when the command is not one of our own."""

from __future__ import annotations

from typing import Any

import click


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
        from jackfield.plugins import load
        from jackfield.settings import Settings, SettingsError
        from jackfield_builder.discovery import Selection, discover

        try:
            settings = Settings.load()
        except SettingsError:
            # Whatever command this is will say what is wrong, in its own way.
            settings = Settings()
        plugins = load(discover(Selection(settings.allow, settings.deny)).plugins)
        return {each.name: each.offer for each in plugins.of("jackfield_commands")}
