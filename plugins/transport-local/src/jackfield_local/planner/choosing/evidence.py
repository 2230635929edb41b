"""What speaks for a tool, and how much each kind of it counts."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

from jackfield_local.language.words import content
from jackfield_local.planner.filling.written import written
from jackfield_local.planner.heard import Heard
from jackfield_local.planner.language.asked import wonders
from jackfield_local.planner.reading.kinds import Kind
from jackfield_local.planner.reading.manner import Manner
from jackfield_local.planner.reading.tool import Parameter, Tool
from jackfield_local.planner.remembered import Item, Remembered

_POINTING = re.compile(
    r"\b(?:this|these|those|them|that|here|below|following|results?|hits|ones)\b", re.IGNORECASE
)
_AS_A_TEXT = 0.5


@dataclass(slots=True)
class Evidence:
    """One number for each kind of evidence, 0 where there is none."""

    nearest: float = 0.0
    """How much the example most like it is like it."""
    near: float = 0.0
    """The same of the three nearest."""
    told: float = 0.0
    """How much the description is like it."""
    worded: float = 0.0
    """How much its words are the tool's own."""
    shared: float = 0.0
    """How many words it shares with an example, the little ones too."""
    verb: float = 0.0
    """How near its verb is to what the tool does."""
    thing: float = 0.0
    """How near the thing that is wanted is to what the tool gives."""
    mood: float = 0.0
    """Whether both want to know something, or both want something done."""
    unsaid: float = 0.0
    """A word that most of the examples have and that was not said."""
    strange: float = 0.0
    """Something is asked of what the tool neither knows nor has a place for."""
    timeless: float = 0.0
    """A time is asked for, and the tool has nothing to do with any."""
    open: float = 0.0
    """Something is asked, and any question may be put to the tool."""
    composed: float = 0.0
    """All that it needs would have to be thought up."""
    meant: float = 0.0
    """The result that is referred to has what the tool needs."""
    not_meant: float = 0.0
    """A result is referred to, and the tool has no use for it."""
    id_given: float = 0.0
    id_lacking: float = 0.0
    time_given: float = 0.0
    time_lacking: float = 0.0
    text_given: float = 0.0
    text_lacking: float = 0.0
    handed: float = 0.0
    """A text was handed over, and the tool takes one."""
    url_given: float = 0.0
    """A link was given, and the tool takes one."""
    written_given: float = 0.0
    """A path, a command or the like that the tool needs was given."""
    written_lacking: float = 0.0
    records_given: float = 0.0
    records_lacking: float = 0.0

    def weighed(self) -> float:
        """All of it in one number; about 1 is clear."""
        return float(sum(getattr(self, each.name) * getattr(WEIGHTS, each.name) for each in fields(self)))


WEIGHTS = Evidence(
    nearest=0.50,
    near=0.39,
    told=0.20,
    worded=0.79,
    shared=0.35,
    verb=0.39,
    thing=0.08,
    mood=0.27,
    unsaid=-0.14,
    strange=-0.8,
    timeless=-0.2,
    open=0.35,
    composed=-0.29,
    meant=0.6,
    not_meant=-0.6,
    id_given=0.44,
    id_lacking=-0.19,
    time_given=0.33,
    time_lacking=-0.34,
    text_given=0.16,
    text_lacking=-0.21,
    handed=0.4,
    url_given=0.6,
    written_given=0.3,
    written_lacking=-0.1,
    records_given=0.36,
    records_lacking=-0.07,
)
"""Fitted to the requests in `tests/local_development.py` and to the guides' own examples, each left out in
turn, by softmax regression over the tools; what is referred to or handed over counts more than so few
requests teach, and so do links, paths and commands, of which they have none, and what a
question is asked of."""


def with_needs(found: Evidence, tool: Tool, heard: Heard, remembered: Remembered) -> Evidence:
    """The evidence with what there is of what the tool needs."""
    item = remembered.referred(heard.request)
    given = [each for each in tool.required if item is not None and remembered.gives(item, each)]
    found.open = float(tool.is_open and wonders(heard.request) and bool(content(heard.request)))
    found.composed = float(tool.composed)
    # Its text may be worked on, but who points at a result mostly wants the result itself.
    found.meant = max((_AS_A_TEXT if each.kind is Kind.TEXT else 1.0 for each in given), default=0.0)
    found.not_meant = float(item is not None and not given)
    timed = [each for each in tool.parameters if each.kind is Kind.MOMENT]
    found.time_given = float(bool(timed) and heard.when is not None)
    found.time_lacking = float(
        heard.when is None and any(each.required and each not in given for each in timed)
    )
    found.url_given = float(bool(heard.urls) and tool.takes(Kind.URL) is not None)
    _need_written(found, tool, heard)
    for parameter in tool.required:
        if parameter not in given:
            _need(found, parameter, heard, remembered, item)
    return found


def _need_written(found: Evidence, tool: Tool, heard: Heard) -> None:
    needed = [each.name for each in tool.required if each.kind is Kind.WRITTEN]
    if needed:
        taken = written(tool, heard)
        there = {parameter.name for parameter, _, _ in taken} & set(needed)
        spans = [span for _, _, found_at in taken for span in found_at]
        # Who puts something in quotes wants it used.
        unused = any(not any(each.span.overlaps(span) for span in spans) for each in heard.quotes)
        found.written_given = 0.0 if unused else len(there) / len(needed)
        found.written_lacking = 1.0 - found.written_given


def _need(
    found: Evidence, parameter: Parameter, heard: Heard, remembered: Remembered, item: Item | None
) -> None:
    pointed = bool(_POINTING.search(heard.request))
    if parameter.kind is Kind.ID:
        name, there = "id", bool(heard.ids)
    elif parameter.kind is Kind.RECORDS:
        name, there = "records", bool(remembered.items) and pointed and item is None
    elif parameter.kind is Kind.TEXT and parameter.manner is Manner.POINTED:
        found.handed = float(heard.payload is not None)
        name, there = "text", heard.payload is not None or pointed
    else:
        return
    setattr(found, f"{name}_{'given' if there else 'lacking'}", 1.0)
