"""Twenty thousand characters of the worst kind; each must be read in about a second on a slow machine."""

from __future__ import annotations

import time

import pytest
from jackfield_tool_extract_contacts.extraction import extract
from jackfield_tool_extract_contacts.finds import KINDS
from jackfield_tool_extract_contacts.result import result

LENGTH = 20_000
SECONDS = 1.0
LATENCY_BUDGET = 0.2

NUMBERS = ["1", "1.", "1 ", "1 - ", "1/", "(1", "+1 ", "12 34 ", "1234567 ", "GB29 ", "97 8", "0.1"]
UNITS = [
    "@", ".", "a", "a.", "x", "a@", "a@b.cc ", "ü@ü.de ", '"@', '"a"@b.cc ', "message-id:<a@b.cc>", "http://a@",
    "http://", "http://a.com/[", "http://a.com/(", 'http://a.com/"', "http://a.com/{", "//", "a.com ",
    "Ada Lovelace ", "Ada Lovelace <a@b.cc> ", "Ada Lovelace\n", "Name: Ada\n", "Name: Ada\na@b.cc\n",
    "Best regards,\n", "\n", "> ", "- ", "\t", "=?a?q?", "[a](mailto:", "请", "请a@b.cc", "\u0301", "😀",
    "\\",
]  # fmt: skip
MANY = [
    "Ada Lovelace <a{0}@b.cc> +4420794{0:05}\n",
    "a{0}@b.cc, ",
    "+4420794{0:05}\n",
    "a{0}.com ",
    "Ada\na{0}@b.cc\n\n",
]


def _seconds(text: str, region: str, leniency: str = "valid") -> float:
    begin = time.perf_counter()
    result(extract(text, region, leniency), KINDS)
    return time.perf_counter() - begin


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    for region in ("DE", "GB", "US"):
        _seconds("ada@example.org +44 20 7946 0958 https://example.org 030 901820", region)


@pytest.mark.parametrize("unit", UNITS)
def test_repetition_is_read_in_time(unit: str) -> None:
    assert _seconds((unit * LENGTH)[:LENGTH], "DE") < SECONDS


@pytest.mark.parametrize("unit", NUMBERS)
@pytest.mark.parametrize(("region", "leniency"), [("DE", "possible"), ("US", "exact")])
def test_repeated_numbers_are_read_in_time(unit: str, region: str, leniency: str) -> None:
    assert _seconds((unit * LENGTH)[:LENGTH], region, leniency) < SECONDS


@pytest.mark.parametrize("entry", MANY)
def test_many_different_finds_are_read_in_time(entry: str) -> None:
    assert _seconds("".join(entry.format(number) for number in range(4000))[:LENGTH], "GB") < SECONDS


def test_an_ordinary_mail_is_read_within_the_latency_budget() -> None:
    text = "Dear Charles, the engine of 1837 weighs 4.5 tons.\n" * 60
    text += "Best regards,\nAda Lovelace\nTel: +44 20 7946 0958\nada@example.org\nhttps://example.org\n"
    assert min(_seconds(text, "GB") for _ in range(3)) < LATENCY_BUDGET
