"""Failures as the author of a tool reads them."""

from __future__ import annotations

import difflib
import json
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from jackfield import ToolResponse
from jackfield_builder.findings import Finding

_MAX_SHOWN = 2000


def failure(message: str) -> BaseException:
    """A test's failure that shows this message alone: a traceback would show the kit, not the tool."""
    return pytest.fail.Exception(message, pytrace=False)


def findings(tool_id: str, errors: Iterable[Finding]) -> str:
    """Findings of the build, each with its code, where it is and how to mend it."""
    lines = [f"{tool_id} does not pass the checks of the build"]
    for error in errors:
        place = " ".join(filter(None, (error.file, error.path)))
        what = f"{place}: {error.message}" if place else error.message
        lines.append(item(f"{error.code.id} {error.code.title}\n{what}\n{error.hint or error.code.hint}"))
    return "\n".join(lines)


def difference(expected: Any, actual: Any) -> str:
    """How one value differs from another, line by line."""
    pages = (_pretty(expected).splitlines(), _pretty(actual).splitlines())
    return cut("\n".join(difflib.unified_diff(*pages, "expected", "actual", lineterm="", n=2)))


def answer(response: ToolResponse) -> str:
    """An answer in one line."""
    failure = response.failure
    return f"{failure.type}: {failure.message}" if failure else f"ok({data(response.data)})"


def data(value: Any) -> str:
    """Data in one line."""
    return cut(json.dumps(value, ensure_ascii=False, default=repr, skipkeys=True))


def crash(error: Exception, folder: Path) -> str:
    """An exception with the way that led to it, beginning where it enters the tool's folder."""
    steps = error.__traceback__
    while steps and not Path(steps.tb_frame.f_code.co_filename).is_relative_to(folder):
        steps = steps.tb_next
    told = traceback.format_exception(type(error), error, steps or error.__traceback__)
    return "".join(told).rstrip()


def item(text: str) -> str:
    """One entry of a list, its further lines indented."""
    return "  - " + text.replace("\n", "\n    ")


def cut(text: str) -> str:
    """A text that may be very long, shortened."""
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}... ({len(text)} characters in all)"


def _pretty(value: Any) -> str:
    try:
        return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True, default=repr)
    except TypeError:
        return repr(value)
