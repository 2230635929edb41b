"""What has to be good before a host opens its door."""

from __future__ import annotations

import os

from jackfield.runtime import Runtime
from jackfield.settings import Settings, SettingsError
from jackfield.store import StoreUnavailableError

PROBE = "readiness"
"""The key that is written to see whether the store takes something."""


async def check(runtime: Runtime, settings: Settings) -> None:
    """Stop the start when the store takes nothing, or the provider cannot be used as it is set up."""
    if missing := runtime.provision.without_provider():
        raise SettingsError(f"the provider {settings.provider or 'local'} cannot be used: {missing}")
    try:
        await runtime.store.put(f"{PROBE}/start/{os.getpid()}", b"1", ttl=60.0)
    except StoreUnavailableError as error:
        raise SettingsError(f"{error}; or choose another `store`") from None
