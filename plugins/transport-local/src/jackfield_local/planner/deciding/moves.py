"""What the planner may do next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jackfield_local.planner.reading.kinds import Kind
from jackfield_local.planner.reading.tool import Parameter, Tool


@dataclass(frozen=True, slots=True)
class Question:
    """Something that was asked back, which the user's next words should answer."""

    text: str
    said: str
    """What the user had said."""

    tools: tuple[Tool, ...]
    """The tool that waits, or those between which the user has to choose."""

    missing: Parameter | None = None
    args: Mapping[str, Any] | None = None
    times: int = 1
    """How often it was asked."""

    @property
    def exact(self) -> bool:
        """Whether the answer has to be taken as it is written."""
        return self.missing is not None and self.missing.kind is Kind.WRITTEN


@dataclass(frozen=True, slots=True)
class Say:
    """Words, and nothing more."""

    text: str
    warns_of: str = ""
    """A tool that will be used when the same comes again."""

    talk: bool = False
    """Whether it answers small talk."""

    free: bool = False
    """Whether who can chat may say it in other words."""

    lost: bool = False
    """Whether it says that nothing was understood."""

    lists: bool = False
    """Whether it lists what can be done."""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool to be called."""

    tool: Tool
    args: Mapping[str, Any]
    question: str
    """What the user wants to know or have done."""

    then: Tool | None = None
    """A tool that takes the id of what this one finds."""

    remark: str = ""
    """What the user should know before it is made."""


Move = Question | Say | Call
