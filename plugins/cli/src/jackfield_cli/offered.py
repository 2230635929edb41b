"""Commands that plugins add: looked for only when the command is not one of our own."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem
    from jackfield.offers import CommandOffer
    from jackfield_builder.entries import Selection

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


_ASKED = f"{__name__}.offers"
"""Under this the answers of the plugins stand in the context, so that each is asked once."""


def _forget_output() -> None:
    """Python writes what is left at its end, and where that fails it complains and takes another status."""
    if sys.stdout is None:
        return
    # What stands for it in the same process, as in a test, need not be a file.
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class OfferedCommands(click.Group):
    """Our own commands, and behind them those of the installed plugins."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run a command; a disk that is full, or a file that cannot be read, is a sentence."""
        try:
            return super().main(*args, **extra)
        except OSError as error:
            # Only what belongs to a file names one; a full disk behind the standard output does not.
            where = f"{error.filename}: " if error.filename else ""
            click.echo(f"Error: {where}{error.strerror or str(error) or type(error).__name__}", err=True)
            _forget_output()
            sys.exit(1)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, our own first."""
        return [*super().list_commands(ctx), *self._offers(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command of our own, else one that a plugin offers; a plugin cannot take a name away."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        offer = self._offers(ctx).get(cmd_name)
        if offer is None:
            return None
        try:
            return offer.load()
        except Exception as error:  # noqa: BLE001 - a plugin is third-party code
            raise click.ClickException(f"`jackfield {cmd_name}` cannot be loaded: {error}") from None

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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in `--help`, for which an offer's own line serves and nothing is loaded."""
        with formatter.section("Commands"):
            formatter.write_dl(self._own_lines())
        offered = self._offered_lines(ctx)
        if offered:
            with formatter.section("Commands of plugins"):
                formatter.write_dl(offered)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The names that begin so, for which an offer's own line serves as well."""
        from click.shell_completion import CompletionItem

        lines = [*self._own_lines(), *self._offered_lines(ctx)]
        names = [CompletionItem(name, help=line) for name, line in lines if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def _own_lines(self) -> list[tuple[str, str]]:
        return [(name, self.commands[name].get_short_help_str(80)) for name in sorted(self.commands)]

    def _offered_lines(self, ctx: click.Context) -> list[tuple[str, str]]:
        return [(name, offer.help) for name, offer in self._offers(ctx).items()]

    def _offers(self, ctx: click.Context) -> dict[str, CommandOffer]:
        if _ASKED not in ctx.meta:
            ctx.meta[_ASKED] = _asked()
        asked: dict[str, CommandOffer] = ctx.meta[_ASKED]
        return {name: asked[name] for name in sorted(set(asked) - set(self.commands))}

    def _why_missing(self, name: str) -> str:
        from difflib import get_close_matches

        from jackfield.plugins import load
        from jackfield_builder.discovery import discover

        discovery = discover(_selection())
        plugins = load(discovery.plugins)
        broken = {each.plugin.distribution.name for each in plugins.faults}
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


def _asked() -> dict[str, CommandOffer]:
    """What plugins answer to the one question about commands; the others would load what a call needs."""
    from jackfield.offers import CommandOffer
    from jackfield.plugins import load
    from jackfield_builder.entries import installed_plugins

    plugins = load(installed_plugins(_selection()), hooks=["jackfield_commands"])
    return {each.name: each.offer for each in plugins.offered if isinstance(each.offer, CommandOffer)}


def _selection() -> Selection:
    from jackfield.settings import Settings, SettingsError
    from jackfield_builder.entries import Selection

    try:
        settings = Settings.load()
    except SettingsError:
        # Whatever command this is will say what is wrong, in its own way.
        settings = Settings()
    return Selection(settings.allow, settings.deny)
