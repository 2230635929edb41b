"""The SDK client, created at first use."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from jackfield.transport.protocol import TransportError

from jackfield_openai.settings import OpenAISettings

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_NO_KEY = "none"
"""The placeholder that is sent to a compatible server if no key is set."""


class SdkClient:
    """One SDK client for all connections of a transport."""

    def __init__(self, settings: OpenAISettings) -> None:
        self._settings = settings
        self._made: AsyncOpenAI | None = None
        self._making = asyncio.Lock()

    async def get(self) -> AsyncOpenAI:
        """Return the client; raise `TransportError` without a key."""
        async with self._making:
            if self._made is None:
                key = self._key()
                # The import blocks long enough to be heard in other voice sessions.
                self._made = await asyncio.to_thread(_make, self._settings, key)
            return self._made

    def _key(self) -> str:
        if missing := without_key(self._settings):
            raise TransportError("authentication", missing)
        return os.environ.get(self._settings.api_key_env, "").strip() or _NO_KEY

    async def close(self) -> None:
        """Close the client; a later `get` creates a new one."""
        made, self._made = self._made, None
        if made is not None:
            await made.close()


def without_key(settings: OpenAISettings) -> str | None:
    """Return what to do if the key is missing, or None; a compatible server may not need one."""
    variable = settings.api_key_env
    if settings.base_url or os.environ.get(variable, "").strip():
        return None
    return (
        f"the environment variable {variable} is not set; put the key of the OpenAI project there, or "
        "name a different one with [transports.openai] api_key_env"
    )


def _make(settings: OpenAISettings, key: str) -> AsyncOpenAI:
    from openai import AsyncOpenAI, Timeout

    return AsyncOpenAI(
        api_key=key,
        base_url=settings.base_url,
        timeout=Timeout(settings.request_timeout, connect=settings.connect_timeout),
        max_retries=settings.retries,
    )
