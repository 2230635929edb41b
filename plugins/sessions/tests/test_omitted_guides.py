"""A guide that the prompt left out reaches the model with the first error of its tool."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from jackfield.truncation import LIMIT, cut
from jackfield_sessions.guides import OmittedGuides, excerpt

GUIDE = """\
# book

Books a table.

## Parameters

- party: how many "people" come.

## Watch Out

- `CONFLICT`: the table was taken meanwhile.
"""


def failure(error_type: str = "VALIDATION", message: str = "wrong") -> bytes:
    error = {"type": error_type, "message": message, "retryable": False, "partialSideEffects": False}
    return orjson.dumps({"ok": False, "error": error, "meta": {"toolId": "book", "duration": 1.0}})


def guide_in(wire: bytes) -> Any:
    return orjson.loads(wire)["meta"].get("guide")


def test_the_first_error_carries_the_guide_and_the_next_one_does_not() -> None:
    guides = OmittedGuides({"book": GUIDE})
    first = guides.encode("book", failure(), 0)
    assert guide_in(first) == GUIDE.strip()
    assert orjson.loads(first)["error"] == orjson.loads(failure())["error"]
    assert guides.encode("book", failure(), 0) == failure()


def test_a_new_connection_gets_it_again() -> None:
    guides = OmittedGuides({"book": GUIDE})
    guides.encode("book", failure(), 0)
    assert guide_in(guides.encode("book", failure(), 1))


def test_each_tool_has_its_own_first_error() -> None:
    guides = OmittedGuides({"book": GUIDE, "look": "# look"})
    guides.encode("book", failure(), 0)
    assert guide_in(guides.encode("look", failure(), 0)) == "# look"


def test_a_result_and_a_tool_whose_guide_is_in_the_prompt_are_left_as_they_are() -> None:
    guides = OmittedGuides({"book": GUIDE})
    result = orjson.dumps({"ok": True, "data": {}, "intents": [], "meta": {}})
    assert guides.encode("book", result, 0) == result
    assert guides.encode("other", failure(), 0) == failure()
    assert guide_in(guides.encode("book", failure(), 0))


@pytest.mark.parametrize(
    "error_type", ["CONFIRMATION_REQUIRED", "BUDGET_EXCEEDED", "LOOP_DETECTED", "INTERNAL"]
)
def test_a_refusal_that_is_not_about_the_use_of_the_tool_does_not_use_it_up(error_type: str) -> None:
    guides = OmittedGuides({"book": GUIDE})
    assert guides.encode("book", failure(error_type), 0) == failure(error_type)
    assert guide_in(guides.encode("book", failure(), 0))


@pytest.mark.parametrize("message", ["wrong", "wrong " * 2000])
def test_error_and_guide_stay_within_the_limit_of_an_answer(message: str) -> None:
    long = GUIDE + '\n- "quoted"\n' * 2000
    encoded = OmittedGuides({"book": long}).encode("book", failure(message=message), 0)
    assert len(encoded.decode()) <= LIMIT
    assert len(guide_in(encoded)) > 1000
    assert guide_in(encoded).endswith("[the guide goes on]")
    assert cut(encoded) == encoded


def test_of_a_long_guide_the_section_that_names_the_error_comes_first() -> None:
    long = GUIDE.replace("## Watch Out", "## Examples\n\n" + "- an example\n" * 200 + "\n## Watch Out")
    part = excerpt(long, "CONFLICT", 1000)
    assert part.startswith("## Watch Out\n\n- `CONFLICT`")
    assert len(part) <= 1000
