"""People as arguments: whom a request is for, where a tool asks for that inside an object."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from local_session import Session, talk_over

GUIDE = """# Book a table

Books a table at the restaurant. Use it when the user wants to come and eat.

## Examples

Book a table for two on 1 May at seven in the evening, for Ada Lovelace.

```json
{ "party": 2, "at": "2026-05-01T19:00:00+02:00", "guest": { "name": "Ada Lovelace" } }
```
"""
SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["party", "at", "guest"],
    "properties": {
        "party": {"type": "integer", "minimum": 1, "maximum": 40, "description": "How many people come."},
        "at": {"type": "string", "format": "date-time", "description": "When they come."},
        "place": {"type": "string", "enum": ["inside", "terrace"], "default": "inside"},
        "guest": {
            "type": "object",
            "additionalProperties": False,
            "required": ["name"],
            "description": "Who books.",
            "properties": {
                "name": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 80,
                    "description": "The guest's name.",
                },
                "email": {"type": "string", "format": "email", "description": "For the written word."},
            },
        },
    },
}


def _talk(steps: Callable[[Session], Awaitable[None]]) -> None:
    talk_over({"book_table": ("Books a table at the restaurant.", SCHEMA, GUIDE)}, steps)


@pytest.mark.parametrize(
    ("said", "guest"),
    [
        (
            "Book a table for two on 1 December at seven in the evening, for Ada Lovelace.",
            {"name": "Ada Lovelace"},
        ),
        (
            "Reserve a table for two on 1 December at 7 pm for Grace Hopper, grace@example.org",
            {"name": "Grace Hopper", "email": "grace@example.org"},
        ),
    ],
)
def test_whom_a_request_is_for_goes_into_the_object_that_asks_for_it(said: str, guest: Any) -> None:
    async def steps(talk: Session) -> None:
        await talk.says(said)
        wanted = {"party": 2, "at": "2026-12-01T19:00:00+01:00", "guest": guest}
        assert {name: value for name, value in talk.args.items() if name != "place"} == wanted

    _talk(steps)


def test_a_name_that_was_given_is_not_lost_to_the_next_word_with_a_capital() -> None:
    async def steps(talk: Session) -> None:
        await talk.says("Book a table on 1 December at 7 pm for Ada Lovelace")
        assert talk.calls == []
        await talk.says("Two of us, on the Terrace")
        assert talk.args["guest"] == {"name": "Ada Lovelace"}
        assert (talk.args["party"], talk.args["place"]) == (2, "terrace")

    _talk(steps)


def test_without_a_name_it_asks_for_one() -> None:
    async def steps(talk: Session) -> None:
        assert "name" in await talk.says(
            "Book a table for two on Tuesday, 1 December at seven in the evening"
        )
        assert talk.calls == []
        await talk.says("Ada Lovelace")
        assert talk.args["guest"] == {"name": "Ada Lovelace"}

    _talk(steps)
