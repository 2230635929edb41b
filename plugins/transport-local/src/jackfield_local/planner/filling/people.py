"""Who is meant, where a tool asks for it inside an object: the name, and the address beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jackfield_local.language.spans import Span
from jackfield_local.planner.filling.texts import Spoken
from jackfield_local.planner.heard import Heard
from jackfield_local.planner.reading.kinds import Kind
from jackfield_local.planner.reading.tool import Parameter, Tool


def found(
    tool: Tool, heard: Heard, taken: Sequence[Span], given: Mapping[str, Any]
) -> Iterator[tuple[Parameter, str]]:
    """What was said of the person in each object that cannot be left out, as far as it is not given."""
    spans = [*taken, *(each.span for each in heard.emails)]
    for outer in tool.required:
        inner = given.get(outer.name) or {}
        if outer.kind is not Kind.OBJECT or outer.many or not isinstance(inner, Mapping):
            continue
        for child in outer.children:
            if child.many or child.name in inner:
                continue
            if child.kind is Kind.EMAIL and heard.emails:
                yield child, heard.emails[0].text
            elif child.kind is Kind.NAME and child.required:
                name = Spoken(tool, heard, spans).person()
                if name is not None:
                    yield child, name
