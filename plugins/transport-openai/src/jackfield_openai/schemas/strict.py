"""Shapes in the part of JSON Schema that OpenAI enforces: closed objects that always have every member.

A member that may be left out is declared as null or its own type, with null in front. A member that may be
null by itself has null behind. `restoring` reads that order to tell the two apart.
"""

from __future__ import annotations

from jackfield_schemas import remarks
from jackfield_schemas.joining import join
from jackfield_schemas.shapes import (
    ABSENT,
    About,
    Listing,
    Number,
    Path,
    Record,
    Shape,
    Text,
)
from jackfield_schemas.writing import Written, default_told, heading

from jackfield_openai.schemas.limits import MOST_MEMBERS
from jackfield_openai.schemas.plain import PlainWriter
from jackfield_openai.schemas.restoring import ambiguous

_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}


class NotStrictError(Exception):
    """Strict mode would refuse what the schema accepts."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(why)
        self.path = path
        self.why = why


class StrictWriter(PlainWriter):
    """Writes one tool's parameters, or finds out that they cannot be strict."""

    _members = 0

    def root(self) -> Written:
        """The schema of the arguments."""
        if not self._reading.complete:
            raise NotStrictError((), "parts of the schema are out of reach")
        return super().root()

    def _free(self, shape: Shape) -> Written:
        raise NotStrictError(shape.path, "it knows no value of any kind")

    def _never(self, shape: Shape) -> Written:
        self._losses.add(shape.path, "no value is accepted here; it is declared as null")
        return {"type": "null"}

    def _branches(self, shape: Shape) -> list[Written]:
        # Written out rather than referred to, so that the alternatives can be compared.
        options = tuple(self._reading.expanded(shape.options))
        branches = super()._branches(Shape(options, path=shape.path))
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
        if option.first:
            self.lose(option.path, "prefixItems", told, remarks.in_order(option.first))
            items = join((*option.first, items) if items is not None else (), option.path)
        if items is None or (option.first and option.items is None):
            raise NotStrictError(option.path, "it knows no array of any items")
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
                members[name] = self._member(shape, required=name in option.required)
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
            raise NotStrictError(option.path, f"there are more than {MOST_MEMBERS} members")
        if option.others is None:
            what = "it would close an object that is open; additionalProperties is not set to false"
            raise NotStrictError(option.path, what)
        if not option.others.never:
            raise NotStrictError((*option.path, "additionalProperties"), "it knows no members of other names")

    def _member(self, shape: Shape, *, required: bool) -> Written:
        if required or not shape.null:
            return self.write(shape, null_first=not required)
        if shape.free:
            return self._free(shape)
        # Null and nothing come back as one, which is right only if they mean the same. Alternatives that were
        # made one object have no default any more that could say so.
        if shape.about.default is None and self._reading.exact:
            return self.write(shape)
        what = 'null means something here besides being left out; with "default": null it need not'
        if shape.about.default is None:
            what = "a rule of the schema may tell null from being left out"
        raise NotStrictError(shape.path, what)
