"""The tool as the registry calls it: its contract, its guide, and realistic whole texts."""

from __future__ import annotations

import json
import re
from importlib import resources
from typing import Any

import pytest
from jackfield import ErrorType
from jackfield.contract.manifest import ToolManifest, tool_schema
from jackfield.registry.arguments import Arguments, compile_schema, violations
from jackfield_tool_extract_contacts.handler import execute

PACKAGE = resources.files("jackfield_tool_extract_contacts")
SCHEMA: dict[str, Any] = json.loads(PACKAGE.joinpath("schema.json").read_text("utf-8"))
PARAMETERS = Arguments(SCHEMA["parameters"])
RETURNS = Arguments(SCHEMA["returns"])
GUIDE = PACKAGE.joinpath("guide.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(json(?: result)?)\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
EXAMPLES = [json.loads(body) for tag, body in BLOCKS if tag == "json"]


def extract(text: str, **args: Any) -> dict[str, Any]:
    """Return the data of a call as the registry makes it: validated, completed, checked against `returns`."""
    arguments = {"text": text, **args}
    assert PARAMETERS.violations(arguments) == []
    PARAMETERS.complete(arguments)
    response = execute(arguments, None)  # type: ignore[arg-type]  # it uses nothing of its context
    assert response.ok, response.failure
    data: dict[str, Any] = response.data
    assert RETURNS.violations(data) == []
    return data


def contacts(text: str, **args: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = extract(text, **args)["contacts"]
    return found


def test_the_manifest_matches_the_contract() -> None:
    assert violations(compile_schema(tool_schema()), SCHEMA) == []
    tool = ToolManifest.from_wire(SCHEMA)
    assert (tool.tool_id, tool.category, tool.side_effects) == ("extract_contacts", "utility", "none")
    assert tool.allowed_modes == ("text",)


def test_the_summary_is_short() -> None:
    heading, summary = GUIDE.split("\n\n")[:2]
    assert heading == "# extract_contacts"
    assert len(summary) <= 250


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["text"][:20])
def test_every_example_of_the_guide_finds_its_contacts(example: dict[str, Any]) -> None:
    data = extract(**example)
    for kind in example.get("kinds", ["emails"]):
        assert data[kind]


def test_the_result_in_the_guide_is_the_actual_result() -> None:
    (shown,) = [json.loads(body) for tag, body in BLOCKS if tag == "json result"]
    assert extract(**EXAMPLES[0]) == shown


@pytest.mark.parametrize(("region", "advice"), [("UK", "Use GB."), ("ZZ", "two-letter ISO 3166 code")])
def test_a_region_without_phone_numbers_is_rejected_with_advice(region: str, advice: str) -> None:
    args: dict[str, Any] = {"text": "x", "region": region, "kinds": ["phones"], "leniency": "valid"}
    failure = execute(args, None).failure  # type: ignore[arg-type]
    assert failure is not None
    assert failure.type is ErrorType.PERMANENT
    assert not failure.retryable
    assert region in failure.message
    assert advice in (failure.suggestion or "")


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"text": ""},
        {"text": "x" * 20_001},
        {"text": "x", "kinds": []},
        {"text": "x", "kinds": ["emails", "emails"]},
        {"text": "x", "kinds": ["faxes"]},
        {"text": "x", "region": "gb"},
        {"text": "x", "region": "GBR"},
        {"text": "x", "leniency": "loose"},
        {"text": "x", "more": 1},
    ],
)
def test_arguments_outside_the_contract_are_rejected(args: dict[str, Any]) -> None:
    assert PARAMETERS.violations(args)


def test_no_results_is_a_valid_answer() -> None:
    assert extract("Nothing to see here.") == {
        "contacts": [],
        "emails": [],
        "phones": [],
        "urls": [],
        "names": [],
    }


def test_a_hint_is_given_only_if_phones_were_requested() -> None:
    assert "hint" in extract("Tel. 020 7946 0958")
    assert "hint" not in extract("Tel. 020 7946 0958", kinds=["emails"])


def test_excess_entities_are_counted_and_not_listed() -> None:
    data = extract(" ".join(f"user{number}@example.org" for number in range(60)))
    assert len(data["emails"]) == 50
    assert data["omitted"] == {"emails": 10}


def test_excess_occurrences_are_counted_and_not_listed() -> None:
    (entity,) = extract("ada@example.org " * 30)["emails"]
    assert len(entity["at"]) == 20
    assert entity["count"] == 30


def test_contacts_refer_to_listed_entities() -> None:
    lines = [f"Ada Lovelace <user{number}@example.org> +44 20 7946 {number:04}" for number in range(60)]
    data = extract("\n".join(lines))
    listed = {entity["email"] for entity in data["emails"]} | {entity["e164"] for entity in data["phones"]}
    referred = {
        value
        for contact in data["contacts"]
        for kind in ("emails", "phones")
        for value in contact.get(kind, ())
    }
    assert referred == listed


def test_positions_count_code_points() -> None:
    text = "😀é ada@example.org"
    (entity,) = extract(text)["emails"]
    ((start, end),) = entity["at"]
    assert text[start:end] == "ada@example.org"


def test_the_signature_of_a_mail_is_one_contact() -> None:
    text = """Hi Charles,

could you send the drawings? My assistant is Mary Somerville <mary@example.org>.

Best regards,

Ada Lovelace
Countess of Computing | Analytical Engines Ltd
12 St James's Square, London SW1Y 4JH
Tel: +44 20 7946 0958 | Fax: +44 20 7946 0959
ada.lovelace@example.org | www.example.org

This message is confidential. If it is not meant for you, tell postmaster@example.org.
"""
    assert contacts(text) == [
        {"name": "Mary Somerville", "emails": ["mary@example.org"]},
        {
            "name": "Ada Lovelace",
            "emails": ["ada.lovelace@example.org"],
            "phones": ["+442079460958", "+442079460959"],
            "urls": ["http://www.example.org"],
        },
    ]


def test_the_header_of_a_mail_gives_contacts() -> None:
    text = """From: Ada Lovelace <ada@example.org>
To: "Babbage, Charles" <cb@example.org>, info@example.com
Cc: =?UTF-8?Q?Ren=C3=A9_Dupont?= <rene@example.fr>
Date: Mon, 3 Feb 2025 10:11:12 +0000
Message-ID: <20250203101112.1234567@example.org>
"""
    assert contacts(text) == [
        {"name": "Ada Lovelace", "emails": ["ada@example.org"]},
        {"name": "Babbage, Charles", "emails": ["cb@example.org"]},
        {"name": "René Dupont", "emails": ["rene@example.fr"]},
    ]


def test_a_quoted_reply_extends_the_contact_in_its_header() -> None:
    text = """On Mon, 3 Feb 2025 at 10:00, Ada Lovelace <ada@example.org> wrote:
> Here you are.
>
> Cheers,
> Ada
> ada@example.org
> +44 20 7946 0958
"""
    assert contacts(text) == [
        {"name": "Ada Lovelace", "emails": ["ada@example.org"], "phones": ["+442079460958"]}
    ]


def test_a_list_has_one_contact_per_entry() -> None:
    text = """- Ada Lovelace: ada@example.org, +44 20 7946 0958
- Charles Babbage: cb@example.org, +44 20 7946 0959
- bookings@example.org, +44 20 7946 0960
"""
    assert contacts(text) == [
        {"name": "Ada Lovelace", "emails": ["ada@example.org"], "phones": ["+442079460958"]},
        {"name": "Charles Babbage", "emails": ["cb@example.org"], "phones": ["+442079460959"]},
        {"emails": ["bookings@example.org"], "phones": ["+442079460960"]},
    ]


def test_a_table_has_one_contact_per_row() -> None:
    text = """| Name | Role | Mail | Phone |
|---|---|---|---|
| Ada Lovelace | CTO | ada@example.org | 020 7946 0958 |
| Max Müller | Engineer | mm@example.de | +49 30 901820 |
"""
    assert contacts(text, region="GB") == [
        {"name": "Ada Lovelace", "emails": ["ada@example.org"], "phones": ["+442079460958"]},
        {"name": "Max Müller", "emails": ["mm@example.de"], "phones": ["+4930901820"]},
    ]


def test_multi_line_entries_without_gaps_are_separated() -> None:
    text = "Ada Lovelace\nada@example.org\nCharles Babbage\ncbabbage@example.org\n+44 20 7946 0958"
    assert contacts(text) == [
        {"name": "Ada Lovelace", "emails": ["ada@example.org"]},
        {"name": "Charles Babbage", "emails": ["cbabbage@example.org"], "phones": ["+442079460958"]},
    ]


def test_vcards_are_read() -> None:
    text = """BEGIN:VCARD
VERSION:3.0
N:Lovelace;Ada;;;
FN:Ada Lovelace
TEL;TYPE=CELL:+447400123456
EMAIL;TYPE=INTERNET:ada@example.org
URL:https://example.org
END:VCARD
BEGIN:VCARD
FN:Bob
EMAIL:bob@example.org
END:VCARD
"""
    assert contacts(text) == [
        {
            "name": "Ada Lovelace",
            "emails": ["ada@example.org"],
            "phones": ["+447400123456"],
            "urls": ["https://example.org"],
        },
        {"name": "Bob", "emails": ["bob@example.org"]},
    ]


def test_a_german_imprint_without_a_name_is_one_contact() -> None:
    text = """Muster GmbH
Musterstraße 12
10115 Berlin
Tel.: 030 / 90 18 20
Telefax: 030 901821
E-Mail: info@example.de
Internet: www.example.de
USt-IdNr.: DE 123456789, Amtsgericht HRB 123456
"""
    assert contacts(text, region="DE") == [
        {
            "emails": ["info@example.de"],
            "phones": ["+4930901820", "+4930901821"],
            "urls": ["http://www.example.de"],
        }
    ]


def test_a_french_signature_is_one_contact() -> None:
    text = """Bien cordialement,

Jeanne d'Arc
Directrice générale
Tél. : 01 42 68 53 00
Courriel : jeanne.darc@example.fr
"""
    assert contacts(text, region="FR") == [
        {"name": "Jeanne d'Arc", "emails": ["jeanne.darc@example.fr"], "phones": ["+33142685300"]}
    ]


def test_a_chinese_business_card_is_one_contact() -> None:
    text = "联系人：王伟\n电话：010 6552 9988\n邮箱：wang@example.cn\n网址：https://example.cn"  # noqa: RUF001
    assert contacts(text, region="CN") == [
        {
            "name": "王伟",
            "emails": ["wang@example.cn"],
            "phones": ["+861065529988"],
            "urls": ["https://example.cn"],
        }
    ]


def test_a_russian_signature_is_one_contact() -> None:
    text = "С уважением,\nИван Петров\nтел. +7 495 123-45-67\nivan@example.ru"  # noqa: RUF001
    assert contacts(text) == [
        {"name": "Иван Петров", "emails": ["ivan@example.ru"], "phones": ["+74951234567"]}
    ]


def test_lines_of_a_chat_belong_to_their_speakers() -> None:
    text = "[10:01] Bob: +44 20 7946 0958\n[10:02] Alice: alice@example.org\nAda: https://example.org"
    data = extract(text)
    assert data["contacts"] == []
    assert [len(data[kind]) for kind in ("emails", "phones", "urls")] == [1, 1, 1]


def test_details_of_one_sentence_form_a_contact() -> None:
    text = "Call +44 20 7946 0958 or write to ada@example.org. Our new shop is at https://shop.example.org"
    assert contacts(text) == [{"emails": ["ada@example.org"], "phones": ["+442079460958"]}]


def test_a_name_belongs_only_to_the_adjacent_address() -> None:
    text = "To: Ada Lovelace <ada@example.org>, bob@example.org, ada@example.net (Ada King)"
    assert contacts(text) == [
        {"name": "Ada Lovelace", "emails": ["ada@example.org"]},
        {"name": "Ada King", "emails": ["ada@example.net"]},
    ]


def test_a_labelled_name_may_have_several_addresses() -> None:
    text = "Name: Ada Lovelace\nEmail: ada@example.org, ada@example.net\nBob: bob@example.org"
    assert contacts(text) == [{"name": "Ada Lovelace", "emails": ["ada@example.org", "ada@example.net"]}]


def test_a_list_of_one_kind_is_not_a_contact() -> None:
    assert contacts("ada@example.org, bob@example.org, eve@example.org") == []
    assert contacts("+44 20 7946 0958\n+44 20 7946 0959\n+44 20 7946 0960") == []
    assert contacts("https://a.example/x https://b.example/y") == []


def test_a_number_after_several_addresses_belongs_to_none() -> None:
    assert contacts("ada@example.org, bob@example.org, +44 20 7946 0958") == []


def test_an_empty_line_ends_a_contact_unless_a_letter_was_signed_above_it() -> None:
    assert contacts("ada@example.org\n\n+44 20 7946 0958") == []
    assert contacts("Best regards,\nAda Lovelace\n\nAnalytical Engines Ltd\n+44 20 7946 0958") == [
        {"name": "Ada Lovelace", "phones": ["+442079460958"]}
    ]


def test_details_separated_by_prose_are_separate() -> None:
    text = """Write to ada@example.org.

In another paragraph, quite unrelated, stands the number +44 20 7946 0958.
It is followed by a long line that says nothing about anybody and ends with a full stop.
https://example.org
"""
    assert contacts(text) == []


def test_a_repeated_contact_is_merged_and_keeps_its_fullest_name() -> None:
    text = "Ada <ada@example.org>\n\nAda Lovelace <ADA@example.org>\n\nBob <ada@example.org>"
    assert contacts(text) == [
        {"name": "Ada Lovelace", "emails": ["ada@example.org"]},
        {"name": "Bob", "emails": ["ada@example.org"]},
    ]


def test_contacts_contain_only_the_requested_kinds() -> None:
    text = "Ada Lovelace: ada@example.org, +44 20 7946 0958, https://example.org"
    data = extract(text, kinds=["names", "phones"])
    assert sorted(data) == ["contacts", "names", "phones"]
    assert data["contacts"] == [{"name": "Ada Lovelace", "phones": ["+442079460958"]}]
    assert contacts(text, kinds=["phones"]) == []
