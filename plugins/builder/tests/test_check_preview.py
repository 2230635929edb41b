"""The build finds preview templates with unknown parameters or formats."""

from __future__ import annotations

from typing import Any

import pytest
from jackfield_builder.checks.manifest import preview_problems

PARAMETERS: dict[str, Any] = {"properties": {"start": {}, "end": {}, "zone": {}, "who": {}}}


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{start:in zone} {who}", None),
        ("{start:until end}", None),
        ("{start:moment}", None),
        ("{start:moment zone}", "{start} has an unknown format"),
        ("{begin:moment}", "{begin} is not a parameter"),
        ("{start:in place}", "{place} is not a parameter"),
        ("{start:>20}", "{start} has an unknown format"),
        ("{start!r}", "{start} has an unknown format"),
        ("{start", "expected '}'"),
    ],
)
def test_a_preview_template_is_checked_against_the_parameters(template: str, problem: str | None) -> None:
    found = " ".join(preview_problems(template, PARAMETERS))
    assert (problem in found) if problem else not found
