"""All arguments of a call: the exact ones first, so that what is left of the utterance is for the texts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import jsonschema_rs

from jackfield_local.guide import Example
from jackfield_local.language.spans import Span
from jackfield_local.language.words import content, stem, words
from jackfield_local.planner.filling import amounts, by_example, choices, nested, people, texts, times
from jackfield_local.planner.filling.written import written
from jackfield_local.planner.heard import Heard
from jackfield_local.planner.language import places
from jackfield_local.planner.reading.kinds import Kind
from jackfield_local.planner.reading.tool import Parameter, Tool
from jackfield_local.planner.remembered import Remembered

_CHANGE = frozenset(map(stem, ("changed", "since", "modified", "edited", "updated", "new", "recent")))


@dataclass
class Filled:
    """The arguments that were found, and what is missing."""

    args: dict[str, Any] = field(default_factory=dict)
    missing: list[Parameter] = field(default_factory=list)
    begun: dict[str, Any] = field(default_factory=dict)
    """Objects of which a part is known and a part is missing."""

    @property
    def known(self) -> dict[str, Any]:
        """All that was found, whether it is whole or not."""
        return {**self.args, **self.begun}


class Filler:
    """Fills the arguments of one tool from one utterance."""

    def __init__(
        self, tool: Tool, heard: Heard, remembered: Remembered, *, zone: str, alike: Sequence[float]
    ) -> None:
        self._tool = tool
        self._heard = heard
        self._remembered = remembered
        self._zone = zone
        self._alike = alike
        self._args: dict[str, Any] = {}
        self._taken: list[Span] = []
        self._claimed: list[Span] = []

    def fill(self, known: Mapping[str, Any] | None = None) -> Filled:
        """Arguments in the order in which they can be told apart; `known` ones are kept unless said anew."""
        self._from_item()
        self._exact(self._tool.parameters)
        for parameter, value, spans in written(self._tool, self._heard):
            self._put(parameter, value, spans)
        self._times(self._tool.parameters)
        self._amounts(known or {}, alone=False)
        self._counted(known or {})
        self._amounts(known or {}, alone=True)
        self._unwanted()
        self._nested()
        self._chosen()
        self._texts()
        self._people(known or {})
        self._by_example()
        return self._checked(nested.merged(known or {}, self._args))

    def _from_item(self) -> None:
        item = self._remembered.referred(self._heard.request)
        for parameter in self._tool.parameters:
            if parameter.kind is Kind.RECORDS and self._remembered.items:
                self._args[parameter.name] = _records(parameter, self._remembered.items)
            elif item is not None and (found := self._remembered.gives(item, parameter)) is not None:
                self._args[parameter.name] = found

    def _exact(self, parameters: Sequence[Parameter]) -> None:
        heard = self._heard
        sources = {Kind.EMAIL: heard.emails, Kind.URL: heard.urls, Kind.ID: heard.ids}
        for parameter in parameters:
            found = sources.get(parameter.kind)
            if found:
                written = [each.text for each in found]
                self._put(parameter, written if parameter.many else written[0], [each.span for each in found])
            elif (parameter.kind is Kind.COUNTRY and (named := places.countries(heard.request))) or (
                parameter.kind is Kind.LOCALE and (named := places.locales(heard.request))
            ):
                self._put(parameter, named[0].name, [])

    def _times(self, parameters: Sequence[Parameter]) -> None:
        heard = self._heard
        spans = list(heard.when.spans) if heard.when else []
        pair = times.bounds(parameters)
        if pair is not None:
            self._args |= times.bounded(self._tool, self._on_its_day(pair[0]), pair)
            self._taken += spans + ([heard.length.span] if heard.length else [])
        else:
            point = next((each for each in parameters if each.kind is Kind.MOMENT), None)
            zoned = any(each.kind is Kind.ZONE for each in parameters)
            if point is not None and (found := times.moment(point, heard, zoned=zoned)) is not None:
                self._put(point, found, spans)
        for parameter in parameters:
            if parameter.kind is Kind.LENGTH and (amount := times.length(parameter, heard)) is not None:
                self._put(parameter, amount, [heard.length.span] if heard.length else [])
        said = times.zones(parameters, heard, self._zone)
        self._args |= said
        self._taken += [each.span for each in heard.zones] if said else []

    def _on_its_day(self, begin: Parameter) -> Heard:
        """What was said; of a result that is meant the day counts, and its hour only where none was said."""
        taken, when = self._args.get(begin.name), self._heard.when
        if taken is None or when is None:
            return self._heard
        if not when.exact:
            return replace(self._heard, text="")
        return replace(self._heard, spoken_of=datetime.fromisoformat(taken).date(), same_day=True)

    def _counted(self, known: Mapping[str, Any]) -> None:
        given = amounts.given(self._tool, known)
        free = [
            each
            for each in self._heard.numbers
            if each.value not in given and not any(each.span.overlaps(span) for span in self._taken)
        ]
        for parameter in self._tool.parameters:
            if parameter.kind is Kind.COUNT and parameter.name not in self._args:
                low, high = parameter.schema.get("minimum", 0), parameter.schema.get("maximum", 1000)
                for number in free:
                    if (
                        number.value.is_integer()
                        and low <= number.value <= high
                        and self._counts(number.span)
                    ):
                        self._put(parameter, int(number.value), [number.span])
                        break

    def _counts(self, span: Span) -> bool:
        """Whether a number says how many are wanted: it stands near the beginning, or says so."""
        before = self._heard.request[: span.start]
        return len(words(before)) <= 5 or bool(re.search(r"\b(?:top|only|just|at most|up to)\s+$", before))

    def _amounts(self, known: Mapping[str, Any], *, alone: bool) -> None:
        given = nested.merged(known, self._args)
        find = amounts.left_alone if alone else amounts.found
        for parameter, value, span in find(self._tool, self._heard, self._taken, given):
            nested.put(self._args, parameter.path, value)
            self._taken.append(span)

    def _chosen(self) -> None:
        for parameter in self._tool.parameters:
            if parameter.kind is Kind.CHOICE:
                found = choices.chosen(parameter, self._tool, self._heard, self._claimed)
                if found:
                    said = [value for value, _ in found]
                    spans = [
                        span
                        for _, span in found
                        if span and not choices.is_a_thing(parameter, self._heard, span)
                    ]
                    self._claimed += spans
                    self._put(parameter, said if parameter.many else said[0], spans)
            elif self._switched_on(parameter):
                self._args[parameter.name] = True

    def _switched_on(self, parameter: Parameter) -> bool:
        off = parameter.kind is Kind.SWITCH and not parameter.schema.get("default")
        return off and choices.switched_on(parameter, self._tool, self._heard)

    def _unwanted(self) -> None:
        parameter = self._tool.takes(Kind.UNWANTED)
        if parameter is not None:
            found, spans = texts.unwanted(self._heard)
            if found:
                self._put(parameter, found if parameter.many else ", ".join(found), spans)

    def _nested(self) -> None:
        """Values inside an object narrow things down: they are taken only where they are asked for."""
        for parameter in self._tool.parameters:
            if parameter.kind is Kind.OBJECT and (inner := self._inside(parameter)):
                self._args = nested.merged(self._args, {parameter.name: inner})

    def _inside(self, outer: Parameter) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for parameter in outer.children:
            if parameter.kind is Kind.CHOICE:
                said = self._member(outer, parameter)
                if said:
                    self._claimed += [span for _, span in said]
                    found[parameter.name] = [value for value, _ in said] if parameter.many else said[0][0]
            elif parameter.kind is Kind.OBJECT and (inner := self._inside(parameter)):
                found[parameter.name] = inner
        pair = times.bounds(outer.children)
        told = set(content(outer.description)) | _CHANGE
        if pair is not None and self._heard.when is not None and self._heard.content & told:
            found |= times.bounded(self._tool, self._heard, pair)
        return found

    def _member(self, outer: Parameter, parameter: Parameter) -> list[tuple[str, Span]]:
        """A choice inside an object; where neither can be left out, any word for it will do."""
        if not (outer.required and parameter.required):
            return choices.asked_for(parameter, self._heard)
        said = choices.chosen(parameter, self._tool, self._heard, self._claimed)
        return [(value, span) for value, span in said if span is not None]

    def _texts(self) -> None:
        spoken = texts.Spoken(self._tool, self._heard, self._taken)
        named, places_named = None, None
        plain = [each for each in self._tool.parameters if each.kind is Kind.TEXT and not each.many]
        for parameter in self._tool.parameters:
            if parameter.name in self._args:
                continue
            found: str | None = None
            if parameter.kind is Kind.NAME:
                if named is None or places_named is None:
                    named, places_named = spoken.names()
                found = next(iter(named if parameter.required else places_named), None)
            elif parameter in plain:
                if parameter.required:
                    found = spoken.text(parameter)
                elif self._tool.hands_on:
                    found = texts.besides(self._tool, self._heard)
                else:
                    found = spoken.optional(parameter)
            if found:
                limit = parameter.schema.get("maxLength")
                self._args[parameter.name] = texts.cut(found, [limit] if isinstance(limit, int) else [])

    def _people(self, known: Mapping[str, Any]) -> None:
        given = nested.merged(known, self._args)
        for parameter, value in people.found(self._tool, self._heard, self._taken, given):
            nested.put(self._args, parameter.path, value)

    def _by_example(self) -> None:
        nearest = by_example.nearest(self._tool, self._alike)
        for parameter in self._tool.parameters:
            if parameter.name in self._args:
                continue
            if parameter.required and parameter.kind is Kind.CHOICE and nearest is not None:
                self._args[parameter.name] = nearest.args.get(parameter.name)
                continue
            value = by_example.settled(parameter, self._tool, self._alike, self._heard.content)
            if value is not None:
                self._args[parameter.name] = value
        if self._tool.composed and nearest is not None:
            self._compose(nearest)

    def _compose(self, example: Example) -> None:
        # What has to be thought up is taken whole from the guide, where its parts go together.
        for parameter in self._tool.required:
            self._args[parameter.name] = example.args.get(parameter.name)

    def _put(self, parameter: Parameter, value: Any, spans: Sequence[Span]) -> None:
        self._args.setdefault(parameter.name, value)
        self._taken += spans

    def _checked(self, args: Mapping[str, Any]) -> Filled:
        """What its schema does not take is dropped; what is then missing is asked for."""
        filled = Filled()
        for parameter in self._tool.parameters:
            value = args.get(parameter.name)
            if value is not None and jsonschema_rs.is_valid(
                dict(parameter.schema), value, validate_formats=True
            ):
                filled.args[parameter.name] = value
            elif parameter.required:
                filled.missing += nested.lacking(parameter, value)
                if parameter.kind is Kind.OBJECT and isinstance(value, dict):
                    filled.begun[parameter.name] = value
        # When it is to be is what a person asks first.
        filled.missing.sort(key=lambda each: each.kind is not Kind.MOMENT)
        return filled


def _records(parameter: Parameter, items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Results in the form that another tool takes: the members that it knows, where they are right."""
    schema = parameter.schema.get("items")
    members = schema.get("properties", {}) if isinstance(schema, Mapping) else {}
    records = []
    for item in items:
        kept = {
            name: item[name]
            for name, each in members.items()
            if item.get(name) is not None and jsonschema_rs.is_valid(dict(each), item[name])
        }
        if all(name in kept for name in schema.get("required", ())) if isinstance(schema, Mapping) else kept:
            records.append(kept)
    return records
