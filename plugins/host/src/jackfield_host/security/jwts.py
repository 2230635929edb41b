"""JSON Web Tokens: verified by joserfc, with what the settings allow and nothing else."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from time import time
from typing import Any, cast

from jackfield.contract.context import Mode
from jackfield.settings import SettingsError
from jackfield_sessions.admission import Identity
from joserfc import jwt
from joserfc.errors import (
    ClaimError,
    ExpiredTokenError,
    JoseError,
    SecurityWarning,
    UnsupportedAlgorithmError,
)
from joserfc.jwa import JWSAlgModel
from joserfc.jwk import ECKey, JWKRegistry, Key, KeySet, OctKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from jackfield_host.security.identity import Refused, usable_name
from jackfield_host.settings import Algorithm, JwtSettings

MAX_KEY_FILE = 1_000_000
MAX_ROLES = 64
MIN_SECRET = 32
"""Bytes of a shared secret, as many as the hash has (RFC 7518, 3.2)."""

_KINDS: Mapping[Algorithm, type[Key]] = {
    "RS256": RSAKey,
    "ES256": ECKey,
    "EdDSA": OKPKey,
    "Ed25519": OKPKey,
    "HS256": OctKey,
}
_CURVES: Mapping[Algorithm, frozenset[str]] = {
    "ES256": frozenset({"P-256"}),
    "EdDSA": frozenset({"Ed25519", "Ed448"}),
    "Ed25519": frozenset({"Ed25519"}),
}

_UNREADABLE = (JoseError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)
"""What reading a token or a key made by somebody else can end in."""


class _Signatures(JWSRegistry):
    """The signatures that are accepted; unknown headers are passed over, as RFC 7515 asks."""

    max_header_length = 4096
    max_payload_length = 8192

    def __init__(self, algorithms: tuple[Algorithm, ...]) -> None:
        super().__init__(algorithms=algorithms, strict_check_header=False)

    def get_alg(self, name: str) -> JWSAlgModel:
        # The library's own warns of `EdDSA` at every token, because RFC 9864 prefers `Ed25519` as a name.
        if name not in (self.allowed or ()):
            raise UnsupportedAlgorithmError
        return self.algorithms[name]


class Jwts:
    """The tokens of one issuer."""

    def __init__(
        self,
        settings: JwtSettings,
        environ: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._key = _shared_secret(settings, environ) if settings.secret_env else _public_keys(settings)
        self._signatures = _Signatures(settings.algorithms)
        asked: dict[str, jwt.ClaimsOption] = {
            "exp": {"essential": True},
            "aud": {"essential": True, "value": settings.audience},
        }
        if settings.issuer is not None:
            asked["iss"] = {"essential": True, "value": settings.issuer}
        self._claims = jwt.JWTClaimsRegistry(now=lambda: int(clock()), leeway=settings.leeway, **asked)

    def identify(self, token: str) -> Identity:
        """Whom a token stands for; refuses one that is forged, out of its time, or meant for others."""
        try:
            claims = jwt.decode(token, self._key, registry=self._signatures).claims
            self._claims.validate(claims)
            return self._identity(claims)
        except ExpiredTokenError:
            raise Refused("expired_token") from None
        except ClaimError as error:
            raise _refused(error) from None
        except _UNREADABLE:
            raise Refused("bad_token") from None

    def _identity(self, claims: Mapping[str, Any]) -> Identity:
        said = self._settings
        user = claims.get(said.user_claim)
        session = claims.get(said.session_claim) if said.session_claim else None
        mode = claims.get(said.mode_claim) if said.mode_claim else None
        if not usable_name(user) or mode not in (None, "text", "voice"):
            raise Refused("bad_token")
        if session is not None and not usable_name(session):
            raise Refused("bad_token")
        return Identity(
            cast(str, user),
            _roles(claims.get(said.roles_claim)) if said.roles_claim else frozenset(),
            session,
            cast("Mode | None", mode),
            float(claims["exp"]) + said.leeway,
        )


def _refused(error: ClaimError) -> Refused:
    # A missing claim is named with all others that are missing.
    for claim in error.claim.split(","):
        if claim == "aud":
            return Refused("wrong_audience")
        if claim == "iss":
            return Refused("wrong_issuer")
        if claim in ("nbf", "iat"):
            return Refused("early_token")
    return Refused("bad_token")


def _roles(said: object) -> frozenset[str]:
    named = said.split() if isinstance(said, str) else said
    if named is None:
        return frozenset()
    if not isinstance(named, list) or len(named) > MAX_ROLES or not all(usable_name(role) for role in named):
        raise Refused("bad_token")
    return frozenset(named)


def _shared_secret(settings: JwtSettings, environ: Mapping[str, str]) -> Key:
    variable = settings.secret_env or ""
    secret = environ.get(variable, "").encode()
    if len(secret) < MIN_SECRET:
        found = f"has {len(secret)} bytes" if secret else "is not set"
        raise SettingsError(
            f"[host.jwt] secret_env: {variable} {found}; HS256 needs at least {MIN_SECRET} bytes"
        )
    try:
        return OctKey.import_key(secret)
    except ValueError:
        raise SettingsError(
            f"[host.jwt] secret_env: {variable} holds a public key, which is no secret; use `key_file` for it"
        ) from None


def _public_keys(settings: JwtSettings) -> Key | KeySet:
    path = settings.key_file or Path()
    where = f"[host.jwt] key_file: {path}"
    raw = _content(where, path)
    try:
        with warnings.catch_warnings():
            # A short RSA key is no key.
            warnings.simplefilter("error", SecurityWarning)
            if raw.lstrip().startswith(b"{"):
                return _key_set(where, raw, settings.algorithms)
            key = _from_pem(raw, settings.algorithms)
    except SecurityWarning:
        raise SettingsError(f"{where} holds an RSA key of less than 2048 bits, which can be broken") from None
    if key is None:
        asked = ", ".join(settings.algorithms)
        raise SettingsError(f"{where} holds no public key for {asked}: give a PEM file or a JWKS document")
    return _public(where, key)


def _content(where: str, path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_KEY_FILE:
            raise SettingsError(f"{where} is larger than {MAX_KEY_FILE} bytes, which no key is")
        return path.read_bytes()
    except OSError as error:
        raise SettingsError(f"{where}: {error.strerror}") from None


def _from_pem(raw: bytes, algorithms: tuple[Algorithm, ...]) -> Key | None:
    for algorithm in algorithms:
        try:
            key = _KINDS[algorithm].import_key(raw)
        except _UNREADABLE:
            continue
        if _serves(key, algorithm):
            return key
    return None


def _key_set(where: str, raw: bytes, algorithms: tuple[Algorithm, ...]) -> KeySet:
    try:
        document = json.loads(raw)
        # A single JWK is a set of one.
        listed = document.get("keys", [document])
        keys = [_from_jwk(said) for said in listed]
    except _UNREADABLE:
        raise SettingsError(f"{where} is neither a PEM file nor a JWKS document that can be read") from None
    # A set of a real issuer also holds keys for other purposes, which are left alone.
    fit = [key for key in keys if key and any(_serves(key, algorithm) for algorithm in algorithms)]
    if not fit:
        raise SettingsError(f"{where} holds no key for {', '.join(algorithms)}")
    for key in fit:
        _public(where, key)
    return KeySet(fit)


def _from_jwk(said: Mapping[str, Any]) -> Key | None:
    if said.get("kty") not in ("RSA", "EC", "OKP") or said.get("use", "sig") != "sig":
        return None
    return JWKRegistry.import_key(dict(said))


def _serves(key: Key, algorithm: Algorithm) -> bool:
    if not isinstance(key, _KINDS[algorithm]):
        return False
    return algorithm not in _CURVES or getattr(key, "curve_name", "") in _CURVES[algorithm]


def _public(where: str, key: Key) -> Key:
    if key.is_private:
        raise SettingsError(
            f"{where} holds a private key; the host needs only the public one, so keep the other away"
        )
    return key
