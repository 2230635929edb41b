"""A model's arguments are read, or refused with a sentence; nothing else can become of them."""

from __future__ import annotations

import json

import orjson
import pytest
from jackfield.registry.reading import read_arguments
from jackfield.strict_json import FaultKind, StrictJsonError


@pytest.mark.parametrize("depth", [64, 253, 254, 255, 300, 1000, 1023, 1024, 5000, 100_000])
@pytest.mark.parametrize(("before", "behind"), [("[", "]"), ('{"a":', "}")], ids=["lists", "objects"])
def test_arguments_nested_too_deeply_are_rejected_at_any_depth(depth: int, before: str, behind: str) -> None:
    with pytest.raises(StrictJsonError) as refused:
        read_arguments(f'{{"x":{before * depth}1{behind * depth}}}')
    assert refused.value.faults[0].kind is FaultKind.DEPTH


def test_arguments_at_the_maximum_depth_are_accepted() -> None:
    text = '{"x":' + "[" * 62 + "]" * 62 + "}"
    assert read_arguments(text) == (json.loads(text), orjson.dumps(orjson.loads(text)))
