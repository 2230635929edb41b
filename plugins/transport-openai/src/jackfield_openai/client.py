"""The SDK's client, made when it is first needed."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from jackfield.transport.protocol import TransportError

from jackfield_openai.settings import OpenAISettings

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_NO_KEY = "none"
"""What a compatible server gets that asks for no key."""


class Client:
    """One client for all connections of a transport."""

    def __init__(self, settings: OpenAISettings) -> None:
        self._settings = settings
        self._made: AsyncOpenAI | None = None
        self._making = asyncio.Lock()

    async def get(self) -> AsyncOpenAI:
        """The client; `TransportError` when there is no key for it."""
        async with self._making:
            if self._made is None:
                key = self._key()
                # The import takes long enough to be heard in a conversation that goes on beside it.
                self._made = await asyncio.to_thread(_make, self._settings, key)
            return self._made

    def _key(self) -> str:
        if missing := without_key(self._settings):
            raise TransportError("authentication", missing)
        return os.environ.get(self._settings.api_key_env, "").strip() or _NO_KEY

    async def close(self) -> None:
        """Close what is open; a later `get` makes a new one."""
        made, self._made = self._made, None
        if made is not None:
            await made.close()


def without_key(settings: OpenAISettings) -> str | None:
    """What to do about a key that is missing, if it is; a compatible server may ask for none."""
    variable = settings.api_key_env
    if settings.base_url or os.environ.get(variable, "").strip():
        return None
    return (
        f"the environment variable {variable} is not set; put the key of the OpenAI project there, or "
        "name another one with [transports.openai] api_key_env"
    )


def _make(settings: OpenAISettings, key: str) -> AsyncOpenAI:
    from openai import AsyncOpenAI, Timeout

    return AsyncOpenAI(
        api_key=key,
        base_url=settings.base_url,
        timeout=Timeout(settings.request_timeout, connect=settings.connect_timeout),
        max_retries=settings.retries,
    )
