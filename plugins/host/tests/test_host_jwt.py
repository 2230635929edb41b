"""JSON Web Tokens: what is accepted, and the known ways to forge one."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jackfield.settings import SettingsError, parse_settings
from jackfield_host.security.auth_errors import AuthError
from jackfield_host.security.jwt import JwtVerifier
from jackfield_host.settings import JwtSettings
from jackfield_sessions.admission import Identity
from joserfc import jwt
from joserfc.errors import SecurityWarning
from joserfc.jwk import ECKey, Key, KeySet, OctKey, OKPKey, RSAKey

NOW = 1_800_000_000
RSA = RSAKey.generate_key(2048)
SECRET = "a secret of more than thirty-two bytes"
CLAIMS = {"sub": "ada", "aud": "jackfield", "iss": "https://id.example", "exp": NOW + 60}


def signed(key: Key, algorithm: str, header: dict[str, Any] | None = None, **claims: Any) -> str:
    said = {name: value for name, value in {**CLAIMS, **claims}.items() if value is not None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecurityWarning)
        return jwt.encode({"alg": algorithm, **(header or {})}, said, key, algorithms=[algorithm])


def by_hand(header: object, payload: object, sign: Callable[[bytes], bytes] = lambda _: b"") -> str:
    def packed(value: bytes) -> bytes:
        return base64.urlsafe_b64encode(value).rstrip(b"=")

    head = b".".join(packed(json.dumps(part).encode()) for part in (header, payload))
    return (head + b"." + packed(sign(head))).decode()


def settings(**given: Any) -> JwtSettings:
    table = {"audience": "jackfield", "issuer": "https://id.example", **given}
    return parse_settings(JwtSettings, table, "[host.jwt]")


def shared(**said: Any) -> JwtVerifier:
    said = {"algorithms": ["HS256"], "secret_env": "SIGN", **said}
    return JwtVerifier(settings(**said), {"SIGN": SECRET}, lambda: NOW)


@pytest.fixture
def rsa(tmp_path: Path) -> JwtVerifier:
    (tmp_path / "key.pem").write_bytes(RSA.as_pem(private=False))
    return JwtVerifier(settings(algorithms=["RS256"], key_file=str(tmp_path / "key.pem")), {}, lambda: NOW)


def refusal(jwts: JwtVerifier, token: str) -> str:
    with pytest.raises(AuthError) as refused:
        jwts.identify(token)
    assert refused.value.status == 401
    assert refused.value.__cause__ is None
    return refused.value.code


def test_a_signed_token_identifies_its_user(rsa: JwtVerifier) -> None:
    token = signed(RSA, "RS256", roles=["operator"], session="s-1", mode="voice")
    assert rsa.identify(token) == Identity("ada", frozenset({"operator"}), "s-1", "voice", NOW + 60 + 30)


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [
        (ECKey.generate_key("P-256"), "ES256"),
        (OKPKey.generate_key("Ed25519"), "EdDSA"),
        (OKPKey.generate_key("Ed25519"), "Ed25519"),
    ],
)
def test_every_supported_algorithm_works(tmp_path: Path, key: Key, algorithm: str) -> None:
    path = tmp_path / "key.pem"
    path.write_bytes(key.as_pem(private=False))  # type: ignore[union-attr]
    jwts = JwtVerifier(settings(algorithms=[algorithm], key_file=str(path)), {}, lambda: NOW)
    assert jwts.identify(signed(key, algorithm)).user == "ada"
    assert refusal(jwts, signed(RSA, "RS256")) == "bad_token"


def test_a_shared_secret_works() -> None:
    assert shared().identify(signed(OctKey.import_key(SECRET), "HS256")).user == "ada"
    assert refusal(shared(), signed(OctKey.import_key(SECRET + "!"), "HS256")) == "bad_token"


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", "", None, 0, ["RS256"], {"RS256": 1}])
def test_a_token_with_alg_none_is_refused(rsa: JwtVerifier, algorithm: object) -> None:
    token = by_hand({"alg": algorithm, "typ": "JWT"}, CLAIMS)
    assert refusal(rsa, token) == "bad_token"
    assert refusal(shared(), token) == "bad_token"


def test_a_truncated_signature_is_refused(rsa: JwtVerifier) -> None:
    head, payload, _ = signed(RSA, "RS256").split(".")
    assert refusal(rsa, f"{head}.{payload}.") == "bad_token"
    assert refusal(rsa, f"{head}.{payload}") == "bad_token"


def test_a_changed_payload_is_refused(rsa: JwtVerifier) -> None:
    head, _, signature = signed(RSA, "RS256").split(".")
    other = by_hand({}, {**CLAIMS, "sub": "eve"}).split(".")[1]
    assert refusal(rsa, f"{head}.{other}.{signature}") == "bad_token"


def test_a_public_key_is_not_used_as_a_shared_secret(rsa: JwtVerifier) -> None:
    public = RSA.as_pem(private=False)

    def sign(head: bytes) -> bytes:
        return hmac.digest(public, head, hashlib.sha256)

    assert refusal(rsa, by_hand({"alg": "HS256"}, CLAIMS, sign)) == "bad_token"


def test_a_key_inside_the_token_is_ignored(rsa: JwtVerifier) -> None:
    own = RSAKey.generate_key(2048)
    for header in (
        {"jwk": own.as_dict(private=False)},
        {"jku": "https://evil.example/keys"},
        {"kid": "../../x"},
    ):
        assert refusal(rsa, signed(own, "RS256", header)) == "bad_token"


@pytest.mark.parametrize(
    ("claims", "code"),
    [
        ({"exp": NOW - 31}, "expired_token"),
        ({"exp": NOW - 30}, "expired_token"),
        ({"exp": None}, "bad_token"),
        ({"exp": "tomorrow"}, "bad_token"),
        ({"exp": True}, "bad_token"),
        ({"exp": float("nan")}, "bad_token"),
        ({"exp": float("inf")}, "bad_token"),
        ({"exp": 10**400}, "bad_token"),
        ({"nbf": NOW + 31}, "early_token"),
        ({"iat": NOW + 31}, "early_token"),
        ({"aud": "somebody-else"}, "wrong_audience"),
        ({"aud": ["a", "b"]}, "wrong_audience"),
        ({"aud": None}, "wrong_audience"),
        ({"aud": {"jackfield": 1}}, "wrong_audience"),
        ({"aud": "jackfield.evil"}, "wrong_audience"),
        ({"iss": "https://evil.example"}, "wrong_issuer"),
        ({"iss": None}, "wrong_issuer"),
        ({"sub": None}, "bad_token"),
        ({"sub": ""}, "bad_token"),
        ({"sub": 7}, "bad_token"),
        ({"sub": "ada\nINFO forged line"}, "bad_token"),
        ({"sub": "a" * 129}, "bad_token"),
        ({"roles": {"admin": True}}, "bad_token"),
        ({"roles": [["admin"]]}, "bad_token"),
        ({"roles": [f"r{n}" for n in range(65)]}, "bad_token"),
        ({"mode": "telepathy"}, "bad_token"),
        ({"mode": ["text"]}, "bad_token"),
        ({"session": 7}, "bad_token"),
    ],
)
def test_invalid_claims_are_refused(rsa: JwtVerifier, claims: dict[str, Any], code: str) -> None:
    assert refusal(rsa, signed(RSA, "RS256", **claims)) == code


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": NOW - 29},
        {"nbf": NOW + 30},
        {"aud": ["other", "jackfield"]},
        {"nbf": NOW, "iat": NOW, "jti": "x", "scope": "a b"},
    ],
)
def test_valid_claims_are_accepted(rsa: JwtVerifier, claims: dict[str, Any]) -> None:
    assert rsa.identify(signed(RSA, "RS256", **claims)).user == "ada"


def test_unknown_headers_are_ignored_unless_they_are_critical(rsa: JwtVerifier) -> None:
    assert rsa.identify(signed(RSA, "RS256", {"typ": "at+jwt", "kid": "any"})).user == "ada"
    head = by_hand({"alg": "RS256", "crit": ["x-rule"], "x-rule": 1}, CLAIMS)
    assert refusal(rsa, head) == "bad_token"


def test_claim_names_can_be_configured() -> None:
    jwts = shared(user_claim="email", roles_claim="scope", session_claim="", mode_claim="")
    token = signed(
        OctKey.import_key(SECRET), "HS256", email="ada@x.example", scope="read write", session=7, mode=7
    )
    assert jwts.identify(token) == Identity("ada@x.example", frozenset({"read", "write"}), expires=NOW + 90)


def test_a_claim_names_the_organisation_if_the_settings_name_the_claim() -> None:
    token = signed(OctKey.import_key(SECRET), "HS256", sub="ada", org_id="acme")
    assert shared().identify(token).organisation is None
    jwts = shared(organisation_claim="org_id")
    assert jwts.identify(token).organisation == "acme"
    with pytest.raises(AuthError):
        jwts.identify(signed(OctKey.import_key(SECRET), "HS256", sub="ada", org_id=["acme"]))


def test_a_key_is_found_in_a_key_set_by_its_id(tmp_path: Path) -> None:
    first, second = (RSAKey.generate_key(2048, {"kid": kid}) for kid in ("one", "two"))
    odd = [{"kty": "oct", "k": "c2VjcmV0", "kid": "three"}, {"kty": "AKP", "kid": "four"}]
    encrypting = RSAKey.generate_key(2048, {"kid": "five", "use": "enc"})
    known = KeySet([first, second, encrypting]).as_dict(private=False)["keys"]
    path = tmp_path / "jwks.json"
    path.write_text(json.dumps({"keys": [*odd, *known]}))
    jwts = JwtVerifier(settings(algorithms=["RS256"], key_file=str(path)), {}, lambda: NOW)
    assert jwts.identify(signed(first, "RS256", {"kid": "one"})).user == "ada"
    assert jwts.identify(signed(second, "RS256", {"kid": "two"})).user == "ada"
    for key, header in [
        (first, {"kid": "two"}),
        (first, {"kid": "six"}),
        (first, {}),
        (encrypting, {"kid": "five"}),
    ]:
        # Signed by hand, because the library refuses to sign with an encryption key.
        token = signed(RSAKey.import_key(key.as_pem(private=True)), "RS256", header)
        assert refusal(jwts, token) == "bad_token"
    assert refusal(jwts, signed(OctKey.import_key("secret" * 6), "HS256", {"kid": "three"})) == "bad_token"


@given(st.one_of(st.text(max_size=200), st.lists(st.binary(max_size=80), min_size=1, max_size=5)))
def test_malformed_tokens_are_refused_without_an_exception(given_token: str | list[bytes]) -> None:
    if isinstance(given_token, list):
        given_token = ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in given_token)
    assert refusal(shared(), given_token) == "bad_token"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["alg", "kid", "crit", "b64", "jwk"]), inner)
    ),
    max_leaves=8,
)


@given(JSON, JSON)
def test_unusual_headers_are_refused_without_an_exception(header: object, payload: object) -> None:
    assert refusal(shared(), by_hand(header, payload)) == "bad_token"


@given(JSON)
def test_unusual_payloads_are_refused_without_an_exception(payload: object) -> None:
    def sign(head: bytes) -> bytes:
        return hmac.digest(SECRET.encode(), head, hashlib.sha256)

    assert refusal(shared(), by_hand({"alg": "HS256"}, payload, sign)) in {"bad_token", "wrong_audience"}


@pytest.mark.parametrize("deep", ["[" * 100_000, '{"alg":' * 500])
def test_deep_nesting_is_refused(deep: str) -> None:
    head = base64.urlsafe_b64encode(deep.encode()).decode().rstrip("=")
    assert refusal(shared(), f"{head}.e30.") == "bad_token"


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"algorithms": []}, "algorithms: expected a non-empty list"),
        ({"algorithms": ["none"], "key_file": "x"}, "algorithms[0]: expected one of 'RS256'"),
        ({"algorithms": ["HS256", "RS256"], "key_file": "x"}, "algorithms: HS256 cannot be combined"),
        ({"algorithms": ["HS256", "RS256"], "secret_env": "X"}, "algorithms: HS256 cannot be combined"),
        ({"algorithms": ["HS256"], "key_file": "x"}, "secret_env: required for HS256, without key_file"),
        ({"algorithms": ["RS256"], "secret_env": "X"}, "key_file: required for RS256, without secret_env"),
        ({"algorithms": ["RS256"]}, "key_file: required for RS256, without secret_env"),
        (
            {"algorithms": ["RS256"], "key_file": "x", "audience": ""},
            "audience: expected a non-empty string",
        ),
        (
            {"algorithms": ["RS256"], "key_file": "x", "leeway": 301},
            "leeway: expected an integer number of seconds from 0 to 300",
        ),
        (
            {"algorithms": ["RS256"], "key_file": "x", "audiance": "y"},
            "audiance: unknown setting; did you mean 'audience'?",
        ),
    ],
)
def test_settings_that_would_weaken_verification_are_refused(given: dict[str, Any], fault: str) -> None:
    with pytest.raises(SettingsError) as raised:
        settings(**given)
    assert str(raised.value).startswith(f"[host.jwt] {fault}")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "No such file or directory$"),
        (b"", "no public key for RS256"),
        (b"nonsense", "no public key for RS256"),
        (b'{"keys": 7}', "neither a PEM"),
        (b'{"keys": []}', "no key for RS256"),
        (ECKey.generate_key("P-256").as_pem(private=False), "no public key for RS256"),
        (RSA.as_pem(private=True), "private key"),
        (json.dumps(RSA.as_dict(private=True)).encode(), "private key"),
        (b" " * 1_000_001, "larger"),
    ],
    ids=[
        "missing",
        "empty",
        "nonsense",
        "bad set",
        "empty set",
        "other kind",
        "private",
        "private set",
        "large",
    ],
)
def test_an_unusable_key_file_prevents_the_start(
    tmp_path: Path, content: bytes | None, sentence: str
) -> None:
    path = tmp_path / "key"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SettingsError, match=sentence):
        JwtVerifier(settings(algorithms=["RS256"], key_file=str(path)))


def test_a_missing_relative_key_file_names_the_folder_that_was_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError) as raised:
        JwtVerifier(settings(algorithms=["RS256"], key_file="keys/issuer.pem"))
    assert str(raised.value) == (
        "[host.jwt] key_file: keys/issuer.pem: No such file or directory "
        f"(in the working directory, {tmp_path})"
    )


def test_a_key_set_for_other_purposes_prevents_the_start(tmp_path: Path) -> None:
    encrypting = RSAKey.import_key(RSA.as_pem(private=False), {"use": "enc"})
    path = tmp_path / "jwks.json"
    path.write_text(json.dumps(KeySet([encrypting]).as_dict(private=False)))
    with pytest.raises(SettingsError, match="no key for RS256"):
        JwtVerifier(settings(algorithms=["RS256"], key_file=str(path)))


def test_a_short_rsa_key_prevents_the_start(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecurityWarning)
        short = RSAKey.generate_key(1024)
    for content in (short.as_pem(private=False), json.dumps(short.as_dict(private=False)).encode()):
        (tmp_path / "key").write_bytes(content)
        with pytest.raises(SettingsError, match="2048"):
            JwtVerifier(settings(algorithms=["RS256"], key_file=str(tmp_path / "key")))


@pytest.mark.parametrize(
    ("environ", "sentence"),
    [
        ({}, "is not set"),
        ({"SIGN": "short"}, "has 5 bytes"),
        ({"SIGN": RSA.as_pem(private=False).decode()}, "public key"),
    ],
    ids=["unset", "short", "public key"],
)
def test_a_missing_or_short_secret_prevents_the_start(environ: dict[str, str], sentence: str) -> None:
    with pytest.raises(SettingsError, match=sentence) as error:
        JwtVerifier(settings(algorithms=["HS256"], secret_env="SIGN"), environ)
    assert "short" not in str(error.value)
