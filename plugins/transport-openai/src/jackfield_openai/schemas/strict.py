"""Shapes in the part of JSON Schema that OpenAI enforces: closed objects that always have every member.

A member that may be left out is declared as null or its own type, with null in front. A member that may be
null by itself has null behind. `restoring` reads that order to tell the two apart.
"""

from __future__ import annotations

from jackfield.strict_json import pointer
from jackfield_schemas import remarks
from jackfield_schemas.joining import join
from jackfield_schemas.shapes import (
    ABSENT,
    About,
    Again,
    Listing,
    Number,
    Option,
    Path,
    Record,
    Shape,
    Text,
)
from jackfield_schemas.writing import Written, default_told, heading

from jackfield_openai.schemas.limits import LONG_ENUM, MOST_LETTERS_OF_LONG_ENUM, MOST_MEMBERS
from jackfield_openai.schemas.plain import MOST_NODES, PlainWriter
from jackfield_openai.schemas.restoring import ambiguous

_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}


_ANY_TYPE = "it accepts values of any type, and strict mode needs a type"


class NotStrictError(Exception):
    """Strict mode would refuse what the schema accepts; `path` is the construct because of which it would."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(why)
        self.path = path
        self.why = why


class StrictWriter(PlainWriter):
    """Writes one tool's parameters, or finds out that they cannot be strict."""

    _members = 0
    _expanding: tuple[Path, ...] = ()

    def root(self) -> Written:
        """The schema of the arguments."""
        if self._reading.missed:
            raise NotStrictError(*self._reading.missed)
        if not self._reading.records():
            raise NotStrictError((), "arguments are an object, and the schema accepts none")
        return super().root()

    def _too_large(self, shape: Shape) -> Shape:  # noqa: ARG002 - the whole is too large, not this part
        raise NotStrictError((), f"written out, the schema has more than {MOST_NODES} parts")

    def _free(self, shape: Shape) -> Written:
        for option in shape.options:
            if option.gap:
                raise NotStrictError(*option.gap)
        raise NotStrictError(shape.path, _ANY_TYPE)

    def _never(self, shape: Shape) -> Written:
        self._losses.add(shape.path, "no value is accepted here; it is declared as null")
        return {"type": "null"}

    def _branches(self, shape: Shape) -> list[Written]:
        # Written out rather than referred to, so that the alternatives can be compared.
        keys = tuple(option.key for option in shape.options if isinstance(option, Again))
        if not set(keys).isdisjoint(self._expanding):
            raise NotStrictError(shape.path, "one of the alternatives contains all of them again")
        options = tuple(self._reading.expanded(shape.options))
        outside, self._expanding = self._expanding, (*self._expanding, *keys)
        branches = super()._branches(Shape(options, path=shape.path))
        self._expanding = outside
        if ambiguous(branches):
            raise NotStrictError(
                shape.path, "it cannot be told which of the alternatives leaves a member out"
            )
        return branches

    def _headed(self, path: Path, about: About, told: list[str], written: Written) -> Written:
        if about.default is not ABSENT and about.default is not None:
            self._losses.add((*path, "default"), "default is left out; the description tells of it")
        if about.examples:
            self._losses.add((*path, "examples"), "examples are left out; the description tells of them")
        head = heading(about, [*told, *default_told(about)])
        # A reference stands alone.
        return head | {"anyOf": [written]} if head and "$ref" in written else head | written

    def text(self, option: Text, told: list[str]) -> Written:
        """A string; its length is only told."""
        values = option.values or ()
        if len(values) > LONG_ENUM and sum(map(len, values)) > MOST_LETTERS_OF_LONG_ENUM:
            limits = f"{LONG_ENUM} values or {MOST_LETTERS_OF_LONG_ENUM} letters"
            raise NotStrictError(option.path, f"the enumeration is longer than {limits}")
        written = super().text(option, told)
        if written.pop("minLength", None) is not None:
            self.lose(option.path, "minLength", told, f"At least {option.min_length} characters.")
        if written.pop("maxLength", None) is not None:
            self.lose(option.path, "maxLength", told, f"At most {option.max_length} characters.")
        if option.format is not None and (option.format not in _FORMATS or option.values is not None):
            del written["format"]
            self.lose(option.path, "format", told, f"Format: {option.format}.")
        written.pop("pattern", None)
        self.pattern(option, written, told)
        return written

    def number(self, option: Number, told: list[str]) -> Written:
        """A number, without a format."""
        written = super().number(option, told)
        if written.pop("format", None) is not None:
            self.lose(option.path, "format", told, f"Format: {option.format}.")
        return written

    def listing(self, option: Listing, told: list[str]) -> Written:
        """An array, whose items are all of one shape."""
        items, most = option.items, option.max_items
        closed = items is not None and items.never
        if closed:
            most = len(option.first) if most is None else min(most, len(option.first))
        if items is None:
            self._reject_wider(option)
            raise NotStrictError(
                option.path, "`items` is not set, and strict mode needs the type of all items"
            )
        if option.first:
            self.lose(option.path, "prefixItems", told, remarks.in_order(option.first))
            for shape in (*option.first, items):
                if shape.free:
                    self._free(shape)
            items = join((*option.first, items), option.path)
        written: Written = {"type": "array", "items": self.write(items)}
        if option.min_items is not None:
            written["minItems"] = option.min_items
        if most is not None:
            written["maxItems"] = most
        if option.unique:
            self.lose(option.path, "uniqueItems", told, "No item may occur twice.")
        return written

    def record(self, option: Record, told: list[str]) -> Written:
        """A closed object that has every member, those that may be left out as null."""
        self._check(option)
        members: Written = {}
        for name, shape in option.members.items():
            if shape.never:
                self._losses.add(shape.path, "the member is left out: no value is accepted")
            else:
                members[name] = self._member(shape, option, required=name in option.required)
        if option.min_members is not None:
            self.lose(option.path, "minProperties", told, f"At least {option.min_members} members.")
        if option.max_members is not None:
            self.lose(option.path, "maxProperties", told, f"At most {option.max_members} members.")
        return {
            "type": "object",
            "properties": members,
            "required": list(members),
            "additionalProperties": False,
        }

    def _check(self, option: Record) -> None:
        self._members += len(option.members)
        if self._members > MOST_MEMBERS:
            raise NotStrictError((), f"written out, the schema has more than {MOST_MEMBERS} members")
        if option.others is None:
            self._reject_wider(option)
            what = "it would close an object that is open; additionalProperties is not set to false"
            raise NotStrictError(option.path, what)
        if not option.others.never:
            place = option.others.path
            which = (
                "by the pattern of their name" if place[-1:] == ("patternProperties",) else "of other names"
            )
            raise NotStrictError(place, f"it knows no members {which}")

    def _reject_wider(self, option: Option) -> None:
        """Name what is wrong with an open array or object where that is not that it is open."""
        if option.gap:
            raise NotStrictError(*option.gap)
        # The root is an object anyway.
        if option.untyped and option.path:
            raise NotStrictError(option.path, _ANY_TYPE)

    def _member(self, shape: Shape, record: Record, *, required: bool) -> Written:
        if required or not shape.null:
            return self.write(shape, null_first=not required)
        if shape.free:
            return self._free(shape)
        # Null and nothing come back as one, which is right only if they mean the same. Alternatives that were
        # made one object have no default any more that could say so.
        widened = self._reading.widened
        if record is self._alternatives:
            what = f"alternatives of the whole become one object, in which a null at {pointer(*shape.path)}"
            raise NotStrictError((), f"{what} and its absence cannot be told apart")
        if shape.about.default is not None:
            what = "null means something here besides being left out"
            hint = "" if widened else '; with "default": null it need not'
            raise NotStrictError(shape.path, what + hint)
        if widened:
            place = pointer(*shape.path)
            what = f"by this rule a null at {place} may be something else than its absence ({widened.why})"
            raise NotStrictError(widened.path, what)
        return self.write(shape)
