"""The model gets an omitted guide with the first error of its tool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from jackfield.call_states import response_of
from jackfield.orchestrator import CallResult
from jackfield.truncation import LIMIT, truncate_result
from jackfield_sessions.guides import OmittedGuides, excerpt

GUIDE = """\
# book

Books a table.

## Parameters

- party: how many "people" come.

## Watch Out

- `CONFLICT`: the table was taken meanwhile.
"""


class Connection:
    """Knows how often the connection to the model was renewed."""

    renewals = 0


def answer(tool_id: str, wire: bytes) -> CallResult:
    return CallResult(tool_id, "call-1", response_of(wire), wire, wire.decode())


def failure(error_type: str = "VALIDATION", message: str = "wrong") -> bytes:
    error = {"type": error_type, "message": message, "retryable": False, "partialSideEffects": False}
    return orjson.dumps({"ok": False, "error": error, "meta": {"toolId": "book", "duration": 1.0}})


def omitted(connection: Any = Connection, **guides: str) -> Callable[[str, bytes], bytes]:
    """Encodes answers for the model of a prompt that left these guides out."""
    encode = OmittedGuides(guides, connection).encode
    return lambda tool_id, wire: encode(answer(tool_id, wire))


def guide_in(wire: bytes) -> Any:
    return orjson.loads(wire)["meta"].get("guide")


def test_the_first_error_carries_the_guide_and_the_next_one_does_not() -> None:
    encode = omitted(book=GUIDE)
    first = encode("book", failure())
    assert guide_in(first) == GUIDE.strip()
    assert orjson.loads(first)["error"] == orjson.loads(failure())["error"]
    assert encode("book", failure()) == failure()


def test_a_new_connection_gets_the_guide_again() -> None:
    connection = Connection()
    encode = omitted(connection, book=GUIDE)
    encode("book", failure())
    connection.renewals += 1
    assert guide_in(encode("book", failure()))


def test_each_tool_has_its_own_first_error() -> None:
    encode = omitted(book=GUIDE, look="# look")
    encode("book", failure())
    assert guide_in(encode("look", failure())) == "# look"


def test_results_and_tools_with_their_guide_in_the_prompt_are_unchanged() -> None:
    encode = omitted(book=GUIDE)
    result = orjson.dumps({"ok": True, "data": {}, "intents": [], "meta": {}})
    assert encode("book", result) == result
    assert encode("other", failure()) == failure()
    assert guide_in(encode("book", failure()))


@pytest.mark.parametrize(
    "error_type", ["CONFIRMATION_REQUIRED", "BUDGET_EXCEEDED", "LOOP_DETECTED", "INTERNAL"]
)
def test_an_unrelated_refusal_does_not_count_as_the_first_error(error_type: str) -> None:
    encode = omitted(book=GUIDE)
    assert encode("book", failure(error_type)) == failure(error_type)
    assert guide_in(encode("book", failure()))


@pytest.mark.parametrize("message", ["wrong", "wrong " * 2000])
def test_error_and_guide_stay_within_the_limit_of_a_result(message: str) -> None:
    long = GUIDE + '\n- "quoted"\n' * 2000
    encoded = omitted(book=long)("book", failure(message=message))
    assert len(encoded.decode()) <= LIMIT
    assert len(guide_in(encoded)) > 1000
    assert guide_in(encoded).endswith("[the guide continues]")
    assert truncate_result(encoded) == encoded


def test_an_excerpt_of_a_long_guide_starts_with_the_section_about_the_error() -> None:
    long = GUIDE.replace("## Watch Out", "## Examples\n\n" + "- an example\n" * 200 + "\n## Watch Out")
    part = excerpt(long, "CONFLICT", 1000)
    assert part.startswith("## Watch Out\n\n- `CONFLICT`")
    assert len(part) <= 1000
