"""A tool as the agent sees it, and the kind of value that each parameter takes, by its JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any

from jackfield.registry.arguments import resolve
from jackfield.transport.protocol import ConnectionConfig

from jackfield_local.guide import Example, Guide, read_guide
from jackfield_local.language.words import content, name_words, spoken_name


class Kind(Enum):
    """A kind of value; each is found in the user's words in its own way."""

    DATE_TIME = "date and time"
    DATE = "date"
    TIME = "time"
    MOMENT = "date or time"
    NUMBER = "number"
    DURATION = "length of time"
    CHOICE = "choice"
    SWITCH = "true or false"
    CURRENCY = "currency code"
    LANGUAGE = "language code"
    TERRITORY = "country code"
    ZONE = "time zone"
    EMAIL = "e-mail"
    URL = "URL"
    IDENTIFIER = "id"
    TEXT = "text"
    RECORDS = "records"


TEMPORAL = frozenset((Kind.DATE_TIME, Kind.DATE, Kind.TIME, Kind.MOMENT))
CODES = frozenset((Kind.CURRENCY, Kind.LANGUAGE, Kind.TERRITORY, Kind.ZONE))

_FORMATS = {
    "date-time": Kind.DATE_TIME,
    "date": Kind.DATE,
    "time": Kind.TIME,
    "email": Kind.EMAIL,
    "uri": Kind.URL,
    "uuid": Kind.IDENTIFIER,
}
_STANDARDS = (
    (re.compile(r"\bIANA\b"), Kind.ZONE),
    (re.compile(r"\bISO[ -]?4217\b", re.IGNORECASE), Kind.CURRENCY),
    (re.compile(r"\bISO[ -]?3166\b", re.IGNORECASE), Kind.TERRITORY),
    (re.compile(r"\bISO[ -]?639\b|\bBCP[ -]?47\b", re.IGNORECASE), Kind.LANGUAGE),
    (re.compile(r"\bISO[ -]?8601\b", re.IGNORECASE), Kind.MOMENT),
    (re.compile(r"\bHH:MM\b", re.IGNORECASE), Kind.TIME),
    (re.compile(r"\bYYYY-MM-DD\b", re.IGNORECASE), Kind.DATE),
    (re.compile(r"\bhttps?://"), Kind.URL),
)
_UNITS = {
    "milliseconds": 0.001,
    "ms": 0.001,
    "seconds": 1.0,
    "minutes": 60.0,
    "hours": 3600.0,
    "days": 86_400.0,
    "weeks": 604_800.0,
}
_BEGINNINGS = frozenset(("start", "begin", "from", "since", "after", "starts", "begins"))
_ENDINGS = frozenset(("end", "until", "till", "to", "before", "ends", "finish"))


@dataclass(frozen=True, eq=False)
class Parameter:
    """One parameter; for a list, `kind` is the kind of its members."""

    name: str
    """A member of an object has its path, such as `term.length`."""

    schema: Mapping[str, Any]
    required: bool
    kind: Kind
    many: bool

    @property
    def description(self) -> str:
        """What the schema says about it."""
        return str(self.schema.get("description") or self._items.get("description") or "")

    @property
    def summary(self) -> str:
        """The first sentence of the description."""
        return first_sentence(self.description)

    @property
    def choices(self) -> list[Any]:
        """The values of an enum, of the parameter or of its members."""
        return list(self._items.get("enum") or self.schema.get("enum") or ())

    @property
    def pattern(self) -> str:
        """The regular expression that the schema demands."""
        return str(self._items.get("pattern") or "")

    @property
    def integral(self) -> bool:
        """Whether only whole numbers will do."""
        return "integer" in _types(self._items)

    @property
    def unit_seconds(self) -> float:
        """The seconds in the unit of a length of time."""
        return _unit(self.name, self.description) or 1.0

    @property
    def starts(self) -> bool:
        """Whether it is the beginning of a time span."""
        return bool(_BEGINNINGS & set(name_words(self.name)))

    @property
    def ends(self) -> bool:
        """Whether it is the end of a time span."""
        return bool(_ENDINGS & set(name_words(self.name)))

    @property
    def spoken(self) -> str:
        """Its name as a person would say it."""
        return " of the ".join(spoken_name(each) for each in reversed(self.name.split(".")))

    @cached_property
    def _items(self) -> Mapping[str, Any]:
        items = self.schema.get("items")
        return items if self.many and isinstance(items, Mapping) else self.schema


@dataclass(frozen=True, eq=False)
class Tool:
    """One tool of a session."""

    id: str
    description: str
    guide: Guide
    parameters: tuple[Parameter, ...]
    writes: bool = False
    """Whether it changes something."""

    confirmed: bool = False
    """Whether each call waits for the user's approval."""

    @property
    def purpose(self) -> str:
        """The first sentence of the description."""
        return first_sentence(self.description)

    @cached_property
    def required(self) -> tuple[Parameter, ...]:
        """What it cannot be called without, in the order of the guide's first example."""
        shown = [*self.guide.examples[0].args] if self.guide.examples else []
        needed = [each for each in self.parameters if each.required]
        needed.sort(key=lambda each: shown.index(each.name) if each.name in shown else len(shown))
        return tuple(needed)

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """The stems with which the tool speaks of itself: these say nothing about a value."""
        texts = [self.description, spoken_name(self.id)]
        texts += [f"{each.spoken} {each.summary}" for each in self.parameters]
        return frozenset(stem for text in texts for stem in content(text))

    def parameter(self, name: str) -> Parameter | None:
        """The parameter of this name."""
        return next((each for each in self.parameters if each.name == name), None)


def first_sentence(text: str) -> str:
    """The first sentence of a description, without its full stop; "e.g." ends none."""
    return re.split(r"(?<![ (][a-z]\.[a-z]\.)(?<=[.!?])\s", text.strip(), maxsplit=1)[0].rstrip(".")


def tools_of(opening: ConnectionConfig) -> tuple[Tool, ...]:
    """The tools of a session, in the order of their ids, which does not depend on the session."""
    tools = []
    for tool_id, declared in sorted(opening.declarations.items()):
        if not isinstance(declared, Mapping):
            continue
        parameters = tuple(_parameters(declared.get("parameters") or {}))
        guide = read_guide(opening.guides.get(tool_id, ""))
        examples = tuple(Example(each.says, flat(each.args, parameters)) for each in guide.examples)
        effects = tool_id in opening.writers, tool_id in opening.confirmed
        described = str(declared.get("description", ""))
        tools.append(Tool(tool_id, described, replace(guide, examples=examples), parameters, *effects))
    return tuple(tools)


def flat(args: Mapping[str, Any], parameters: Sequence[Parameter], path: str = "") -> dict[str, Any]:
    """Arguments with the members of objects by their paths; an object without known members stays whole."""
    found: dict[str, Any] = {}
    for name, value in args.items():
        inner = f"{path}{name}."
        if isinstance(value, Mapping) and any(each.name.startswith(inner) for each in parameters):
            found |= flat(value, parameters, inner)
        else:
            found[f"{path}{name}"] = value
    return found


def nested(args: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as the schema has them, with objects again."""
    found: dict[str, Any] = {}
    for name, value in args.items():
        *path, last = name.split(".")
        place = found
        for each in path:
            place = place.setdefault(each, {})
        place[last] = value
    return found


def text_only_tools(opening: ConnectionConfig) -> tuple[Tool, ...]:
    """The tools that a voice session lacks; they are only told apart, and never called."""
    guides = {tool_id: read_guide(text) for tool_id, text in sorted(opening.text_only.items())}
    return tuple(
        Tool(name, guide.summary, guide, (), name in opening.writers) for name, guide in guides.items()
    )


def _parameters(
    schema: Mapping[str, Any], path: str = "", *, needed: bool = True, root: Mapping[str, Any] | None = None
) -> Iterator[Parameter]:
    root = schema if root is None else root
    required, properties = schema.get("required") or (), schema.get("properties")
    for name, given in properties.items() if isinstance(properties, Mapping) else ():
        each = _resolved(given, root)
        must = needed and name in required
        if "object" in _types(each) and each.get("properties"):
            yield from _parameters(each, f"{path}{name}.", needed=must, root=root)
        elif isinstance(given, Mapping):
            yield Parameter(f"{path}{name}", each, must, kind_of(name, each), "array" in _types(each))


def _resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema with its reference followed, and without the null of an optional value."""
    if not isinstance(schema, Mapping):
        return {}
    rest = {key: value for key, value in schema.items() if key not in ("$ref", "anyOf")}
    if isinstance(reference := schema.get("$ref"), str):
        with suppress(LookupError, TypeError, ValueError):
            return {**resolve(root, reference), **rest}
        return rest
    branches = [each for each in schema.get("anyOf") or () if each != {"type": "null"}]
    return {**_resolved(branches[0], root), **rest} if len(branches) == 1 else schema


def kind_of(name: str, schema: Mapping[str, Any]) -> Kind:
    """The kind of a value; of a list, the kind of its members."""
    types, described = _types(schema), str(schema.get("description", ""))
    if "array" in types:
        items = schema.get("items")
        return kind_of(name, {"description": described, **items}) if isinstance(items, Mapping) else Kind.TEXT
    is_id = name_words(name)[-1:] in (["id"], ["ids"], ["uid"])
    number = Kind.DURATION if _unit(name, described) else Kind.NUMBER
    signs = (
        Kind.CHOICE if "enum" in schema else None,
        Kind.RECORDS if "object" in types else None,
        Kind.SWITCH if "boolean" in types else None,
        number if types & {"integer", "number"} else None,
        _FORMATS.get(str(schema.get("format", ""))),
        *(kind for sign, kind in _STANDARDS if sign.search(described)),
        _kind_of_pattern(str(schema["pattern"])) if schema.get("pattern") else None,
        Kind.IDENTIFIER if is_id else Kind.TEXT,
    )
    return next(filter(None, signs))


def _kind_of_pattern(pattern: str) -> Kind:
    """A pattern that takes a sentence is a text; one that takes only a clock time or a day is that."""
    samples = {
        "some words": Kind.TEXT,
        "words": Kind.IDENTIFIER,
        "19:30": Kind.TIME,
        "2026-03-04": Kind.DATE,
    }
    try:
        fits = [kind for sample, kind in samples.items() if re.search(pattern, sample)]
    except re.error:
        return Kind.TEXT
    return fits[0] if len(fits) == 1 or Kind.TEXT in fits else Kind.IDENTIFIER


def _unit(name: str, described: str) -> float | None:
    """The seconds in a unit of time that the name has, or the description after "in"."""
    named = [*name_words(name), *re.findall(r"\bin (\w+)", described.lower())[:1]]
    return next((_UNITS[word] for word in named if word in _UNITS), None)


def _types(schema: Mapping[str, Any]) -> set[str]:
    given = schema.get("type")
    return set(given) if isinstance(given, list) else {str(given)}
