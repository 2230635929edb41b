"""Each kind of entity: what must be found and what must not."""

from __future__ import annotations

from typing import Any

import pytest
from jackfield_tool_extract_contacts.entities import KINDS
from jackfield_tool_extract_contacts.extraction import extract
from jackfield_tool_extract_contacts.result import result


def read(text: str, region: str | None = None, leniency: str = "valid") -> dict[str, Any]:
    return result(extract(text, region, leniency), KINDS)


def emails(text: str) -> list[str]:
    return [entity["email"] for entity in read(text)["emails"]]


def urls(text: str) -> list[str]:
    return [entity["url"] for entity in read(text)["urls"]]


def phones(text: str, region: str | None = None, leniency: str = "valid") -> list[str]:
    return [entity["e164"] for entity in read(text, region, leniency)["phones"]]


def names(text: str) -> list[str]:
    return [entity["name"] for entity in read(text)["names"]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Write to ada@example.org.", ["ada@example.org"]),
        (
            "ada@example.org, bob@example.org; eve@example.org",
            ["ada@example.org", "bob@example.org", "eve@example.org"],
        ),
        ("(ada@example.org)", ["ada@example.org"]),
        (
            "**ada@example.org** _bob@example.org_ `eve@example.org`",
            ["ada@example.org", "bob@example.org", "eve@example.org"],
        ),
        (
            "'ada@example.org' \"bob@example.org\" |eve@example.org|",
            ["ada@example.org", "bob@example.org", "eve@example.org"],
        ),
        ("ada@example.org/bob@example.org", ["ada@example.org", "bob@example.org"]),
        ("mailto:ada@example.org?cc=bob@example.org", ["ada@example.org", "bob@example.org"]),
        ("mailto://ada@example.org", ["ada@example.org"]),
        ("email=ada@example.org", ["ada@example.org"]),
        ("o'brien+news@mail.example.co.uk", ["o'brien+news@mail.example.co.uk"]),
        ("user+mailbox/department=shipping@example.org", ["user+mailbox/department=shipping@example.org"]),
        ('"quoted @ local"@example.org', ['"quoted @ local"@example.org']),
        ("root@[192.168.1.1]", ["root@[192.168.1.1]"]),
        ("📧ada@example.org📧", ["ada@example.org"]),
    ],
)
def test_an_address_is_found_in_any_context(text: str, expected: Any) -> None:
    assert emails(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("请联系ada@example.org谢谢", "ada@example.org"),
        ("ご連絡はada@example.co.jpまで。", "ada@example.co.jp"),
        ("ada@example.com으로 보내 주세요", "ada@example.com"),
        ("اكتب إلى ada@example.org، شكرا", "ada@example.org"),
        ("用户@例子.广告", "用户@例子.广告"),
        ("उपयोगकर्ता@उदाहरण.कॉम।", "उपयोगकर्ता@उदाहरण.कॉम"),
        ("пишите на юзер@екзампл.ком!", "юзер@екзампл.ком"),
        ("Dörte@Sörensen.example.com", "Dörte@sörensen.example.com"),
    ],
)
def test_an_address_is_found_in_any_script(text: str, expected: Any) -> None:
    assert emails(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "see https://example.org/?mail=ada@example.org and http://ada:secret@example.org/",
        "see https://example.org/a:b/ada@example.org",
        "follow @ada@mastodon.social",
        "git clone git@github.com:team/engine.git",
        "npm install engine@1.2.3 and logo@2x.png",
        "ada@localhost, ada@host.local, ada@example, ada@example.x",
        "a@b@example.org",
        "allow *@example.org and -*@example.org",
        "ssh://ada@example.org postgres://ada:secret@example.org/db",
        "two..dots@example.org .dot@example.org",
        "@example.org ada@ ada@.org ada@-example.org ada@exa_mple.org_x",
        r"C:\ada@example.org",
        "Message-ID: <20250203.1234567@mail.example.org>",
        "a" * 65 + "@example.org",
        "\ufb2c" + "a" * 63 + "@example.org",
        "ada at example dot org, ada＠example.org",  # noqa: RUF001
    ],
)
def test_text_that_only_resembles_an_address_is_not_reported(text: str) -> None:
    assert emails(text) == []


def test_both_the_normalised_and_the_written_form_are_reported() -> None:
    (entity,) = read("jeff@BÜCHER.example")["emails"]
    assert entity == {
        "email": "jeff@bücher.example",
        "ascii": "jeff@xn--bcher-kva.example",
        "text": "jeff@BÜCHER.example",
        "at": [[0, 19]],
    }


def test_addresses_that_differ_in_case_are_one() -> None:
    (entity,) = read("Ada@Example.org, ada@example.org and ADA@EXAMPLE.ORG")["emails"]
    assert entity["email"] == "Ada@example.org"
    assert entity["at"] == [[0, 15], [17, 32], [37, 52]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See https://example.org/a_(b)?c=d#e.", "https://example.org/a_(b)?c=d#e"),
        ("HTTPS://Example.ORG/Path", "https://example.org/Path"),
        ("our shop (www.example.org)", "http://www.example.org"),
        ("example.dev/engine, today", "http://example.dev/engine"),
        ("on notion.so and", "http://notion.so"),
        ("[site](https://example.org)", "https://example.org"),
        ("<https://example.org>", "https://example.org"),
        ("详见https://example.org/路径，谢谢", "https://example.org/路径"),  # noqa: RUF001
        ("https://example.orgをご覧ください", "https://example.org"),
        ("http://bücher.example/", "http://bücher.example/"),
        ("//example.org/x", "http://example.org/x"),
    ],
)
def test_a_link_is_found_and_given_a_scheme(text: str, expected: Any) -> None:
    assert urls(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "Read README.md, run main.py and install.sh.",
        "We meet tomorrow.It is late.My train left.",
        "version 1.2.3.4 on 192.168.1.1",
        "node.js, e.g. i.e. a.m. 3.14",
        "ada.co@example.org and bob@example.org",
        "example.invalid, foo.123",
    ],
)
def test_text_that_only_resembles_a_link_is_not_reported(text: str) -> None:
    assert urls(text) == []


def test_a_trailing_slash_after_the_host_is_ignored_and_paths_keep_their_case() -> None:
    assert urls("https://example.org https://example.org/ https://EXAMPLE.org") == ["https://example.org"]
    assert urls("https://example.org/A https://example.org/a") == [
        "https://example.org/A",
        "https://example.org/a",
    ]


def test_an_overlong_link_is_omitted_rather_than_truncated() -> None:
    assert urls("https://example.org/" + "a" * 3000) == []
    assert urls("字" * 2500 + " https://example.org " + "字" * 2500) == ["https://example.org"]


@pytest.mark.parametrize(
    ("text", "region", "expected"),
    [
        ("Call +44 20 7946 0958 today", None, "+442079460958"),
        ("(+44 20 7946 0958)", None, "+442079460958"),
        ("+44 (0)20 7946 0958", None, "+442079460958"),
        ("tel:+1-202-456-1111", None, "+12024561111"),
        ("020 7946 0958", "GB", "+442079460958"),
        ("0044 20 7946 0958", "GB", "+442079460958"),
        ("Ring 00442079460958", "GB", "+442079460958"),
        ("00442079460958, or write", "DE", "+442079460958"),
        ("0044 2079 4609 58", "DE", "+442079460958"),
        ("0044-2079-4609-58", "DE", "+442079460958"),
        ("011442079460958", "US", "+442079460958"),
        ("0114 4207 9460 958", "US", "+442079460958"),
        ("0011442079460958", "AU", "+442079460958"),
        ("810442079460958", "BY", "+442079460958"),
        ("(202) 456-1111", "US", "+12024561111"),
        ("202.456.1111", "US", "+12024561111"),
        ("030 / 90 18 20", "DE", "+4930901820"),
        ("01.42.68.53.00", "FR", "+33142685300"),
        ("22.33.44.55", "NO", "+4722334455"),
        ("06 698 12345", "IT", "+390669812345"),
        ("010-6552-9988", "CN", "+861065529988"),
        ("03-3224-9999", "JP", "+81332249999"),
        ("+800 1234 5678", None, "+80012345678"),
        ("٠٢٠ ٧٩٤٦ ٠٩٥٨", "GB", "+442079460958"),
    ],
)
def test_numbers_are_found_in_national_formats(text: str, region: str | None, expected: Any) -> None:
    assert phones(text, region) == [expected]


@pytest.mark.parametrize(
    ("text", "region"),
    [
        ("https://example.org/+442079460958 and 442079460958@example.org", "GB"),
        ("on 2012-01-02 08:00, 02.01.2012, 31/8/2011 and in 1979-2011", "US"),
        ("2025-02-03T10:11:12+0000", "US"),
        ("at 51.507351, -10.757933 it is 3.14159265", "NO"),
        ("from 0.823 0.012 to 0.840 0.012", "DE"),
        ("1.234.567,89 or 12.1 - 23.71 - 23.45", "US"),
        ("host 192.168.100.200, version 10.15.7.1", "SG"),
        ("card 4111 1111 1111 1111, 6011-1111-1111-1117 and 3782 822463 10005", "SG"),
        ("IBAN GB29 NWBK 6016 1331 9268 19 or DE89 3704 0044 0532 0130 00", "GB"),
        ("pay to NL91 ABNA 0417 1643 00", "CH"),
        ("978-3-16-148410-0 is a book", "DE"),
        ("550e8400-e29b-41d4-a716-446655440000", "DE"),
        ("timestamp 1738577472123", "US"),
        ("00442079460958", "US"),
        ("004420794609581234567890", "GB"),
        ("00000442079460958", "GB"),
        ("0012 3456 7890 1234", "GB"),
        ("Order no. 00442079460958", "GB"),
        ("Order no. 2024561111", "US"),
        ("invoice #202-456-1111, ref: 2024561111, № 2024561111", "US"),
        ("Kundennummer: 030901820", "DE"),
        ("USD 2024561111", "US"),
    ],
)
def test_other_digits_are_not_phone_numbers(text: str, region: str | None) -> None:
    assert phones(text, region) == []


def test_an_item_number_does_not_hide_a_phone_number() -> None:
    assert phones("order by phone: (202) 456-1111", "US") == ["+12024561111"]
    assert phones("Phone no. (202) 456-1111", "US") == ["+12024561111"]
    assert phones("Contract: +12024561111") == ["+12024561111"]


def test_a_number_has_formats_region_type_and_extension() -> None:
    (entity,) = read("Fax: 020 7946 0958 ext. 12", region="GB")["phones"]
    assert entity == {
        "e164": "+442079460958",
        "national": "020 7946 0958",
        "region": "GB",
        "type": "fixed_line",
        "extension": "12",
        "fax": True,
        "text": "020 7946 0958 ext. 12",
        "at": [[5, 26]],
    }


def test_brackets_around_a_number_are_not_part_of_it() -> None:
    (entity,) = read("(+44 20 7946 0958)")["phones"]
    assert entity["text"] == "+44 20 7946 0958"
    assert read("(020) 7946 0958", "GB")["phones"][0]["text"] == "(020) 7946 0958"


def test_one_number_with_two_extensions_is_two_phones() -> None:
    data = read("+44 20 7946 0958 ext. 1, 0044 20 7946 0958 ext. 2, +442079460958 x1", region="GB")
    assert [(entity["e164"], entity["extension"], len(entity["at"])) for entity in data["phones"]] == [
        ("+442079460958", "1", 2),
        ("+442079460958", "2", 1),
    ]


@pytest.mark.parametrize("word", ["Fax", "Telefax:", "F a x", "факс ", "传真："])  # noqa: RUF001
def test_a_number_labelled_as_fax_is_marked(word: str) -> None:
    (entity,) = read(f"{word} +44 20 7946 0958")["phones"]
    assert entity.get("fax", False) is (word != "F a x")


@pytest.mark.parametrize(("leniency", "found"), [("possible", 4), ("valid", 3), ("strict", 2), ("exact", 1)])
def test_leniency_controls_which_numbers_are_accepted(leniency: str, found: int) -> None:
    text = "7121115678; 65 02 53 00 00; 415-6667777; 415-666-7778"
    assert len(phones(text, "US", leniency=leniency)) == found


def test_national_numbers_need_a_region_and_the_result_says_so() -> None:
    data = read("Tel. 020 7946 0958, (202) 456-1111, on 2025-02-03, order 020 7946 0000")
    assert data["phones"] == []
    assert data["hint"].startswith("'020 7946 0958' and 1 more may be phone numbers")
    assert "hint" not in read("Tel. +44 20 7946 0958")
    assert "hint" not in read("Tel. 020 7946 0958", region="GB")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ada Lovelace <ada@example.org>", "Ada Lovelace"),
        ("Ada Lovelace <mailto:ada@example.org>", "Ada Lovelace"),
        ('"Lovelace, Ada" <ada@example.org>', "Lovelace, Ada"),
        ('"Ada \\"Countess\\" Lovelace" <ada@example.org>', 'Ada "Countess" Lovelace'),
        ("=?UTF-8?Q?Ren=C3=A9_Dupont?= <rene@example.fr>", "René Dupont"),
        ("From: ada of london <x@example.org>", "ada of london"),
        ("ada <ada@example.org>", "ada"),
        ("Please write to Ada Lovelace <ada@example.org> about it", "Ada Lovelace"),
        ("Contact Ada Lovelace <ada@example.org>", "Ada Lovelace"),
        ("Ada Lovelace (she/her) <ada@example.org>", "Ada Lovelace"),
        ("Ludwig van der Rohe <l@example.org>", "Ludwig van der Rohe"),
        ("On Mon, 3 Feb 2025 at 10:00, Ada Lovelace <ada@example.org> wrote:", "Ada Lovelace"),
        ("[Ada Lovelace](mailto:ada@example.org)", "Ada Lovelace"),
        ("ada@example.org (Ada Lovelace)", "Ada Lovelace"),
        ("ask Ada Lovelace (lovelace@example.org) about it", "Ada Lovelace"),
        ("王伟 <wang@example.cn>", "王伟"),
        ("田中 太郎 <tanaka@example.jp>", "田中 太郎"),
        ("Иван Петров <ivan@example.ru>", "Иван Петров"),
        ("Support Team <support@example.org>", "Support Team"),
    ],
)
def test_display_names_of_addresses_are_names(text: str, expected: Any) -> None:
    assert names(text) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Name: Ada Lovelace", "Ada Lovelace"),
        ("**Contact person:** Ada Lovelace, Room 4", "Ada Lovelace"),
        ("Ansprechpartnerin: Dr. Erika Mustermann", "Dr. Erika Mustermann"),
        ("Nom : Jean-Pierre d'Arc", "Jean-Pierre d'Arc"),
        ("联系人：王伟", "王伟"),  # noqa: RUF001
        ("담당자: 김민준", "김민준"),
        ("FN;CHARSET=UTF-8:Ada Lovelace", "Ada Lovelace"),
        ("Ada Lovelace, +44 20 7946 0958", "Ada Lovelace"),
        ("• Ada Lovelace – Tel. +44 20 7946 0958", "Ada Lovelace"),  # noqa: RUF001
        ("3. Ada Lovelace: ada@example.org", "Ada Lovelace"),
        ("Ada Lovelace, Head of Engines, ada@example.org", "Ada Lovelace"),
        ("| Ada Lovelace | Countess | x@example.org |", "Ada Lovelace"),
        ("Call Ada Lovelace: +44 20 7946 0958", "Ada Lovelace"),
        ("Ada Lovelace\n+44 20 7946 0958", "Ada Lovelace"),
        ("Thanks,\nAda\n+44 20 7946 0958", "Ada"),
        ("> --\n> Ada Lovelace\n> x@example.org", "Ada Lovelace"),
    ],
)
def test_names_are_found_by_layout(text: str, expected: Any) -> None:
    assert names(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "ada.lovelace@example.org",
        "please email me <ada@example.org>",
        "Customer Service: +44 20 7946 0958",
        "Head Office, +44 20 7946 0958",
        "Analytical Engines Ltd\n+44 20 7946 0958",
        "Analytical Engines\ninfo@example.org",
        "our office in New York (+1 202 456 1111)",
        "visit Acme Rockets (https://example.org)",
        "our friends at Acme Rockets (sales@example.org)",
        "Mobile: +44 20 7946 0958\nLondon: +44 20 7946 0959",
        "ada@example.org (work), bob@example.org (Preferred)",
        "Contact: Ada@example.org",
        "Contact: please call us",
        "To: Monday",
        "Hello World, please call +44 20 7946 0958",
        "I met Ada Lovelace yesterday. Her number is +44 20 7946 0958.",
        "Ada Lovelace wrote the first program.",
    ],
)
def test_names_are_never_invented(text: str) -> None:
    assert names(text) == []


def test_a_duplicated_name_is_reported_once() -> None:
    assert read("Ada Lovelace (ada@example.org)")["names"] == [{"name": "Ada Lovelace", "at": [[0, 12]]}]


def test_a_lower_line_is_a_name_only_if_it_matches_the_address() -> None:
    assert names("Ada Lovelace\nada@example.org\nAnalytical Engines\n+44 20 7946 0958") == ["Ada Lovelace"]


def test_a_name_keeps_its_position_and_spelling() -> None:
    data = read("To: =?utf-8?b?5p2O?= <li@example.cn>, Ada   Lovelace <ada@example.org>")
    assert data["names"] == [
        {"name": "李", "text": "=?utf-8?b?5p2O?=", "at": [[4, 20]]},
        {"name": "Ada Lovelace", "text": "Ada   Lovelace", "at": [[38, 52]]},
    ]


@pytest.mark.parametrize(
    "broken", ["=?utf-8?b?!!!?=", "=?nonsense?q?a?=", "=?utf-8?q?=FF?=", "=?utf-16?b?AA==?="]
)
def test_a_name_that_cannot_be_decoded_is_omitted(broken: str) -> None:
    data = read(f"{broken} <ada@example.org>")
    assert data["emails"]
    assert all("�" not in entity["name"] for entity in data["names"])
