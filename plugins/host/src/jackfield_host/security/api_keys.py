"""API keys: created here, shown once, and then recognised by their digests.

A key is `jf_<name>_<secret>`. The prefix lets scanners find a leaked key, the name says which key to revoke,
and the secret has 256 random bits. Such a secret needs no slow hash, because it cannot be guessed.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from hashlib import sha256
from hmac import compare_digest
from typing import NamedTuple

from jackfield.settings import SettingsError
from jackfield_sessions.admission import Identity

from jackfield_host.security.auth_errors import AuthError
from jackfield_host.settings import KEY_NAME, KeySettings, is_valid_name

PREFIX = "jf_"

_UNKNOWN_KEY = "sha256:" + sha256(secrets.token_bytes(32)).hexdigest()
"""Compared with keys that have an unknown name, so that the check takes equally long for all names."""


class NewApiKey(NamedTuple):
    """A new API key, and the lines for the settings file."""

    key: str
    lines: str


def new_key(name: str, user: str, roles: Sequence[str] = ()) -> NewApiKey:
    """Create a key. The user gets the key; the lines go into `jackfield.toml`."""
    if not KEY_NAME.fullmatch(name):
        raise SettingsError(
            f"{name!r} is not a valid key name; use up to 32 lower-case letters, digits and hyphens, such as "
            "phone-app"
        )
    if not all(map(is_valid_name, (user, *roles))):
        raise SettingsError(
            f"the user {user!r} or a role in {list(roles)!r} is not a valid name; use 1 to 128 printable "
            "characters without spaces around them"
        )
    key = f"{PREFIX}{name}_{secrets.token_urlsafe(32)}"
    # JSON strings and lists of strings are valid TOML if no surrogates are escaped in them.
    lines = [
        f"[host.keys.{name}]",
        f"digest = {json.dumps(digest(key))}",
        f"user = {json.dumps(user, ensure_ascii=False)}",
        f"roles = {json.dumps(list(roles), ensure_ascii=False)}",
    ]
    return NewApiKey(key, "\n".join(lines) + "\n")


def digest(key: str) -> str:
    """Return the digest of a key, as the settings hold it."""
    return "sha256:" + sha256(key.encode()).hexdigest()


class ApiKeys:
    """The API keys that the host accepts."""

    def __init__(self, keys: Mapping[str, KeySettings]) -> None:
        self._keys = dict(keys)

    def identify(self, key: str) -> Identity:
        """Return the user whom a key identifies; raise `AuthError` for an unknown key."""
        name, _, _ = key.removeprefix(PREFIX).partition("_")
        settings = self._keys.get(name)
        expected = settings.digest if settings else _UNKNOWN_KEY
        if not compare_digest(digest(key), expected) or settings is None:
            raise AuthError("bad_token")
        return Identity(
            settings.user,
            frozenset(settings.roles),
            mode=settings.mode,
            organisation=settings.organisation,
            toolset=settings.toolset,
        )
