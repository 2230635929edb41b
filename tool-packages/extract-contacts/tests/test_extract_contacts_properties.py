"""Properties that hold for every text."""

from __future__ import annotations

import json
from importlib import resources
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jackfield.registry.arguments import Arguments
from jackfield_tool_extract_contacts.entities import KINDS, Kind
from jackfield_tool_extract_contacts.extraction import extract
from jackfield_tool_extract_contacts.result import result

RETURNS = Arguments(
    json.loads(resources.files("jackfield_tool_extract_contacts").joinpath("schema.json").read_text("utf-8"))[
        "returns"
    ]
)
ATOMS = [
    "ada@example.org", "Ada@Example.org", '"a b"@example.org', "用户@例子.广告", "a@b", "@", "<", ">", "(",
    ")", '"', "'", "\\", "[", "Ada Lovelace", "Charles Babbage", "d'Arc", "王伟", "Name: ", "Tel: ", "Fax ",
    "-- ", "Best regards,", "From: ", "=?utf-8?q?A?=", "+44 20 7946 0958", "020 7946 0958", "ext. 5",
    "(202) 456-1111", "2012-01-02 08", "4111 1111 1111 1111", "1.2", "order no. ", "https://example.org/a",
    "www.example.org", "//", "http://", "mailto:", "example.dev", "https://例子.广告/路", "\uff0c", "请",
    "\u200d", "\u0301", "😀", "\n", "\n\n", "\r\n", "\t", " ", ", ", "; ", ": ", "| ", "- ", ".", "1", "+",
    "\ufffc", "\x00", "İ", "ß", "ﬁ",
]  # fmt: skip
TEXTS = st.one_of(
    st.text(min_size=1, max_size=200),
    st.lists(st.one_of(st.sampled_from(ATOMS), st.text(max_size=5)), min_size=1, max_size=30)
    .map("".join)
    .filter(bool),
)
REGIONS = st.sampled_from([None, "GB", "US", "DE", "IT", "CN"])
LENIENCIES = st.sampled_from(["possible", "valid", "strict", "exact"])
VALUES = {"emails": "email", "phones": "e164", "urls": "url", "names": "name"}

check = settings(max_examples=150, deadline=None)


def read(text: str, region: str | None = None, leniency: str = "valid") -> dict[str, Any]:
    data = result(extract(text, region, leniency), KINDS)
    assert RETURNS.violations(data) == []
    return data


@check
@given(TEXTS, REGIONS, LENIENCIES)
@example("http://\uff0ca@b.com/", None, "valid")
@example("://0@0.0A", None, "valid")
def test_every_position_points_to_its_entity(text: str, region: str | None, leniency: str) -> None:
    data = read(text, region, leniency)
    for kind, value in VALUES.items():
        for entity in data[kind]:
            assert entity[value]
            start, end = entity["at"][0]
            assert 0 <= start < end <= len(text)
            assert text[start:end] == entity.get("text", entity[value])


@check
@given(TEXTS, REGIONS, LENIENCIES)
def test_entities_are_unique_ordered_and_do_not_overlap(text: str, region: str | None, leniency: str) -> None:
    data = read(text, region, leniency)
    places = sorted(tuple(place) for kind in VALUES for entity in data[kind] for place in entity["at"])
    assert all(left[1] <= right[0] for left, right in pairwise(places))
    for kind, value in VALUES.items():
        identities = [
            (entity[value].casefold() if kind != "urls" else entity[value], entity.get("extension"))
            for entity in data[kind]
        ]
        assert len(identities) == len(set(identities))
        assert [entity["at"][0] for entity in data[kind]] == sorted(entity["at"][0] for entity in data[kind])


@check
@given(TEXTS, REGIONS)
def test_the_same_text_gives_the_same_result(text: str, region: str | None) -> None:
    assert read(text, region) == read(text, region)


@check
@given(TEXTS, REGIONS)
def test_contacts_have_at_least_two_listed_entities(text: str, region: str | None) -> None:
    data = read(text, region)
    emails = {entity["email"] for entity in data["emails"]}
    phones = {
        entity["e164"] + (f";ext={entity['extension']}" if "extension" in entity else "")
        for entity in data["phones"]
    }
    for contact in data["contacts"]:
        assert ("name" in contact) + sum(
            len(contact.get(kind, ())) for kind in ("emails", "phones", "urls")
        ) > 1
        assert set(contact.get("emails", ())) <= emails
        assert set(contact.get("phones", ())) <= phones
        assert set(contact.get("urls", ())) <= {entity["url"] for entity in data["urls"]}
        assert contact.get("name") in {None, *(entity["name"] for entity in data["names"])}


@check
@given(TEXTS, st.sampled_from(KINDS))
def test_requesting_one_kind_finds_the_same_as_requesting_all(text: str, kind: Kind) -> None:
    assert result(extract(text, None, "valid"), [kind])[kind] == read(text)[kind]


@check
@given(st.sampled_from(ATOMS), TEXTS)
def test_an_address_between_blanks_is_found_in_any_text(atom: str, text: str) -> None:
    text = f"{text}\n{atom}\nada.lovelace@example.org\n{text}"
    assert "ada.lovelace@example.org" in {entity["email"] for entity in read(text)["emails"]}


@pytest.mark.parametrize("normalised", ["ada@example.org", "https://example.org/a", "+442079460958"])
def test_a_reported_value_is_found_again_unchanged(normalised: str) -> None:
    data = read(normalised)
    values = [entity[value] for kind, value in VALUES.items() for entity in data[kind]]
    assert values == [normalised]


@check
@given(TEXTS, REGIONS)
@example("0@0.0'@0.0A", None)
def test_normalising_twice_changes_nothing(text: str, region: str | None) -> None:
    data = read(text, region)
    for entity in data["phones"]:
        assert [again["e164"] for again in read(entity["e164"])["phones"]] == [entity["e164"]]
    for entity in data["emails"]:
        again = [other["email"] for other in read(f" {entity['email']} ")["emails"]]
        assert again == [entity["email"]]
