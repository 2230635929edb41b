"""Guides that are not in the prompt: the model gets a guide with the tool's first error.

Only the copy for the model has the guide. The envelope that is recorded, replayed and shown to clients is
unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson
from jackfield.contract.tool import ErrorType
from jackfield.orchestrator import CallResult
from jackfield.truncation import LIMIT, truncate_result

from jackfield_sessions.model_connection import ModelConnection

_ERROR_LIMIT = LIMIT // 2
"""The maximum length of the error itself."""

_LEAST = 200
"""A shorter excerpt of a guide is not useful."""

_UNRELATED = frozenset(
    {
        ErrorType.NOT_FOUND,
        ErrorType.INTERNAL,
        ErrorType.MODE_RESTRICTED,
        ErrorType.BUDGET_EXCEEDED,
        ErrorType.CONFIRMATION_REQUIRED,
        ErrorType.LOOP_DETECTED,
    }
)
"""Failures that are unrelated to how the tool was called."""

_MORE = "\n[the guide continues]"


class OmittedGuides:
    """Adds a tool's guide to the tool's first error on each connection to the model.

    A new connection starts with the prompt and a summary, so its model has not seen earlier guides.
    """

    def __init__(self, guides: Mapping[str, str], connection: ModelConnection) -> None:
        """`guides` are the guides that the prompt omits, by tool."""
        self._guides = guides
        self._connection = connection
        self._sent: set[str] = set()
        self._renewals = 0

    def replace(self, guides: Mapping[str, str]) -> None:
        """Use other guides from here on."""
        self._guides = guides
        self._sent.clear()

    def encode(self, answer: CallResult) -> bytes:
        """Return a result as the model gets it: truncated to the limit, with the guide if one is due."""
        failure, tool_id = answer.response.failure, answer.tool_id
        if failure is None or failure.type in _UNRELATED or tool_id not in self._guides:
            return truncate_result(answer.wire)
        if self._connection.renewals != self._renewals:
            self._renewals = self._connection.renewals
            self._sent.clear()
        if tool_id in self._sent:
            return truncate_result(answer.wire)
        self._sent.add(tool_id)
        return _with_guide(answer.wire, self._guides[tool_id], failure.type.value)


def _with_guide(wire: bytes, guide: str, error_type: str) -> bytes:
    short = truncate_result(wire, _ERROR_LIMIT)
    envelope = orjson.loads(short)
    room = LIMIT - len(short.decode()) - len(',"guide":""')
    while room >= _LEAST:
        envelope["meta"]["guide"] = excerpt(guide, error_type, room)
        written = orjson.dumps(envelope)
        # A guide is longer in JSON than as text, because quotes and line ends are escaped.
        excess = len(written.decode()) - LIMIT
        if excess <= 0:
            return written
        room -= excess
    return short


def excerpt(guide: str, topic: str, limit: int) -> str:
    """Return as much of a guide as fits: all of it, or sections, those that name the topic first."""
    guide = guide.strip()
    if len(guide) <= limit:
        return guide
    first, *sections = _sections(guide)
    ordered = sorted([*sections, first], key=lambda section: topic not in section)
    kept: list[str] = []
    room = limit - len(_MORE)
    for section in ordered:
        if len(section) > room:
            lines = section[:room].rpartition("\n")[0]
            # A heading alone is not useful.
            kept += [lines] if "\n" in lines.strip() else []
            break
        kept.append(section)
        room -= len(section) + len("\n\n")
    return "\n\n".join(kept) + _MORE


def _sections(guide: str) -> list[str]:
    """Split a guide before each heading that is not in code."""
    sections: list[list[str]] = [[]]
    fenced = False
    for line in guide.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        if line.startswith("##") and not fenced:
            sections.append([])
        sections[-1].append(line)
    return ["\n".join(lines).strip() for lines in sections]
