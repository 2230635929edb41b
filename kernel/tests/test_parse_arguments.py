"""Arguments of a model are parsed or refused with a message."""

from __future__ import annotations

import json

import orjson
import pytest
from jackfield.strict_json import JsonFaultKind, StrictJsonError, parse_arguments


@pytest.mark.parametrize("depth", [64, 253, 254, 255, 300, 1000, 1023, 1024, 5000, 100_000])
@pytest.mark.parametrize(("before", "behind"), [("[", "]"), ('{"a":', "}")], ids=["lists", "objects"])
def test_arguments_beyond_the_depth_limit_are_refused(depth: int, before: str, behind: str) -> None:
    with pytest.raises(StrictJsonError) as refused:
        parse_arguments(f'{{"x":{before * depth}1{behind * depth}}}')
    assert refused.value.faults[0].kind is JsonFaultKind.DEPTH


def test_arguments_at_the_depth_limit_are_accepted() -> None:
    text = '{"x":' + "[" * 62 + "]" * 62 + "}"
    assert parse_arguments(text) == (json.loads(text), orjson.dumps(orjson.loads(text)))
