"""The host of Jackfield: voice and text sessions over WebSocket and HTTP."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from jackfield import hookimpl
from jackfield.offers import CommandOffer

if TYPE_CHECKING:
    import click


@hookimpl
def jackfield_commands() -> Iterable[CommandOffer]:
    """What the host adds to the command line."""
    return [CommandOffer("serve", "Serve voice and text sessions.", _serve)]


def _serve() -> click.Command:
    from jackfield_host.commands.serve import serve

    return serve
