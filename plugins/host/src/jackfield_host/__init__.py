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
    return [
        CommandOffer("serve", "Serve voice and text sessions.", _serve),
        CommandOffer(
            "settings", "Show the settings of this deployment, and where they come from.", _settings
        ),
        CommandOffer(
            "sessions", "Look at the sessions in the store, hand one out, delete old ones.", _sessions
        ),
        CommandOffer("key", "Make an API key for the host.", _key),
    ]


def _serve() -> click.Command:
    from jackfield_host.commands.serve import serve

    return serve


def _settings() -> click.Command:
    from jackfield_host.commands.settings import settings

    return settings


def _sessions() -> click.Command:
    from jackfield_host.commands.sessions import sessions

    return sessions


def _key() -> click.Command:
    from jackfield_host.commands.key import key

    return key
