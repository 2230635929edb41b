"""Worst-case texts of twenty thousand characters: four times the text takes about four times the work.

Quadratic work would take sixteen times as long, and one text could block all sessions. Both sizes are
measured together, so that a slow machine affects both.
"""

from __future__ import annotations

import time

import pytest
from jackfield_tool_extract_contacts.entities import KINDS
from jackfield_tool_extract_contacts.extraction import extract
from jackfield_tool_extract_contacts.result import result

LENGTH = 20_000
STEEPEST = 10
SLACK_SECONDS = 0.05

NUMBERS = ["1", "1.", "1 ", "1 - ", "1/", "(1", "+1 ", "12 34 ", "1234567 ", "GB29 ", "97 8", "0.1",
           "00442079460958 "]  # fmt: skip
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


def _work(text: str, region: str, leniency: str) -> float:
    begin = time.process_time()
    result(extract(text, region, leniency), KINDS)
    return time.process_time() - begin


def _grows_with_the_text(text: str, region: str, leniency: str = "valid") -> bool:
    for _ in range(3):
        part = min(_work(text[: LENGTH // 4], region, leniency) for _ in range(2))
        if _work(text[:LENGTH], region, leniency) < STEEPEST * part + SLACK_SECONDS:
            return True
    return False


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    for region in ("DE", "GB", "US"):
        _work("ada@example.org +44 20 7946 0958 https://example.org 030 901820", region, "valid")


@pytest.mark.parametrize("unit", UNITS)
def test_work_grows_linearly_with_repeated_text(unit: str) -> None:
    assert _grows_with_the_text(unit * LENGTH, "DE")


@pytest.mark.parametrize("unit", NUMBERS)
@pytest.mark.parametrize(("region", "leniency"), [("DE", "possible"), ("US", "exact")])
def test_work_grows_linearly_with_repeated_numbers(unit: str, region: str, leniency: str) -> None:
    assert _grows_with_the_text(unit * LENGTH, region, leniency)


@pytest.mark.parametrize("entry", MANY)
def test_work_grows_linearly_with_distinct_entities(entry: str) -> None:
    assert _grows_with_the_text("".join(entry.format(number) for number in range(4000)), "GB")
