"""Tools as the agent sees them: their typed parameters, and the examples of their guides."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple

from jackfield.registry.arguments import resolve
from jackfield.transport.protocol import ConnectionConfig
from jackfield_language.numbers import UNITS
from jackfield_language.text import MARKDOWN
from jackfield_language.words import content, name_words, spoken_name

_LONGEST_GUIDE = 100_000


class ValueType(Enum):
    """The type of a value, which determines how the value is found in the user's words."""

    DATE_TIME = "date and time"
    DATE = "date"
    TIME = "time"
    DATE_OR_TIME = "date or time"
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


TEMPORAL = frozenset((ValueType.DATE_TIME, ValueType.DATE, ValueType.TIME, ValueType.DATE_OR_TIME))
CODES = frozenset((ValueType.CURRENCY, ValueType.LANGUAGE, ValueType.TERRITORY, ValueType.ZONE))

_FORMATS = {
    "date-time": ValueType.DATE_TIME,
    "date": ValueType.DATE,
    "time": ValueType.TIME,
    "email": ValueType.EMAIL,
    "uri": ValueType.URL,
    "uuid": ValueType.IDENTIFIER,
}
_STANDARDS = (
    (re.compile(r"\bIANA\b"), ValueType.ZONE),
    (re.compile(r"\bISO[ -]?4217\b", re.IGNORECASE), ValueType.CURRENCY),
    (re.compile(r"\bISO[ -]?3166\b", re.IGNORECASE), ValueType.TERRITORY),
    (re.compile(r"\bISO[ -]?639\b|\bBCP[ -]?47\b", re.IGNORECASE), ValueType.LANGUAGE),
    (re.compile(r"\bISO[ -]?8601\b", re.IGNORECASE), ValueType.DATE_OR_TIME),
    (re.compile(r"\bHH:MM\b", re.IGNORECASE), ValueType.TIME),
    (re.compile(r"\bYYYY-MM-DD\b", re.IGNORECASE), ValueType.DATE),
    (re.compile(r"\bhttps?://"), ValueType.URL),
)
_UNITS = {f"{unit}s": float(seconds) for unit, seconds in UNITS.items()}
_UNITS |= {"milliseconds": 0.001, "ms": 0.001}
_BEGINNINGS = frozenset(("start", "begin", "from", "since", "after", "starts", "begins"))
_ENDINGS = frozenset(("end", "until", "till", "to", "before", "ends", "finish"))


@dataclass(eq=False)
class ToolParameter:
    """One parameter; for a list, `type` is the type of its members."""

    name: str  # Members of an object have a path, such as `term.length`.
    schema: Mapping[str, Any]
    required: bool
    type: ValueType
    many: bool

    description: str = field(init=False)
    summary: str = field(init=False)  # The first sentence of the description.
    choices: list[Any] = field(init=False)  # The values of an enum, of the parameter or of its members.
    pattern: str = field(init=False)
    unit_seconds: float = field(init=False)  # Seconds in the unit of a duration.
    starts: bool = field(init=False)  # Whether it is the beginning of a time range,
    ends: bool = field(init=False)  # or its end.
    spoken: str = field(init=False)  # Its name as a person would say it.

    def __post_init__(self) -> None:
        items = self.schema.get("items")
        items = items if self.many and isinstance(items, Mapping) else self.schema
        named = {*name_words(self.name)}
        self.description = str(self.schema.get("description") or items.get("description") or "")
        self.summary = first_sentence(self.description)
        self.choices = list(items.get("enum") or self.schema.get("enum") or ())
        self.pattern = str(items.get("pattern") or "")
        self.unit_seconds = _unit(self.name, self.description) or 1.0
        self.starts, self.ends = not named.isdisjoint(_BEGINNINGS), not named.isdisjoint(_ENDINGS)
        self.spoken = " of the ".join(spoken_name(each) for each in reversed(self.name.split(".")))


class ExampleRequest(NamedTuple):
    """A user's request, and the arguments that follow from it."""

    says: str
    args: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Tool:
    """One tool of a session."""

    id: str
    description: str
    parameters: tuple[ToolParameter, ...]
    examples: tuple[ExampleRequest, ...] = ()
    writes: bool = False  # Whether it has side effects.
    confirmed: bool = False  # Whether each call waits for the user's approval.

    @property
    def purpose(self) -> str:
        """The first sentence of the description."""
        return first_sentence(self.description)

    @cached_property
    def required(self) -> tuple[ToolParameter, ...]:
        """The required parameters, in the order of the guide's first example."""
        shown = [*self.examples[0].args] if self.examples else []
        needed = [each for each in self.parameters if each.required]
        needed.sort(key=lambda each: shown.index(each.name) if each.name in shown else len(shown))
        return tuple(needed)

    @property
    def written(self) -> tuple[ToolParameter, ...]:
        """The parameters that a model writes: all but records, which are passed on without the model."""
        return tuple(each for each in self.parameters if each.type is not ValueType.RECORDS)

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """The stems of the tool's own words, which are never part of a value."""
        texts = [self.description, spoken_name(self.id)]
        texts += [f"{each.spoken} {each.summary}" for each in self.parameters]
        return frozenset(stem for text in texts for stem in content(text))

    def parameter(self, name: str) -> ToolParameter | None:
        """Return the parameter with this name."""
        return next((each for each in self.parameters if each.name == name), None)


def first_sentence(text: str) -> str:
    """Return the first sentence of a description, without its full stop; "e.g." does not end a sentence."""
    return re.split(r"(?<![ (][a-z]\.[a-z]\.)(?<=[.!?])\s", text.strip(), maxsplit=1)[0].rstrip(".")


def tools_of(opening: ConnectionConfig) -> tuple[Tool, ...]:
    """Return the tools of a session, sorted by id, so that the order does not depend on the session."""
    tools = []
    for tool_id, declared in sorted(opening.declarations.items()):
        if not isinstance(declared, Mapping):
            continue
        parameters = tuple(_parameters(declared.get("parameters") or {}))
        _, examples = read_guide(opening.guides.get(tool_id, ""))
        examples = tuple(ExampleRequest(each.says, flatten(each.args, parameters)) for each in examples)
        effects = tool_id in opening.writers, tool_id in opening.confirmed
        tools.append(Tool(tool_id, str(declared.get("description", "")), parameters, examples, *effects))
    return tuple(tools)


def text_only_tools(opening: ConnectionConfig) -> tuple[Tool, ...]:
    """Return the tools that a voice session lacks; they are recognised but never called."""
    guides = {tool_id: read_guide(text) for tool_id, text in sorted(opening.text_only.items())}
    return tuple(
        Tool(name, summary, (), examples, name in opening.writers)
        for name, (summary, examples) in guides.items()
    )


def read_guide(text: str) -> tuple[str, tuple[ExampleRequest, ...]]:
    """Read the summary and the examples of a guide; entries that cannot be parsed are skipped."""
    summary, said, inside = "", "", ""
    examples: list[ExampleRequest] = []
    for token in MARKDOWN.parse(text[:_LONGEST_GUIDE]):
        if token.type == "fence" and token.info.strip().lower() == "json":
            with suppress(ValueError):
                value = json.loads(token.content)
                if isinstance(value, dict) and said:
                    examples.append(ExampleRequest(said, value))
        elif token.type == "inline" and inside == "heading_open":
            said = ""
        elif token.type == "inline":
            said = " ".join(token.content.split())
            summary = summary or said
        inside = token.type
    return summary, tuple(examples)


def flatten(args: Mapping[str, Any], parameters: Sequence[ToolParameter], path: str = "") -> dict[str, Any]:
    """Return flattened arguments, keyed by path; an object without known members is kept whole."""
    found: dict[str, Any] = {}
    for name, value in args.items():
        inner = f"{path}{name}."
        if isinstance(value, Mapping) and any(each.name.startswith(inner) for each in parameters):
            found |= flatten(value, parameters, inner)
        else:
            found[f"{path}{name}"] = value
    return found


def nest(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return flattened arguments as nested objects, as in the schema."""
    found: dict[str, Any] = {}
    for name, value in args.items():
        *path, last = name.split(".")
        place = found
        for each in path:
            place = place.setdefault(each, {})
        place[last] = value
    return found


def _parameters(
    schema: Mapping[str, Any], path: str = "", *, needed: bool = True, root: Mapping[str, Any] | None = None
) -> Iterator[ToolParameter]:
    root = schema if root is None else root
    required, properties = schema.get("required") or (), schema.get("properties")
    for name, given in properties.items() if isinstance(properties, Mapping) else ():
        each = _resolved(given, root)
        must = needed and name in required
        if "object" in _types(each) and each.get("properties"):
            yield from _parameters(each, f"{path}{name}.", needed=must, root=root)
        elif isinstance(given, Mapping):
            yield ToolParameter(f"{path}{name}", each, must, value_type(name, each), "array" in _types(each))


def _resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema with its reference resolved, and without the null of an optional value."""
    if not isinstance(schema, Mapping):
        return {}
    rest = {key: value for key, value in schema.items() if key not in ("$ref", "anyOf")}
    if isinstance(reference := schema.get("$ref"), str):
        with suppress(LookupError, TypeError, ValueError):
            return {**resolve(root, reference), **rest}
        return rest
    branches = [each for each in schema.get("anyOf") or () if each != {"type": "null"}]
    return {**_resolved(branches[0], root), **rest} if len(branches) == 1 else schema


def value_type(name: str, schema: Mapping[str, Any]) -> ValueType:
    """Return the type of a value; for a list, the type of its members."""
    types, described = _types(schema), str(schema.get("description", ""))
    if "array" in types:
        items = schema.get("items")
        if not isinstance(items, Mapping):
            return ValueType.TEXT
        return value_type(name, {"description": described, **items})
    is_id = name_words(name)[-1:] in (["id"], ["ids"], ["uid"])
    number = ValueType.DURATION if _unit(name, described) else ValueType.NUMBER
    signs = (
        ValueType.CHOICE if "enum" in schema else None,
        ValueType.RECORDS if "object" in types else None,
        ValueType.SWITCH if "boolean" in types else None,
        number if types & {"integer", "number"} else None,
        _FORMATS.get(str(schema.get("format", ""))),
        *(found for sign, found in _STANDARDS if sign.search(described)),
        _type_of_pattern(str(schema["pattern"])) if schema.get("pattern") else None,
        ValueType.IDENTIFIER if is_id else ValueType.TEXT,
    )
    return next(filter(None, signs))


def _type_of_pattern(pattern: str) -> ValueType:
    """Return the type of the values that a pattern matches: sentences, clock times, days, or else ids."""
    samples = {
        "some words": ValueType.TEXT,
        "words": ValueType.IDENTIFIER,
        "19:30": ValueType.TIME,
        "2026-03-04": ValueType.DATE,
    }
    try:
        fits = [found for sample, found in samples.items() if re.search(pattern, sample)]
    except re.error:
        return ValueType.TEXT
    return fits[0] if len(fits) == 1 or ValueType.TEXT in fits else ValueType.IDENTIFIER


def _unit(name: str, described: str) -> float | None:
    """Return the seconds in a unit of time in the name, or in the description after "in"."""
    named = [*name_words(name), *re.findall(r"\bin (\w+)", described.lower())[:1]]
    return next((_UNITS[word] for word in named if word in _UNITS), None)


def _types(schema: Mapping[str, Any]) -> set[str]:
    given = schema.get("type")
    return set(given) if isinstance(given, list) else {str(given)}
