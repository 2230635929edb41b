"""Numbers as arguments: taken from the request, or from the reply to a question."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from local_session import Session, talk_over

LOAN_GUIDE = """# loan_terms

Works out the monthly rate of a loan. Use it when somebody wants to know what a loan costs.

## Examples

What is the monthly rate for 200000 at 3.5 percent over 30 years?

```json
{"amount": 200000, "rate": 3.5, "term": {"length": 30, "unit": "years"}}
```
"""
LOAN: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["amount", "rate", "term"],
    "properties": {
        "amount": {"type": "number", "minimum": 1000, "description": "How much is borrowed."},
        "rate": {"type": "number", "minimum": 0, "maximum": 25, "description": "The interest in percent."},
        "term": {
            "type": "object",
            "description": "How long the loan runs.",
            "required": ["length", "unit"],
            "properties": {
                "length": {"type": "integer", "minimum": 1, "maximum": 480},
                "unit": {"type": "string", "enum": ["months", "years"]},
            },
        },
    },
}
FLOWERS_GUIDE = """# buy_flowers

Buys a bunch of flowers. Use it when somebody wants flowers.

## Examples

Buy flowers for 30 dollars.

```json
{"price": 30}
```
"""
FLOWERS: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["price"],
    "properties": {
        "price": {"type": "integer", "minimum": 1, "maximum": 6000, "description": "What it may cost."}
    },
}
COPIES: dict[str, Any] = {
    "type": "object",
    "required": ["count"],
    "properties": {
        "count": {"type": "integer", "minimum": 1, "maximum": 50, "description": "How many copies."}
    },
}
PARCEL: dict[str, Any] = {
    "type": "object",
    "required": ["content"],
    "properties": {
        "content": {
            "type": "object",
            "required": ["pieces"],
            "properties": {"pieces": {"type": "array", "items": {"type": "object", "properties": {}}}},
        }
    },
}
TOOLS: dict[str, tuple[str, dict[str, Any], str]] = {
    "loan_terms": ("Work out the monthly rate of a loan.", LOAN, LOAN_GUIDE),
    "buy_flowers": ("Buy a bunch of flowers.", FLOWERS, FLOWERS_GUIDE),
    "print_copies": (
        "Print copies of the leaflet.",
        COPIES,
        "# print_copies\n\nPrints copies of the leaflet.",
    ),
    "send_parcel": ("Send a parcel.", PARCEL, "# send_parcel\n\nSends a parcel by mail."),
}
TERM = {"length": 30, "unit": "years"}


def _talk(steps: Callable[[Session], Awaitable[None]], **others: Any) -> None:
    talk_over(others or TOOLS, steps)


@pytest.mark.parametrize(
    "said", ["buy flowers, price 25", "buy me flowers for $25", "buy flowers, twenty-five"]
)
def test_a_number_beside_the_arguments_name_or_the_only_one_is_taken(said: str) -> None:
    async def steps(talk: Session) -> None:
        await talk.says(said)
        assert (talk.calls[0].tool_id, talk.args) == ("buy_flowers", {"price": 25})

    _talk(steps)


def test_two_numbers_of_which_neither_is_surer_are_asked_about() -> None:
    async def steps(talk: Session) -> None:
        assert "cost" in await talk.says("buy flowers, 25 or 35")
        assert talk.calls == []
        await talk.says("35")
        assert talk.args == {"price": 35}

    _talk(steps)


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("300000", 300000),
        ("5,000", 5000),
        ("five thousand", 5000),
        ("$7,500.50", 7500.5),
        ("about 80k", 80000),
    ],
)
def test_a_bare_number_answers_the_question_for_an_amount(answer: str, value: float) -> None:
    async def steps(talk: Session) -> None:
        assert "how much is borrowed" in await talk.says("work out what a loan costs")
        assert "interest in percent" in await talk.says(answer)
        assert "length of the term" in await talk.says("3.5")
        assert "unit of the term (months, years)" in await talk.says("30")
        await talk.says("years")
        assert (talk.calls[0].tool_id, talk.args) == (
            "loan_terms",
            {"amount": value, "rate": 3.5, "term": TERM},
        )

    _talk(steps)


@pytest.mark.parametrize("answer", ["12", "twelve", "a dozen", "12 please"])
def test_a_bare_number_answers_the_question_for_a_count(answer: str) -> None:
    async def steps(talk: Session) -> None:
        assert "how many copies" in await talk.says("please print copies of the leaflet")
        await talk.says(answer)
        assert (talk.calls[0].tool_id, talk.args) == ("print_copies", {"count": 12})

    _talk(steps)


def test_one_is_a_number_where_a_number_was_asked_for() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("please print copies of the leaflet")
        await talk.says("one")
        assert talk.args == {"count": 1}

    _talk(steps)


@pytest.mark.parametrize("answer", ["7000", "0", "2.5"])
def test_a_number_that_the_schema_does_not_take_is_asked_for_again_with_its_bounds(answer: str) -> None:
    async def steps(talk: Session) -> None:
        await talk.says("buy flowers")
        assert "(from 1 to 6000)" in await talk.says(answer)
        assert talk.calls == []
        await talk.says("60")
        assert talk.args == {"price": 60}

    _talk(steps)


def test_a_number_is_asked_for_at_most_twice() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("buy flowers")
        await talk.says("7000")
        assert await talk.says("8000") == "I cannot continue without the price. Ask again when you have it."

    _talk(steps)


def test_a_reply_fills_only_the_parameter_that_was_asked_for() -> None:
    properties = {**FLOWERS["properties"], "count": {"type": "integer", "description": "How many bunches."}}
    schema = {**FLOWERS, "properties": properties}

    async def steps(talk: Session) -> None:
        await talk.says("buy flowers")
        await talk.says("40")
        assert talk.args == {"price": 40}
        await talk.gets({"status": "bought"})
        await talk.says("buy flowers for 40 dollars")
        assert talk.args == {"price": 40}

    _talk(steps, buy_flowers=("Buy flowers.", schema, FLOWERS_GUIDE))


def test_a_list_of_records_is_not_asked_for() -> None:
    async def steps(talk: Session) -> None:
        assert (await talk.says("send a parcel")).startswith("I have no tool for that.")
        assert talk.calls == []
        await talk.says("buy flowers for 30 dollars")
        assert talk.args == {"price": 30}

    _talk(steps)


def test_a_percentage_is_a_fraction_where_the_guide_has_it_so() -> None:
    schema = {
        "type": "object",
        "required": ["discount"],
        "properties": {"discount": {"type": "number", "description": "What is taken off."}},
    }
    guide = (
        "# lower_price\n\nLowers the price of the shop.\n\n## Examples\n\nLower the price by 20 percent.\n\n"
        '```json\n{"discount": 0.2}\n```\n'
    )

    async def steps(talk: Session) -> None:
        await talk.says("lower the price by 35 %")
        assert talk.args == {"discount": 0.35}

    _talk(steps, lower_price=("Lower the price of the shop.", schema, guide))
