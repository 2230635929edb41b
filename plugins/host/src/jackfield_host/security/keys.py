"""API keys: made here, shown once, and known afterwards by their digests alone.

A key is `jf_<name>_<secret>`: the prefix lets scanners find one that leaked, the name says which to withdraw,
the secret is 256 random bits. A secret like that needs no slow hash: there is nothing to guess.
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

from jackfield_host.security.identity import Refused, usable_name
from jackfield_host.settings import KEY_NAME, KeySettings

PREFIX = "jf_"

_NOBODY = "sha256:" + sha256(secrets.token_bytes(32)).hexdigest()
"""What a key of an unknown name is compared with, so that it takes as long as one of a known name."""


class NewKey(NamedTuple):
    """A key that was just made, and what the settings say about it."""

    key: str
    lines: str


def new_key(name: str, user: str, roles: Sequence[str] = ()) -> NewKey:
    """Make a key; it is shown to its owner once, the lines go into `jackfield.toml`."""
    if not KEY_NAME.fullmatch(name):
        raise SettingsError(
            f"a key cannot be called {name!r}: use up to 32 small letters, digits and hyphens, e.g. phone-app"
        )
    if not all(map(usable_name, (user, *roles))):
        raise SettingsError(
            f"the user {user!r} or a role of {list(roles)!r} is no usable name: 1 to 128 printable characters"
        )
    key = f"{PREFIX}{name}_{secrets.token_urlsafe(32)}"
    # A JSON string or list of strings without escapes beyond those of JSON is one of TOML as well.
    lines = [
        f"[host.keys.{name}]",
        f"digest = {json.dumps(digest(key))}",
        f"user = {json.dumps(user, ensure_ascii=False)}",
        f"roles = {json.dumps(list(roles), ensure_ascii=False)}",
    ]
    return NewKey(key, "\n".join(lines) + "\n")


def digest(key: str) -> str:
    """What the settings keep of a key."""
    return "sha256:" + sha256(key.encode()).hexdigest()


class KeyRing:
    """The keys that are accepted."""

    def __init__(self, keys: Mapping[str, KeySettings]) -> None:
        self._keys = dict(keys)

    def identify(self, key: str) -> Identity:
        """Whom a key stands for; refuses one that is not on the ring."""
        name, _, _ = key.removeprefix(PREFIX).partition("_")
        said = self._keys.get(name)
        expected = said.digest if said else _NOBODY
        if not compare_digest(digest(key), expected) or said is None:
            raise Refused("bad_token")
        return Identity(said.user, frozenset(said.roles), mode=said.mode)
