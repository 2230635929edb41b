"""A tool as the planner knows it: its purpose, its parameters, and what its examples teach about them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jackfield.transport.protocol import Opening

from jackfield_local.guide import Guide, read_guide
from jackfield_local.language.words import name_words, spoken_name
from jackfield_local.planner.language.requests import seeks
from jackfield_local.planner.reading.forms import Form, form_of
from jackfield_local.planner.reading.kinds import Kind, kind_of
from jackfield_local.planner.reading.manner import Manner, manner_of

_START = frozenset(("start", "starts", "from", "begin", "since", "after", "first"))
_END = frozenset(("end", "ends", "to", "until", "till", "before", "last", "finish"))
_WITHOUT_WORDS = frozenset(
    (
        Kind.MOMENT, Kind.LENGTH, Kind.ZONE, Kind.COUNTRY, Kind.LOCALE,
        Kind.CHOICE, Kind.SWITCH, Kind.COUNT, Kind.AMOUNT,
    )
)  # fmt: skip
_WEB = re.compile(r"\b(?:web|internet|online)\b", re.IGNORECASE)
_SEARCHES = re.compile(r"\b(?:search|find|look|quer|brows)\w*\b", re.IGNORECASE)
_PARTS = re.compile(
    r"(?:end|close|leave|stop|finish|terminate|hang up)s?\b[^.,;]*\b(?:session|call|conversation)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument that a tool takes."""

    name: str
    schema: Mapping[str, Any]
    kind: Kind
    required: bool
    many: bool
    manner: Manner
    children: tuple[Parameter, ...] = ()
    outer: tuple[str, ...] = ()
    """The objects in which it stands, the outermost first."""

    @property
    def path(self) -> tuple[str, ...]:
        """The names that lead to it."""
        return (*self.outer, self.name)

    @property
    def description(self) -> str:
        """What its author says about it."""
        return str(self.schema.get("description", ""))

    @property
    def begins(self) -> bool:
        """Whether it is the beginning of something."""
        return bool(_START & set(name_words(self.name)))

    @property
    def ends(self) -> bool:
        """Whether it is the end of something."""
        return bool(_END & set(name_words(self.name))) and not self.begins

    @property
    def source(self) -> bool:
        """Whether it says where something comes from, as `from_timezone` does."""
        return bool({"from", "source", "origin"} & set(name_words(self.name)))

    @property
    def form(self) -> Form | None:
        """How it is written, where it has to be exact."""
        return form_of(name_words(self.name), self.description) if self.kind is Kind.WRITTEN else None

    @property
    def spoken(self) -> str:
        """Its name as a person would say it."""
        return " of the ".join(spoken_name(each) for each in reversed(self.path))


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the planner may call."""

    id: str
    description: str
    guide: Guide
    parameters: tuple[Parameter, ...]

    @property
    def required(self) -> tuple[Parameter, ...]:
        """What it cannot be called without."""
        return tuple(each for each in self.parameters if each.required)

    def takes(self, kind: Kind) -> Parameter | None:
        """Its first parameter of a kind, required ones first."""
        fitting = [each for each in self.parameters if each.kind is kind]
        return next((each for each in fitting if each.required), fitting[0] if fitting else None)

    @property
    def purpose(self) -> str:
        """What it does, in the first sentence of its guide."""
        told = self.guide.summary or self.description
        return told.split(". ")[0].rstrip(".")

    @property
    def told(self) -> list[str]:
        """What its author says of it, sentence by sentence, as the user would: "the user" is "I" there."""
        texts = [self.description, self.guide.summary, *self.guide.notes]
        sentences = [part.strip() for text in texts for part in re.split(r"(?<=\.)\s+", text) if part.strip()]
        mine = [re.sub(r"\bthe user wants\b", "I want", each) for each in sentences]
        return [re.sub(r"\bthe user\b", "I", each) for each in mine] or [self.id.replace("_", " ")]

    def comes_before(self, other: Tool) -> bool:
        """Whether the other's guide wants this one called before it, where it helps."""
        told = f"{other.description} {other.guide.summary}"
        return bool(re.search(rf"\b(?:use|call)\s+`?{re.escape(self.id)}`?\s+before\b", told, re.IGNORECASE))

    @property
    def parts(self) -> bool:
        """Whether it ends the conversation in which it is called."""
        return bool(_PARTS.match(self.description) or _PARTS.match(self.guide.summary))

    @property
    def finds_records(self) -> bool:
        """Whether its results are records with an id and a title, so that questions can be put to it."""
        return any(_holds_records(result) for result in self.guide.results)

    @property
    def is_open(self) -> bool:
        """Whether any question can be put to it: it needs words alone and finds records."""
        needed = self.required
        return len(needed) == 1 and needed[0].kind is Kind.TEXT and not needed[0].many and self.finds_records

    @property
    def searches_the_web(self) -> bool:
        """Whether it looks for words on the web, as its name or the first sentence about it says."""
        told = f"{spoken_name(self.id)}. {self.purpose}. {self.description.split('. ')[0]}"
        worded = [each.kind for each in self.required] == [Kind.TEXT]
        return worded and bool(_WEB.search(told)) and bool(_SEARCHES.search(told))

    @property
    def wordless(self) -> bool:
        """Whether it takes nothing but times, places, choices and numbers: no word of a question."""
        return all(each.kind in _WITHOUT_WORDS or each.name == "now" for each in self.parameters)

    @property
    def answers(self) -> bool:
        """Whether questions are put to it, as its examples show; without any, they may be."""
        examples = self.guide.examples
        return not examples or any(seeks(each.says) for each in examples)

    @property
    def hands_on(self) -> bool:
        """Whether it needs nothing and takes along what else is wished: the talk goes on elsewhere."""
        texts = [each for each in self.parameters if each.kind is Kind.TEXT and not each.many]
        return not self.required and len(texts) == 1 and texts[0].manner is Manner.SUBSTANCE

    @property
    def composed(self) -> bool:
        """Whether all it needs would have to be thought up, rather than taken from what is said."""
        needed = self.required
        return bool(needed) and all(
            each.manner is Manner.COMPOSED and each.kind in (Kind.TEXT, Kind.LENGTH, Kind.AMOUNT)
            for each in needed
        )


def tools_of(opening: Opening) -> tuple[Tool, ...]:
    """The tools of a session; what is declared in a form that we do not know is left out."""
    return tuple(
        _tool(tool_id, declared, opening.guides.get(tool_id, ""))
        for tool_id, declared in opening.declarations.items()
        if isinstance(declared, Mapping)
    )


def _tool(tool_id: str, declared: Mapping[str, Any], guide_text: str) -> Tool:
    guide = read_guide(guide_text)
    schema = declared.get("parameters", {})
    parameters = tuple(_parameters(schema, guide, ()))
    return Tool(tool_id, str(declared.get("description", "")), guide, parameters)


def _parameters(schema: Mapping[str, Any], guide: Guide, path: tuple[str, ...]) -> Iterator[Parameter]:
    required = schema.get("required", ())
    for name, each in (schema.get("properties") or {}).items():
        if not isinstance(each, Mapping):
            continue
        kind = kind_of(name, each)
        inner = tuple(_parameters(each, guide, (*path, name))) if kind is Kind.OBJECT else ()
        yield Parameter(
            name,
            each,
            kind,
            name in required,
            "items" in each or each.get("type") == "array",
            manner_of(guide, (*path, name)),
            inner,
            path,
        )


def _holds_records(result: Any) -> bool:
    if not isinstance(result, Mapping):
        return False
    return any(
        isinstance(value, list)
        and value
        and isinstance(value[0], Mapping)
        and {"id", "title", "snippet"} <= set(value[0])
        for value in result.values()
    )
