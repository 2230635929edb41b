"""Entities that can be found in a text, with their position and reported form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

Kind = Literal["emails", "phones", "urls", "names"]
KINDS: tuple[Kind, ...] = ("emails", "phones", "urls", "names")


@dataclass(frozen=True, slots=True)
class Entity:
    """A piece of the text: `text` as written, between two offsets in code points."""

    kind: ClassVar[Kind]

    start: int
    end: int
    text: str

    @property
    def value(self) -> str:
        """The normalised form, by which contacts refer to the entity."""
        raise NotImplementedError

    @property
    def key(self) -> str:
        """The key that equal entities of the same kind share."""
        return self.value.casefold()

    def describe(self) -> dict[str, Any]:
        """Return the entity as the result shows it, without its positions."""
        raise NotImplementedError

    def _as_written(self) -> dict[str, str]:
        return {} if self.text == self.value else {"text": self.text}


@dataclass(frozen=True, slots=True)
class Email(Entity):
    """An e-mail address; `ascii` is its ASCII-only form, where that differs."""

    kind: ClassVar[Kind] = "emails"

    address: str
    ascii: str | None = None

    @property
    def value(self) -> str:
        """The address."""
        return self.address

    @property
    def local_part(self) -> str:
        """The part before the @."""
        return self.address.rpartition("@")[0]

    def describe(self) -> dict[str, Any]:
        """Return the address and, where they differ, its ASCII form and the written form."""
        ascii_form = {"ascii": self.ascii} if self.ascii else {}
        return {"email": self.address, **ascii_form, **self._as_written()}


@dataclass(frozen=True, slots=True)
class Phone(Entity):
    """A phone number; `region` is missing if the number fits no region's numbering plan."""

    kind: ClassVar[Kind] = "phones"

    e164: str
    national: str
    region: str | None
    type: str
    extension: str | None = None
    fax: bool = False

    @property
    def value(self) -> str:
        """The number in E.164, with its extension if it has one."""
        return f"{self.e164};ext={self.extension}" if self.extension else self.e164

    def describe(self) -> dict[str, Any]:
        """Return the number in its forms, with region, type and extension."""
        shown: dict[str, Any] = {"e164": self.e164, "national": self.national}
        if self.region:
            shown["region"] = self.region
        shown["type"] = self.type
        if self.extension:
            shown["extension"] = self.extension
        if self.fax:
            shown["fax"] = True
        return {**shown, "text": self.text}


@dataclass(frozen=True, slots=True)
class Url(Entity):
    """A link, with a scheme even if the text omits it."""

    kind: ClassVar[Kind] = "urls"

    url: str

    @property
    def value(self) -> str:
        """The link."""
        return self.url

    @property
    def key(self) -> str:
        """The link, whose path is case-sensitive; a single slash after the host is ignored."""
        return self.url.removesuffix("/") if self.url.count("/") == 3 else self.url

    def describe(self) -> dict[str, Any]:
        """Return the link and, where it differs, the written form."""
        return {"url": self.url, **self._as_written()}


@dataclass(frozen=True, slots=True)
class Name(Entity):
    """A name in the text; `owns` is the address whose display name it is."""

    kind: ClassVar[Kind] = "names"

    name: str
    owns: Email | None = None

    @property
    def value(self) -> str:
        """The name."""
        return self.name

    def describe(self) -> dict[str, Any]:
        """Return the name and, where it differs, the written form."""
        return {"name": self.name, **self._as_written()}
