"""The server's key, which all hosts share: it seals request states, and is the source of session secrets."""

from __future__ import annotations

import hmac
import os

from jackfield.settings import SettingsError
from jackfield.store import ClaimState, Store

MIN_LENGTH = 32

_KEY = "mcp/key"

_TTL = 10 * 365 * 86400.0


def key_from_environment(variable: str | None) -> bytes | None:
    """Return the key in an environment variable; raise `SettingsError` if it is missing or too short."""
    if variable is None:
        return None
    key = os.environ.get(variable, "").encode()
    if len(key) < MIN_LENGTH:
        raise SettingsError(
            f"[endpoints.mcp] key_env: {variable} must hold at least {MIN_LENGTH} characters; create a key "
            "with `openssl rand -hex 32`"
        )
    return key


async def key_from_store(store: Store) -> bytes:
    """Return the key that the hosts keep in the store; the first host creates it."""
    # A claim with a result is recorded once, whichever host comes first.
    created = os.urandom(MIN_LENGTH)
    claim = await store.claim(_KEY, b"", ttl=_TTL, result=created)
    if claim.state is ClaimState.RUN:
        return created
    return claim.result or (await store.outcome(_KEY, within=0)).result or created


def derive(key: bytes, purpose: str) -> str:
    """Return a secret for one purpose."""
    return hmac.digest(key, purpose.encode(), "sha256").hex()
