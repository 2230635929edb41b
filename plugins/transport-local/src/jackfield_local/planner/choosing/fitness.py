"""Whether a tool can do what the verb of a wish has done, however much else speaks for it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from jackfield_local.language.words import content, name_words, stem, words
from jackfield_local.planner.choosing.vocabulary import Vocabulary
from jackfield_local.planner.heard import Heard
from jackfield_local.planner.language.asked import asks_for_a_time, wonders
from jackfield_local.planner.language.deeds import MAKING, SWITCHING, alike, deed, switches
from jackfield_local.planner.language.requests import (
    names_a_thing,
    noun_phrase,
    polite_stripped,
    seeks,
    verb,
)
from jackfield_local.planner.language.synonyms import kin
from jackfield_local.planner.reading.kinds import Kind
from jackfield_local.planner.reading.manner import Manner
from jackfield_local.planner.reading.tool import Tool
from jackfield_local.planner.remembered import Remembered

_SUCH_A_THING = 0.55
"""A thing that is so near to what a tool gives is a kind of it."""
_KNOWN = 0.5
"""A tool that has this share of the words for what something is asked of knows it."""
_STARTING = frozenset(("call", "phone", "ring", "dial", "open", "start", "begin", "launch", "play"))
"""What can be done with anything, so that a tool that takes nothing has to name it."""
_ON_WHAT_IS_THERE = re.compile(r"[a-z]+\s+(?:that|this|these|those)\s+[a-z]+\W*$", re.IGNORECASE)
_POINTING = re.compile(r"\b(?:this|these|those|them|that|it|results?|hits|ones|list|found)\b", re.IGNORECASE)


def fits(tool: Tool, deeds: Iterable[str], heard: Heard, vocabulary: Vocabulary, thing: float) -> bool:
    """Whether nothing in the wish is beyond a tool whose verbs are `deeds`.

    `thing` is how near what is wanted comes to what the tool gives.
    """
    said, done = heard.request, deed(heard.request)
    doing = done or verb(said)
    if done and done != SWITCHING and not alike(done) & {*deeds}:
        return False
    if done == SWITCHING and not switches(" ".join((tool.description, tool.guide.summary, tool.id))):
        return False
    if done == SWITCHING or (doing in _STARTING and not tool.required):
        return _of_its_own(tool, said, doing, vocabulary)
    if done or doing not in MAKING or seeks(said):
        return not _ON_WHAT_IS_THERE.match(polite_stripped(said)) or _knows(tool, deeds, doing, heard)
    # To make something says nothing: what is to be made has to be the tool's.
    return thing >= _SUCH_A_THING or _takes(tool, heard) or _of_its_own(tool, said, doing, vocabulary)


def is_strange(tool: Tool, heard: Heard, vocabulary: Vocabulary) -> bool:
    """Whether a question is asked of something that a tool neither knows nor has a place for.

    Such a tool could only answer another question: who asks for the hours of a shop would be told the time.
    """
    takes_it = tool.is_open or (tool.answers and not tool.wordless)
    asked = wonders(heard.request) or names_a_thing(heard.request)
    if not asked or takes_it:
        return False
    needs_more = heard.when is None and any(each.kind is Kind.MOMENT for each in tool.required)
    return vocabulary.knows(tool, heard.asked_of, kindly=not needs_more) < _KNOWN


def has_no_time(tool: Tool, heard: Heard) -> bool:
    """Whether a time is asked for, with which a tool has nothing to do."""
    if tool.is_open or not asks_for_a_time(heard.request):
        return False
    timed = any(each.kind in (Kind.MOMENT, Kind.LENGTH) for each in tool.parameters)
    return not timed and not any(asks_for_a_time(each.says) for each in tool.guide.examples)


def _knows(tool: Tool, deeds: Iterable[str], doing: str, heard: Heard) -> bool:
    """Whether a tool may do something to what is there: it has the verb, or takes what is pointed at."""
    takes = heard.payload is not None or any(each.manner is Manner.POINTED for each in tool.required)
    return takes or seeks(heard.request) or bool(kin(stem(doing)) & {*deeds})


def _of_its_own(tool: Tool, said: str, doing: str, vocabulary: Vocabulary) -> bool:
    """Whether what something is to be done with is among a tool's own words, or is not named."""
    wished = said if doing == SWITCHING else " ".join(noun_phrase(said))
    named = [word for word in content(wished) if word not in map(stem, doing.split())]
    return not named or vocabulary.evidence(tool, named) > 0


def able(tool: Tool) -> frozenset[str]:
    """The stems of the verbs for what a tool does, as its id, its guide and those examples say that order."""
    found = [*name_words(tool.id), *words(tool.guide.summary)[:1], *words(tool.description)[:1]]
    orders = [each.says for each in tool.guide.examples if not seeks(each.says)]
    found += [deed(each) or verb(each) for each in (tool.guide.summary, tool.description, *orders)]
    return frozenset(stem(each) for each in found if each)


def has_material(tool: Tool, heard: Heard, remembered: Remembered) -> bool:
    """Whether there are results for a tool that works on nothing else, or some are pointed at."""
    needed = any(each.kind is Kind.RECORDS for each in tool.required)
    return not needed or bool(remembered.items) or bool(_POINTING.search(heard.request))


def _takes(tool: Tool, heard: Heard) -> bool:
    """Whether something was given that the tool has a place for: a time, an id, a path, a text."""
    given = {
        Kind.MOMENT: heard.when is not None,
        Kind.ID: bool(heard.ids),
        Kind.URL: bool(heard.urls),
        Kind.EMAIL: bool(heard.emails),
        Kind.WRITTEN: bool(heard.quotes or heard.payload or heard.paths),
    }
    return any(there and tool.takes(kind) is not None for kind, there in given.items())
