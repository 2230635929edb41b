"""Opens and closes sessions with a server that accepts writes, and formats their URL for messages."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, TypeAlias
from urllib.parse import urlsplit, urlunsplit

import asyncpg
from asyncpg.connect_utils import SessionAttribute

from jackfield_postgres.errors import UNREACHABLE

Connection: TypeAlias = "asyncpg.Connection[Any]"

KEEPALIVE = """
    SET tcp_keepalives_idle = 5;
    SET tcp_keepalives_interval = 2;
    SET tcp_keepalives_count = 3;
"""
"""After about eleven seconds, the server drops the session of a host that was cut off, and its locks."""

_NEXT_SERVER_SECONDS = 0.25
"""Seconds that one of a URL's servers may be silent before the next one is tried as well."""


def session_options(application_name: str, *, timeout: float) -> dict[str, Any]:
    """Return the `connect` options for sessions that write."""
    return {
        "timeout": timeout,
        # A URL with several hosts finds the primary, also after a failover.
        "target_session_attrs": SessionAttribute.read_write,
        "server_settings": {"application_name": application_name},
    }


async def connect(url: str, **options: Any) -> Connection:
    """Open a session with the first of a URL's servers that answers and accepts writes.

    asyncpg tries the servers one after the other within one timeout, so a machine that stopped responding
    would keep the others from being tried. Here the next server is tried as soon as one fails, or is silent
    for too long.
    """
    trying: set[asyncio.Task[Connection]] = set()
    errors: list[BaseException] = []
    try:
        async with asyncio.timeout(options["timeout"]):
            servers = server_urls(url)
            while servers or trying:
                if servers:
                    trying.add(asyncio.create_task(asyncpg.connect(servers.pop(0), **options)))
                done, trying = await asyncio.wait(
                    trying,
                    timeout=_NEXT_SERVER_SECONDS if servers else None,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if opened := _opened(done, errors):
                    return opened
    finally:
        for attempt in trying:
            attempt.add_done_callback(_discard)
            attempt.cancel()
    raise _most_telling(errors)


def server_urls(url: str) -> list[str]:
    """Return one URL per server; servers that are named in the URL's options are not split."""
    parts = urlsplit(url)
    user, at, servers = parts.netloc.rpartition("@")
    if "," not in servers:
        return [url]
    return [urlunsplit(parts._replace(netloc=f"{user}{at}{server}")) for server in servers.split(",")]


def _opened(attempts: set[asyncio.Task[Connection]], errors: list[BaseException]) -> Connection | None:
    """Return a successful attempt's session, if there is one; end further sessions, and collect errors."""
    opened: Connection | None = None
    for attempt in attempts:
        if error := attempt.exception():
            errors.append(error)
        elif opened is None:
            opened = attempt.result()
        else:
            attempt.result().terminate()
    return opened


def _discard(attempt: asyncio.Task[Connection]) -> None:
    """End the session of an attempt whose outcome is no longer needed."""
    if not attempt.cancelled() and not attempt.exception():
        attempt.result().terminate()


def _most_telling(errors: list[BaseException]) -> BaseException:
    """Return the error from a server that answered, if one did; otherwise the last error."""
    return next((each for each in errors if not isinstance(each, OSError)), errors[-1])


async def close(connection: Connection) -> None:
    """End a session in an orderly way if the server answers, otherwise at once."""
    with suppress(*UNREACHABLE):
        await connection.close(timeout=1.0)
    connection.terminate()


def display_url(url: str) -> str:
    """Return a URL without its user, password and options."""
    try:
        parts = urlsplit(url)
        place = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "postgresql://..."
    return f"postgresql://{place}{parts.path}"


def invalid_url_reason(owner: str, error: Exception) -> str:
    """Return why asyncpg rejects a URL; its own message may quote the URL with its password."""
    return (
        f"the URL of the {owner} is not valid ({type(error).__name__}); it has the form "
        "postgresql://user:password@host:5432/database"
    )
