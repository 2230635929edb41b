"""A host of one's own, for a conversation without an address: in this process, on a free port."""

from __future__ import annotations

import logging
import tomllib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import click

KEY_NAME = "own-client"
USER = "local"
OPERATOR = "operator"
"""The operator of the host, who may know how its provider was chosen."""


class Wanted(NamedTuple):
    """What is said about the host to start."""

    provider: str | None = None
    registry: str | None = None
    config: str | None = None
    user: str | None = None


class Started(NamedTuple):
    """Where the host is, and what lets in."""

    url: str
    token: str


@asynccontextmanager
async def started(wanted: Wanted) -> AsyncIterator[Started]:
    """A host for as long as the block lasts; what stops it is an error of the command line."""
    try:
        from jackfield_host.security.api_keys import new_key
        from jackfield_host.server import serve_embedded
        from jackfield_host.settings import HostSettings
    except ImportError:
        raise click.UsageError(
            'No address was given, and there is no host here to start: pip install "jackfield-client[host]", '
            "or give the URL of a host."
        ) from None
    from jackfield.contract.snapshot import SnapshotError
    from jackfield.registry.registry import RegistryError
    from jackfield.settings import Settings, SettingsError, SettingsFaults
    from jackfield.store import StoreUnavailableError

    faults = SettingsFaults()
    config = Path(wanted.config) if wanted.config else None
    settings = Settings.load(config, faults=faults, registry=wanted.registry, provider=wanted.provider)
    certain = not faults
    # Others on this machine can reach the port as well; the key keeps them out and says who is talking.
    logging.getLogger().addHandler(logging.NullHandler())
    async with AsyncExitStack() as stack:
        try:
            key = new_key(KEY_NAME, wanted.user or USER, [OPERATOR])
            host = HostSettings.load(
                settings.sections.get("host", {}),
                faults=faults,
                address="127.0.0.1",
                port=0,
                keys=tomllib.loads(key.lines)["host"]["keys"],
            )
            url = await stack.enter_async_context(serve_embedded(settings, host, faults, certain=certain))
        except (SnapshotError, RegistryError, SettingsError, StoreUnavailableError) as error:
            raise (click.ClickException if certain else click.UsageError)(str(error)) from None
        yield Started(url, key.key)
