"""A command whose subcommands several plugins offer.

An offer named `mcp add` is the subcommand `add` of `mcp`. If a plugin offers `mcp` too, that command runs
without a subcommand; it may be a group, or a plain command with options but no arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from jackfield.offers import CommandOffer


def top_level(offers: Mapping[str, CommandOffer]) -> dict[str, str]:
    """Return the names of the commands and groups that plugins offer, each with its help line."""
    lines: dict[str, str] = {}
    for name, offer in offers.items():
        group, _, subcommand = name.partition(" ")
        if not subcommand:
            lines[group] = offer.help
        elif group not in offers:
            names = sorted(each.partition(" ")[2] for each in offers if each.startswith(f"{group} "))
            lines[group] = f"Subcommands: {', '.join(names)}."
    return lines


def load_command(name: str, offers: Mapping[str, CommandOffer]) -> click.Command | None:
    """Return a command by its name, with all subcommands that plugins offer for it."""
    own = offers.get(name)
    parts = {
        each.removeprefix(f"{name} "): offer for each, offer in offers.items() if each.startswith(f"{name} ")
    }
    base = own.load() if own else None
    if not parts:
        return base
    if isinstance(base, click.Group):
        for part, offer in parts.items():
            base.add_command(offer.load(), part)
        return base
    return _SharedGroup(name, base, parts)


class _SharedGroup(click.Group):
    """Loads a subcommand when it is used; without one, runs the command of the group's own name."""

    def __init__(self, name: str, base: click.Command | None, parts: Mapping[str, CommandOffer]) -> None:
        own = base.callback if base else None

        def run(**options: Any) -> Any:
            return own(**options) if own and click.get_current_context().invoked_subcommand is None else None

        super().__init__(
            name,
            callback=run,
            params=list(base.params) if base else None,
            help=base.help if base else None,
            invoke_without_command=base is not None,
            no_args_is_help=base is None,
        )
        self._parts = parts

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of the subcommands."""
        return sorted(self._parts)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return a subcommand."""
        offer = self._parts.get(cmd_name)
        return offer.load() if offer else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the subcommands with the help lines of their offers; load none of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._parts[name].help) for name in sorted(self._parts)])
