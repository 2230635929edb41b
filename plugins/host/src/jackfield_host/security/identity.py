"""Who somebody is, and why somebody is not let in."""

from __future__ import annotations

from types import MappingProxyType
from typing import Literal

from jackfield_sessions.admission import Identity

MAX_NAME = 128
"""Characters in the name of a user or a role: they become keys in the store and words in the log."""


LOCAL = Identity("local")
"""Everyone who reaches a host that listens on a loopback address and requires no token."""

Code = Literal[
    "missing_token",
    "bad_token",
    "expired_token",
    "early_token",
    "wrong_audience",
    "wrong_issuer",
    "foreign_origin",
    "missing_origin",
    "foreign_host",
    "not_local",
]

REFUSALS: MappingProxyType[Code, tuple[int, str]] = MappingProxyType(
    {
        "missing_token": (401, "This host asks for a token: send `Authorization: Bearer <token>`."),
        "bad_token": (401, "The token is not one that this host accepts."),
        "expired_token": (401, "The token has expired; get a new one."),
        "early_token": (
            401,
            "The token is not valid yet; compare the clocks of its issuer and of this host.",
        ),
        "wrong_audience": (401, "The token was issued for somebody else than this host."),
        "wrong_issuer": (401, "The token comes from an issuer that this host does not trust."),
        "foreign_origin": (403, "Pages of that origin may not use this host."),
        "missing_origin": (403, "A WebSocket without a token has to name its origin."),
        "foreign_host": (403, "This host does not answer to the name in the `Host` header."),
        "not_local": (
            403,
            "This host requires no token, so it refuses requests from other machines and requests that came "
            "through a proxy (they carry a forwarding header, or use HTTP/1.0). To allow them, set up a "
            "token with `jackfield key`.",
        ),
    }
)
"""The status and the sentence of every refusal, by its code."""


class Refused(Exception):  # noqa: N818 - the decision has this name wherever it is spoken of
    """Somebody is not let in; says why, and nothing about the inside of the host."""

    def __init__(self, code: Code) -> None:
        self.code: Code = code
        self.status, self.sentence = REFUSALS[code]
        super().__init__(self.sentence)

    @property
    def headers(self) -> dict[str, str]:
        """What a response says besides its status: how to ask again (RFC 6750)."""
        if self.status != 401:
            return {}
        if self.code == "missing_token":
            return {"WWW-Authenticate": 'Bearer realm="jackfield"'}
        return {"WWW-Authenticate": 'Bearer realm="jackfield", error="invalid_token"'}


def usable_name(value: object) -> bool:
    """Whether something can be the name of a user or a role."""
    return (
        isinstance(value, str)
        and 0 < len(value) <= MAX_NAME
        and value.isprintable()
        and value == value.strip()
    )
