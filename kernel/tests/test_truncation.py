"""A tool's answer for a model: within its limit, valid, with a note about what is missing."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jackfield.truncation import LIMIT, truncate_result

SENTENCE = "The lamp in the hall is broken. "


def envelope(data: Any) -> bytes:
    meta = {"toolId": "look", "toolVersion": "1.0.0", "registryVersion": "1.0.abc", "duration": 1.5}
    return orjson.dumps({"ok": True, "data": data, "intents": [], "meta": meta})


def failure(message: str, details: Any) -> bytes:
    error = {"type": "INTERNAL", "message": message, "retryable": False, "details": details}
    return orjson.dumps({"ok": False, "error": error, "meta": {"toolId": "look", "duration": 1.5}})


def length(wire: bytes) -> int:
    return len(wire.decode())


def test_a_result_within_the_limit_is_not_changed() -> None:
    wire = envelope({"text": "x" * 3000})
    assert truncate_result(wire) is wire


def test_non_ascii_text_is_measured_in_characters() -> None:
    wire = envelope({"text": "ü" * 3500})
    assert len(wire) > LIMIT
    assert truncate_result(wire) == wire


def test_the_first_records_are_kept_whole() -> None:
    records = [{"id": n, "title": SENTENCE * 3} for n in range(200)]
    short = orjson.loads(truncate_result(envelope({"results": records, "total": 200})))
    kept = short["data"]["results"]
    assert kept == records[: len(kept)]
    assert len(kept) > 10
    assert short["data"]["total"] == 200
    assert short["meta"]["cut"] == [f"data/results: the first {len(kept)} of 200"]


def test_both_ends_of_code_are_kept() -> None:
    lines = ["import os", "", *(f"def f{n}(): return {n}" for n in range(1000)), "main()"]
    short = orjson.loads(truncate_result(envelope({"content": "\n".join(lines)})))
    text = short["data"]["content"]
    assert text.startswith("import os")
    assert text.endswith("main()")
    assert "lines left out" in text
    assert "left out in the middle" in short["meta"]["cut"][0]


def test_whole_lines_of_a_file_list_are_kept() -> None:
    files = [f"src/package/module_{n}.py" for n in range(1000)]
    short = orjson.loads(truncate_result(envelope({"files": "\n".join(files)})))
    kept = short["data"]["files"].splitlines()
    assert kept == files[: len(kept)]
    assert short["meta"]["cut"] == [f"data/files: the first {len(kept)} of 1000 lines"]


def test_whole_sentences_of_prose_are_kept() -> None:
    short = orjson.loads(truncate_result(envelope({"text": SENTENCE * 500})))
    text = short["data"]["text"]
    assert text.removesuffix(" [...]").endswith("is broken.")
    assert "characters" in short["meta"]["cut"][0]


def test_an_error_is_truncated_too() -> None:
    short = orjson.loads(truncate_result(failure("It broke. " * 1000, {"errors": [SENTENCE] * 500})))
    assert short["error"]["type"] == "INTERNAL"
    assert short["error"]["message"].startswith("It broke.")
    assert short["meta"]["cut"]


LETTERS = st.characters(exclude_categories=["Cs"])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(LETTERS, max_size=60)
    | st.builds(lambda text, times: text * times, st.text(LETTERS, max_size=20), st.integers(0, 600)),
    lambda inner: (
        st.lists(inner, max_size=40) | st.dictionaries(st.text(LETTERS, max_size=300), inner, max_size=20)
    ),
    max_leaves=60,
)


@settings(max_examples=50, deadline=None)
@given(VALUES, st.sampled_from([1000, LIMIT]))
def test_any_truncated_result_is_valid_within_the_limit_and_says_what_is_missing(
    data: Any, limit: int
) -> None:
    wire = envelope(data)
    short = truncate_result(wire, limit)
    assert length(short) <= limit
    read = orjson.loads(short)
    assert read["ok"] is True
    whole = orjson.loads(wire)
    assert {name: value for name, value in read["meta"].items() if name != "cut"} == whole["meta"]
    assert ("cut" in read["meta"]) == (read["data"] != whole["data"])


@pytest.mark.parametrize(
    "data",
    [
        [[[["x" * 9000]]]],
        {f"key{n}": n for n in range(2000)},
        {"k" * 9000: 1},
        [{"id": n, "nested": {"deep": [1, 2, 3]}} for n in range(900)],
        ["\u0001" * 3000],
        {"text": '"\\' * 4000},
        list(range(5000)),
        {"a": "x" * 3000, "b": "y" * 3000, "c": ["z" * 2000, "w" * 2000], "d": {"e": "v" * 5000}},
        "\n" * 9000,
        "def f(): pass\n" * 3 + "x" * 9000,
        "\n".join(["a/b.py"] * 10 + ["/" + "c" * 9000]),
    ],
)
def test_the_limit_holds_for_shapes_that_are_hard_to_shorten(data: Any) -> None:
    short = truncate_result(envelope(data))
    assert length(short) <= LIMIT
    assert orjson.loads(short)["meta"]["cut"]
