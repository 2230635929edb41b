"""API keys: made once, known by digest, compared in constant time."""

from __future__ import annotations

import tomllib

import pytest
from jackfield.settings import SettingsError, parse_settings
from jackfield_host.security import keys
from jackfield_host.security.identity import Refused
from jackfield_host.security.keys import KeyRing, digest, new_key
from jackfield_host.settings import AccessSettings, KeySettings
from jackfield_sessions.admission import Identity


def ring(*made: keys.NewKey) -> KeyRing:
    tables = tomllib.loads("\n".join(new.lines for new in made))["host"]["keys"]
    return KeyRing(parse_settings(AccessSettings, {"keys": tables}, "[host]").keys)


def test_a_new_key_opens_with_the_lines_it_came_with() -> None:
    made = new_key("phone-app", "ada", ["operator", 'naïve "rôle" \\ 🜚'])
    assert ring(made).identify(made.key) == Identity("ada", frozenset({"operator", 'naïve "rôle" \\ 🜚'}))


def test_the_lines_do_not_hold_the_key() -> None:
    made = new_key("phone", "ada")
    secret = made.key.removeprefix("jf_phone_")
    assert len(secret) >= 43
    assert secret not in made.lines


def test_no_two_keys_are_the_same() -> None:
    assert len({new_key("phone", "ada").key for _ in range(100)}) == 100


def test_each_key_stands_for_its_own_user() -> None:
    ada, eve = new_key("a", "ada"), new_key("b", "eve")
    both = ring(ada, eve)
    assert [both.identify(ada.key).user, both.identify(eve.key).user] == ["ada", "eve"]


def test_a_key_may_be_good_for_one_mode_alone() -> None:
    made = new_key("phone", "ada")
    said = KeySettings(digest=digest(made.key), user="ada", mode="voice")
    assert KeyRing({"phone": said}).identify(made.key).mode == "voice"


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
def test_anything_else_than_the_key_is_refused(forge: object) -> None:
    phone, tablet = new_key("phone", "ada"), new_key("tablet", "eve")
    with pytest.raises(Refused) as refused:
        ring(phone, tablet).identify(forge(phone.key, tablet.key))  # type: ignore[operator]
    assert (refused.value.code, refused.value.status) == ("bad_token", 401)
    assert phone.key not in str(refused.value)


@pytest.mark.parametrize("name", ["phone", "nobody"])
def test_a_name_that_is_known_takes_the_same_steps_as_one_that_is_not(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    compared: list[tuple[int, int]] = []

    def watched(given: str, expected: str) -> bool:
        compared.append((len(given), len(expected)))
        return given == expected

    monkeypatch.setattr(keys, "compare_digest", watched)
    with pytest.raises(Refused):
        ring(new_key("phone", "ada")).identify(f"jf_{name}_guess")
    assert compared == [(71, 71)]


@pytest.mark.parametrize("name", ["", "Phone", "a_b", "a.b", "-a", "a" * 33, "a\n", "ä"])
def test_a_name_that_would_part_the_key_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match="small letters"):
        new_key(name, "ada")
    keys = {name: {"digest": digest("x"), "user": "ada"}}
    with pytest.raises(SettingsError, match="expected a name of small letters, digits and hyphens"):
        parse_settings(AccessSettings, {"keys": keys}, "[host]")


@pytest.mark.parametrize("user", ["", " ada", "a\nb", "a" * 129])
def test_a_user_who_would_spoil_the_log_is_refused(user: str) -> None:
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
            "user: missing; expected a name of 1 to 128 printable characters without spaces around it",
        ),
        (
            {"digest": "sha256:" + "0" * 64, "user": "ada", "role": ["x"]},
            "role: unknown setting; did you mean 'roles'?",
        ),
    ],
)
def test_a_table_that_cannot_be_meant_is_refused(table: dict[str, object], fault: str) -> None:
    with pytest.raises(SettingsError) as raised:
        parse_settings(AccessSettings, {"keys": {"phone": table}}, "[host]")
    assert str(raised.value) == f"[host.keys.phone] {fault}"
