"""The Jackfield host: voice and text sessions over WebSocket and HTTP."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from jackfield import hookimpl
from jackfield.offers import CommandOffer

if TYPE_CHECKING:
    import click


@hookimpl
def jackfield_commands() -> Iterable[CommandOffer]:
    """Return the commands that the host adds to `jackfield`."""
    return [
        CommandOffer("serve", "Serve voice and text sessions.", _serve),
        CommandOffer("dev", "Serve for development, and reload tools when they are saved.", _dev),
        CommandOffer("settings", "Show this deployment's settings and where they come from.", _settings),
        CommandOffer("sessions", "List, show, export and delete the sessions in the store.", _sessions),
        CommandOffer("hosts", "List the hosts that share the store.", _hosts),
        CommandOffer("key", "Create an API key for the host.", _key),
    ]


def _serve() -> click.Command:
    from jackfield_host.commands.serve import serve

    return serve


def _dev() -> click.Command:
    from jackfield_host.commands.dev import dev

    return dev


def _settings() -> click.Command:
    from jackfield_host.commands.settings import settings

    return settings


def _sessions() -> click.Command:
    from jackfield_host.commands.sessions import sessions

    return sessions


def _hosts() -> click.Command:
    from jackfield_host.commands.hosts import hosts

    return hosts


def _key() -> click.Command:
    from jackfield_host.commands.key import key

    return key
