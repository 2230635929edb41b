"""Failure messages for the author of a tool."""

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
    """Return a test failure with this message alone; a traceback would show the kit, not the tool."""
    return pytest.fail.Exception(message, pytrace=False)


def findings(tool_id: str, errors: Iterable[Finding]) -> str:
    """Return the findings of the build, each with its code, its place and how to fix it."""
    lines = [f"{tool_id} does not pass the build checks"]
    for error in errors:
        place = " ".join(filter(None, (error.file, error.path)))
        what = f"{place}: {error.message}" if place else error.message
        lines.append(item(f"{error.code.id} {error.code.title}\n{what}\n{error.hint or error.code.hint}"))
    return "\n".join(lines)


def difference(expected: Any, actual: Any) -> str:
    """Return the difference between two values, line by line."""
    pages = (_pretty(expected).splitlines(), _pretty(actual).splitlines())
    return shorten("\n".join(difflib.unified_diff(*pages, "expected", "actual", lineterm="", n=2)))


def response(given: ToolResponse) -> str:
    """Return a response in one line."""
    failure = given.failure
    return f"{failure.type}: {failure.message}" if failure else f"ok({data(given.data)})"


def data(value: Any) -> str:
    """Return data in one line."""
    return shorten(json.dumps(value, ensure_ascii=False, default=repr, skipkeys=True))


def crash(error: Exception, folder: Path) -> str:
    """Return an exception with its traceback, from the first frame in the tool's folder."""
    frames = error.__traceback__
    while frames and not Path(frames.tb_frame.f_code.co_filename).is_relative_to(folder):
        frames = frames.tb_next
    lines = traceback.format_exception(type(error), error, frames or error.__traceback__)
    return "".join(lines).rstrip()


def item(text: str) -> str:
    """Return an entry of a list, with its other lines indented."""
    return "  - " + text.replace("\n", "\n    ")


def shorten(text: str) -> str:
    """Return a text, shortened if it is very long."""
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}... ({len(text)} characters in total)"


def _pretty(value: Any) -> str:
    try:
        return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True, default=repr)
    except TypeError:
        return repr(value)
