"""Verifies JSON Web Tokens with joserfc; only algorithms, keys and issuers in the settings are accepted."""

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

from jackfield_host.security.auth_errors import AuthError
from jackfield_host.settings import Algorithm, JwtSettings, is_valid_name

MAX_KEY_FILE = 1_000_000
MAX_ROLES = 64
MIN_SECRET = 32
"""Minimum bytes of a shared secret: the size of the hash (RFC 7518, 3.2)."""

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
"""The exceptions that reading a foreign token or key can raise."""


class _Signatures(JWSRegistry):
    """The signature algorithms that are accepted; unknown headers are ignored, as RFC 7515 requires."""

    max_header_length = 4096
    max_payload_length = 8192

    def __init__(self, algorithms: tuple[Algorithm, ...]) -> None:
        super().__init__(algorithms=algorithms, strict_check_header=False)

    def get_alg(self, name: str) -> JWSAlgModel:
        # The library's method warns about `EdDSA` for every token, because RFC 9864 prefers `Ed25519`.
        if name not in (self.allowed or ()):
            raise UnsupportedAlgorithmError
        return self.algorithms[name]


class JwtVerifier:
    """Verifies the tokens of one issuer."""

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
        required: dict[str, jwt.ClaimsOption] = {
            "exp": {"essential": True},
            "aud": {"essential": True, "value": settings.audience},
        }
        if settings.issuer is not None:
            required["iss"] = {"essential": True, "value": settings.issuer}
        self._claims = jwt.JWTClaimsRegistry(now=lambda: int(clock()), leeway=settings.leeway, **required)

    def identify(self, token: str) -> Identity:
        """Return the user whom a token identifies; raise `AuthError` if it is not valid here and now."""
        try:
            claims = jwt.decode(token, self._key, registry=self._signatures).claims
            self._claims.validate(claims)
            return self._identity(claims)
        except ExpiredTokenError:
            raise AuthError("expired_token") from None
        except ClaimError as error:
            raise _claim_error(error) from None
        except _UNREADABLE:
            raise AuthError("bad_token") from None

    def _identity(self, claims: Mapping[str, Any]) -> Identity:
        settings = self._settings
        user = claims.get(settings.user_claim)
        session = claims.get(settings.session_claim) if settings.session_claim else None
        mode = claims.get(settings.mode_claim) if settings.mode_claim else None
        if not is_valid_name(user) or mode not in (None, "text", "voice"):
            raise AuthError("bad_token")
        organisation = claims.get(settings.organisation_claim) if settings.organisation_claim else None
        if not all(each is None or is_valid_name(each) for each in (session, organisation)):
            raise AuthError("bad_token")
        return Identity(
            cast(str, user),
            _roles(claims.get(settings.roles_claim)) if settings.roles_claim else frozenset(),
            session,
            cast("Mode | None", mode),
            float(claims["exp"]) + settings.leeway,
            cast("str | None", organisation),
        )


def _claim_error(error: ClaimError) -> AuthError:
    # If several claims are missing, the library names all of them.
    for claim in error.claim.split(","):
        if claim == "aud":
            return AuthError("wrong_audience")
        if claim == "iss":
            return AuthError("wrong_issuer")
        if claim in ("nbf", "iat"):
            return AuthError("early_token")
    return AuthError("bad_token")


def _roles(claim: object) -> frozenset[str]:
    named = claim.split() if isinstance(claim, str) else claim
    if named is None:
        return frozenset()
    if (
        not isinstance(named, list)
        or len(named) > MAX_ROLES
        or not all(is_valid_name(role) for role in named)
    ):
        raise AuthError("bad_token")
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
            f"[host.jwt] secret_env: {variable} holds a public key, which is not a secret; use `key_file`"
        ) from None


def _public_keys(settings: JwtSettings) -> Key | KeySet:
    path = settings.key_file or Path()
    where = f"[host.jwt] key_file: {path}"
    raw = _content(where, path)
    try:
        with warnings.catch_warnings():
            # Short RSA keys are rejected.
            warnings.simplefilter("error", SecurityWarning)
            if raw.lstrip().startswith(b"{"):
                return _key_set(where, raw, settings.algorithms)
            key = _from_pem(raw, settings.algorithms)
    except SecurityWarning:
        raise SettingsError(f"{where} holds an RSA key of less than 2048 bits; use a longer key") from None
    if key is None:
        algorithms = ", ".join(settings.algorithms)
        raise SettingsError(
            f"{where} holds no public key for {algorithms}; use a PEM file or a JWKS document"
        )
    return _check_public(where, key)


def _content(where: str, path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_KEY_FILE:
            raise SettingsError(f"{where} is larger than {MAX_KEY_FILE} bytes; it is not a key file")
        return path.read_bytes()
    except OSError as error:
        looked = "" if path.is_absolute() else f" (in the working directory, {Path.cwd()})"
        raise SettingsError(f"{where}: {error.strerror}{looked}") from None


def _from_pem(raw: bytes, algorithms: tuple[Algorithm, ...]) -> Key | None:
    for algorithm in algorithms:
        try:
            key = _KINDS[algorithm].import_key(raw)
        except _UNREADABLE:
            continue
        if _supports(key, algorithm):
            return key
    return None


def _key_set(where: str, raw: bytes, algorithms: tuple[Algorithm, ...]) -> KeySet:
    try:
        document = json.loads(raw)
        # A single JWK counts as a set of one key.
        listed = document.get("keys", [document])
        keys = [_from_jwk(each) for each in listed]
    except _UNREADABLE:
        raise SettingsError(f"{where} is neither a PEM file nor a valid JWKS document") from None
    # The key sets of issuers also hold keys for other purposes, which are ignored.
    usable = [key for key in keys if key and any(_supports(key, algorithm) for algorithm in algorithms)]
    if not usable:
        raise SettingsError(f"{where} contains no key for {', '.join(algorithms)}")
    for key in usable:
        _check_public(where, key)
    return KeySet(usable)


def _from_jwk(jwk: Mapping[str, Any]) -> Key | None:
    if jwk.get("kty") not in ("RSA", "EC", "OKP") or jwk.get("use", "sig") != "sig":
        return None
    return JWKRegistry.import_key(dict(jwk))


def _supports(key: Key, algorithm: Algorithm) -> bool:
    if not isinstance(key, _KINDS[algorithm]):
        return False
    return algorithm not in _CURVES or getattr(key, "curve_name", "") in _CURVES[algorithm]


def _check_public(where: str, key: Key) -> Key:
    if key.is_private:
        raise SettingsError(
            f"{where} holds a private key; use the public key, and keep the private key elsewhere"
        )
    return key
