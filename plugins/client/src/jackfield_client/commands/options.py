"""What `chat` and `talk` have in common: which host, as whom, and errors without a traceback."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import click

from jackfield_client.own_host import USER, Wanted, started

_OPTIONS = (
    click.option("--token-env", metavar="NAME", help="The environment variable that holds the host's token."),
    click.option("--insecure", is_flag=True, help="Send the token although the address is not https://."),
    click.option("--yes", is_flag=True, help="Approve without asking, where a tool needs confirmation."),
    click.option("--user", metavar="NAME", help="Who is talking (without URL)."),
    click.option(
        "--provider", metavar="NAME", help="The provider of models, instead of the setting (without URL)."
    ),
    click.option("--registry", metavar="FILE", help="The registry file (without URL)."),
    click.option("--config", metavar="FILE", help="Settings file (without URL)."),
)


class Place(NamedTuple):
    """Which host."""

    url: str
    token: str | None
    known_as: str
    """What its sessions are remembered by."""
    own: bool = False
    """Whether it was started for this conversation alone."""


def with_host(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that say which host."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@asynccontextmanager
async def host(url: str | None, token_env: str | None, wanted: Wanted) -> AsyncIterator[Place]:
    """The host that was named, or one of one's own."""
    if url is None:
        if token_env:
            raise click.UsageError("--token-env is for the host at a URL; one of one's own needs no token.")
        async with started(wanted) as own:
            yield Place(own.url, own.token, f"own host in {Path.cwd()} as {wanted.user or USER}", own=True)
        return
    for name, value in wanted._asdict().items():
        if value is not None:
            raise click.UsageError(f"--{name} is for a host of one's own; the one at {url} has its settings.")
    from jackfield_client.dial import parse_address

    try:
        base = parse_address(url).base
    except ValueError as error:
        raise click.UsageError(f"{error}.") from None
    yield Place(url, _token(token_env), f"{base} by {token_env}" if token_env else base)


def _token(name: str | None) -> str | None:
    if name is None:
        return None
    token = os.environ.get(name, "").strip()
    if not token:
        raise click.UsageError(f"The environment variable {name} is empty or not set; --token-env names it.")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise click.UsageError(f"What the environment variable {name} holds is no token.")
    return token


def run(work: Coroutine[Any, Any, bool]) -> None:
    """Run a command to its end; the exit status says whether all went well."""
    from jackfield_client.errors import ClientError
    from jackfield_client.terminal.wording import explained

    try:
        fine = asyncio.run(work)
    except ClientError as error:
        raise click.ClickException(explained(error)) from None
    except KeyboardInterrupt:
        raise click.exceptions.Exit(130) from None
    if not fine:
        raise click.exceptions.Exit(1)
