"""Declared defaults, held against what the handler does when nobody fills them in."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterator
from typing import Any, NamedTuple

from jackfield import ToolError, ToolResponse
from jackfield.contract.response import fail_from
from jackfield.strict_json import pointer

from jackfield_testkit.json_values import at, objects, same_json
from jackfield_testkit.tool_contract import wording
from jackfield_testkit.tool_contract.case import Case
from jackfield_testkit.tool_contract.running import on_a_loop, run

# A tool that answers at random may differ by chance; one that disagrees with its schema differs every time.
_ROUNDS = 3


def problems(case: Case) -> Iterator[str]:
    """Every argument for which the handler assumes another default than the schema declares."""
    for omission in _omissions(case) if case.valid else ():
        if problem := on_a_loop(_problem(case, omission)):
            yield problem


class _Omission(NamedTuple):
    """Complete arguments less one that equals its default."""

    path: str
    default: Any
    arguments: dict[str, Any]


def _omissions(case: Case) -> Iterator[_Omission]:
    """Every way to leave one argument out that the registry would fill in again."""
    parameters, completed = case.tool.arguments, case.completed()
    for path, holder in objects(completed):
        for name in holder:
            omitted = case.completed()
            del at(omitted, path)[name]
            refilled = copy.deepcopy(omitted)
            parameters.complete(refilled)
            if same_json(refilled, completed) and not parameters.violations(omitted):
                yield _Omission(pointer(*path, name), holder[name], omitted)


async def _problem(case: Case, omission: _Omission) -> str | None:
    problem = None
    for _ in range(_ROUNDS):
        problem = await _disagreement(case, omission)
        if problem is None:
            break
    return problem


async def _disagreement(case: Case, omission: _Omission) -> str | None:
    declared = (await run(case.tool, case.completed(), case.context())).response
    own = await _own_answer(case, copy.deepcopy(omission.arguments))
    if own is None or _same(own, declared):
        return None
    again = (await run(case.tool, case.completed(), case.context())).response
    if not _same(again, declared):
        return None  # It never answers alike, so a difference says nothing.
    return (
        f"{omission.path} is declared with the default {omission.default!r}, but the handler itself assumes "
        "another: read the argument without a fallback, or make both the same\n"
        f"with the declared default: {wording.answer(declared)}\n"
        f"with it left out: {wording.answer(own)}"
    )


async def _own_answer(case: Case, arguments: dict[str, Any]) -> ToolResponse | None:
    """What the handler makes of incomplete arguments; one that breaks has no default of its own."""
    try:
        # Not by way of the registry, which would log as a fault of the tool what is none.
        async with asyncio.timeout(case.tool.manifest.timeout_ms / 1000):
            answer: Any = await case.tool.handler(arguments, case.context())
    except ToolError as error:
        return fail_from(error)
    except Exception:  # noqa: BLE001 - whatever it is, it is no answer
        return None
    return answer if isinstance(answer, ToolResponse) else None


def _same(one: ToolResponse, other: ToolResponse) -> bool:
    """Whether the model would be told the same."""
    return same_json(one.data, other.data) and one.failure == other.failure and one.intents == other.intents
