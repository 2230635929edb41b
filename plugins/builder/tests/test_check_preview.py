"""A card's template that names what is not there is found when the tool is built."""

from __future__ import annotations

from typing import Any

import pytest
from jackfield_builder.checks.preview import problems

PARAMETERS: dict[str, Any] = {"properties": {"start": {}, "end": {}, "zone": {}, "who": {}}}


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{start:in zone} {who}", None),
        ("{start:until end}", None),
        ("{start:moment}", None),
        ("{start:moment zone}", "{start} carries a format"),
        ("{begin:moment}", "{begin} is not a parameter"),
        ("{start:in place}", "{place} is not a parameter"),
        ("{start:>20}", "{start} carries a format"),
        ("{start!r}", "{start} carries a format"),
        ("{start", "expected '}'"),
    ],
)
def test_a_template_is_checked_against_the_parameters(template: str, problem: str | None) -> None:
    found = " ".join(problems(template, PARAMETERS))
    assert (problem in found) if problem else not found
