"""A host in this process, on a free port, for `chat` and `talk` without a URL."""

from __future__ import annotations

import logging
import tomllib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import click

KEY_NAME = "embedded-client"
DEFAULT_USER = "local"
OPERATOR = "operator"
"""The role of the host's operator; the host explains its choice of provider to operators only."""


class EmbeddedHostOptions(NamedTuple):
    """Command line options of the embedded host."""

    provider: str | None = None
    registry: str | None = None
    config: str | None = None
    user: str | None = None


class EmbeddedHost(NamedTuple):
    """A running host and the key that authenticates this client."""

    url: str
    token: str


@asynccontextmanager
async def run_embedded_host(options: EmbeddedHostOptions) -> AsyncIterator[EmbeddedHost]:
    """Run a host for the duration of the block; a failure to start is a `click` error."""
    try:
        from jackfield_host.security.api_keys import new_key
        from jackfield_host.settings import HostSettings
        from jackfield_host.uvicorn_server import serve_embedded
    except ImportError:
        raise click.UsageError(
            "No URL was given, and no host is installed here. Give a URL, or install a host: "
            'pip install "jackfield-client[host]"'
        ) from None
    from jackfield.contract.snapshot import SnapshotError
    from jackfield.registry.registry import RegistryError
    from jackfield.settings import Settings, SettingsError, SettingsFaults
    from jackfield.store import StoreUnavailableError

    faults = SettingsFaults()
    config = Path(options.config) if options.config else None
    settings = Settings.load(config, faults=faults, registry=options.registry, provider=options.provider)
    certain = not faults
    logging.getLogger().addHandler(logging.NullHandler())
    async with AsyncExitStack() as stack:
        try:
            # Other users of this machine can reach the port too; the key keeps them out.
            key = new_key(KEY_NAME, options.user or DEFAULT_USER, [OPERATOR])
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
        yield EmbeddedHost(url, key.key)
