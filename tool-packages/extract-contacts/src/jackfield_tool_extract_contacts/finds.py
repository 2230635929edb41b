"""What can be found in a text, each with its place and with the form in which it is reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

Kind = Literal["emails", "phones", "urls", "names"]
KINDS: tuple[Kind, ...] = ("emails", "phones", "urls", "names")


@dataclass(frozen=True, slots=True)
class Find:
    """A piece of the text, `text` as written, between two offsets in code points."""

    kind: ClassVar[Kind]

    start: int
    end: int
    text: str

    @property
    def value(self) -> str:
        """The normalised form; contacts refer to a find by it."""
        raise NotImplementedError

    @property
    def key(self) -> str:
        """What two finds of the same kind share when they are one."""
        return self.value.casefold()

    def describe(self) -> dict[str, Any]:
        """The find without its places, as the result shows it."""
        raise NotImplementedError

    def _as_written(self) -> dict[str, str]:
        return {} if self.text == self.value else {"text": self.text}


@dataclass(frozen=True, slots=True)
class Email(Find):
    """An e-mail address; `ascii` is its form for old mail servers, where that differs."""

    kind: ClassVar[Kind] = "emails"

    address: str
    ascii: str | None = None

    @property
    def value(self) -> str:
        """The address."""
        return self.address

    @property
    def local_part(self) -> str:
        """What stands before the @."""
        return self.address.rpartition("@")[0]

    def describe(self) -> dict[str, Any]:
        """The address and, where they differ, its ASCII form and what was written."""
        ascii_form = {"ascii": self.ascii} if self.ascii else {}
        return {"email": self.address, **ascii_form, **self._as_written()}


@dataclass(frozen=True, slots=True)
class Phone(Find):
    """A phone number; `region` is missing when the number fits no region's plan."""

    kind: ClassVar[Kind] = "phones"

    e164: str
    national: str
    region: str | None
    type: str
    extension: str | None = None
    fax: bool = False

    @property
    def value(self) -> str:
        """The number in E.164, and its extension if it has one."""
        return f"{self.e164};ext={self.extension}" if self.extension else self.e164

    def describe(self) -> dict[str, Any]:
        """The number in its forms, with what is known of it."""
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
class Url(Find):
    """A link, with a scheme even where the text leaves it out."""

    kind: ClassVar[Kind] = "urls"

    url: str

    @property
    def value(self) -> str:
        """The link."""
        return self.url

    @property
    def key(self) -> str:
        """The link, whose path is case-sensitive; a lone slash after the host means nothing."""
        return self.url.removesuffix("/") if self.url.count("/") == 3 else self.url

    def describe(self) -> dict[str, Any]:
        """The link and, where it differs, what was written."""
        return {"url": self.url, **self._as_written()}


@dataclass(frozen=True, slots=True)
class Name(Find):
    """A name that the text gives; `owns` is the one address it is the display name of."""

    kind: ClassVar[Kind] = "names"

    name: str
    owns: Email | None = None

    @property
    def value(self) -> str:
        """The name."""
        return self.name

    def describe(self) -> dict[str, Any]:
        """The name and, where it differs, what was written."""
        return {"name": self.name, **self._as_written()}
