"""API keys: created once, stored as digests, compared in constant time."""

from __future__ import annotations

import tomllib

import pytest
from jackfield.settings import SettingsError, parse_settings
from jackfield_host.security import api_keys
from jackfield_host.security.api_keys import ApiKeys, digest, new_key
from jackfield_host.security.auth_errors import AuthError
from jackfield_host.settings import AccessSettings, KeySettings
from jackfield_sessions.admission import Identity


def accepted(*made: api_keys.NewApiKey) -> ApiKeys:
    tables = tomllib.loads("\n".join(new.lines for new in made))["host"]["keys"]
    return ApiKeys(parse_settings(AccessSettings, {"keys": tables}, "[host]").keys)


def test_a_new_key_is_accepted_with_its_settings() -> None:
    made = new_key("phone-app", "ada", ["operator", 'naïve "rôle" \\ 🜚'])
    assert accepted(made).identify(made.key) == Identity("ada", frozenset({"operator", 'naïve "rôle" \\ 🜚'}))


def test_the_settings_do_not_contain_the_key() -> None:
    made = new_key("phone", "ada")
    secret = made.key.removeprefix("jf_phone_")
    assert len(secret) >= 43
    assert secret not in made.lines


def test_every_key_is_different() -> None:
    assert len({new_key("phone", "ada").key for _ in range(100)}) == 100


def test_each_key_identifies_its_user() -> None:
    ada, eve = new_key("a", "ada"), new_key("b", "eve")
    both = accepted(ada, eve)
    assert [both.identify(ada.key).user, both.identify(eve.key).user] == ["ada", "eve"]


def test_a_key_can_be_limited_to_one_mode() -> None:
    made = new_key("phone", "ada")
    said = KeySettings(digest=digest(made.key), user="ada", mode="voice")
    assert ApiKeys({"phone": said}).identify(made.key).mode == "voice"


@pytest.mark.parametrize(
    "forge",
    [
        lambda key, other: key[:-1],
        lambda key, other: key + "A",
        lambda key, other: key.upper(),
        lambda key, other: "jf_phone_",
        lambda key, other: "jf_",
        lambda key, other: "",
        lambda key, other: digest(key),
        lambda key, other: other.replace("jf_tablet_", "jf_phone_"),
        lambda key, other: key.replace("jf_phone_", "jf_nobody_"),
        lambda key, other: key.replace("jf_phone_", "jf_tablet_"),
    ],
)
def test_anything_but_the_key_is_refused(forge: object) -> None:
    phone, tablet = new_key("phone", "ada"), new_key("tablet", "eve")
    with pytest.raises(AuthError) as refused:
        accepted(phone, tablet).identify(forge(phone.key, tablet.key))  # type: ignore[operator]
    assert (refused.value.code, refused.value.status) == ("bad_token", 401)
    assert phone.key not in str(refused.value)


@pytest.mark.parametrize("name", ["phone", "nobody"])
def test_known_and_unknown_key_names_take_the_same_steps(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    compared: list[tuple[int, int]] = []

    def watched(given: str, expected: str) -> bool:
        compared.append((len(given), len(expected)))
        return given == expected

    monkeypatch.setattr(api_keys, "compare_digest", watched)
    with pytest.raises(AuthError):
        accepted(new_key("phone", "ada")).identify(f"jf_{name}_guess")
    assert compared == [(71, 71)]


@pytest.mark.parametrize("name", ["", "Phone", "a_b", "a.b", "-a", "a" * 33, "a\n", "ä"])
def test_an_invalid_key_name_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match="lower-case letters"):
        new_key(name, "ada")
    keys = {name: {"digest": digest("x"), "user": "ada"}}
    with pytest.raises(SettingsError, match="expected a name of at most 32 lower-case letters"):
        parse_settings(AccessSettings, {"keys": keys}, "[host]")


@pytest.mark.parametrize("user", ["", " ada", "a\nb", "a" * 129])
def test_an_invalid_user_name_is_refused(user: str) -> None:
    with pytest.raises(SettingsError, match="printable"):
        new_key("phone", user)


_DIGEST = "digest: expected sha256: and 64 hexadecimal digits, as `jackfield key` prints it"


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        ({"digest": "sha256:abc", "user": "ada"}, _DIGEST),
        ({"digest": "md5:" + "0" * 64, "user": "ada"}, _DIGEST),
        ({"digest": "sha256:" + "0" * 64 + "\n", "user": "ada"}, _DIGEST),
        (
            {"digest": "sha256:" + "0" * 64},
            "user: missing; expected a name of 1 to 128 printable characters without leading or trailing "
            "spaces",
        ),
        (
            {"digest": "sha256:" + "0" * 64, "user": "ada", "role": ["x"]},
            "role: unknown setting; did you mean 'roles'?",
        ),
    ],
)
def test_an_invalid_key_table_is_refused(table: dict[str, object], fault: str) -> None:
    with pytest.raises(SettingsError) as raised:
        parse_settings(AccessSettings, {"keys": {"phone": table}}, "[host]")
    assert str(raised.value) == f"[host.keys.phone] {fault}"
