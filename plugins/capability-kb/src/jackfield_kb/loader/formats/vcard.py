"""vCard 2.1, 3.0 and 4.0: one person per card."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from jackfield_kb.loader import slugs
from jackfield_kb.loader.documents import Document, UnreadableFileError
from jackfield_kb.loader.drafts import RecordDraft
from jackfield_kb.loader.formats import DraftOrError
from jackfield_kb.loader.slugs import slug

_CARD = re.compile(
    r"^BEGIN:VCARD[ \t]*$.*?(?:^END:VCARD[ \t]*$|\Z)", re.IGNORECASE | re.MULTILINE | re.DOTALL
)
_PROFILES = ("URL", "X-SOCIALPROFILE", "SOCIALPROFILE")


def read(document: Document) -> Iterator[DraftOrError]:
    """Yield the cards; an invalid card is reported with its line, and the others are read."""
    text = document.text().replace("\r\n", "\n").replace("\r", "\n")
    line, end = 1, 0
    for card in _CARD.finditer(text):
        line += text.count("\n", end, card.start())
        end = card.start()
        yield _entry(card[0], line)
    if not _CARD.search(text):
        raise UnreadableFileError(
            "it contains no card", "a card starts with BEGIN:VCARD; export the contacts again", 1
        )


def _entry(card: str, line: int) -> DraftOrError:
    import vobject  # type: ignore[import-untyped]

    try:
        person = _Card(vobject.readOne(card, allowQP=True))
    except (vobject.base.VObjectError, AttributeError, LookupError, TypeError, ValueError) as error:
        why = str(error).removeprefix("At line ").partition(": ")[2] or "it is not finished"
        return UnreadableFileError(
            f"the card cannot be read ({why[:120]})", "export that contact again", line
        )
    name = person.first("FN") or person.spoken_name() or person.first("ORG")
    if not name:
        return UnreadableFileError("the card has no name", "add a line FN:", line)
    return RecordDraft(
        {"tags": person.all("CATEGORIES")},
        title=name,
        text=person.described(name),
        type="person",
        url=person.homepage(),
        source_type="directory",
        updated=_moment(person.first("REV")),
        metadata=person.metadata(),
        line=line,
        stem=slug(name) or "card",
    )


class _Card:
    """The properties of one card as plain text."""

    def __init__(self, component: Any) -> None:
        self._lines = list(component.getChildren())

    def all(self, *names: str) -> list[str]:
        """Return the values of some properties, each once; a list contributes its members."""
        words: list[str] = []
        for line in self._lines:
            if line.name in names and not isinstance(line.value, bytes):
                parts = line.value if isinstance(line.value, list) else [line.value]
                words += (" ".join(str(part).split()) for part in parts)
        return list(dict.fromkeys(word for word in words if word))

    def first(self, name: str) -> str:
        """Return the first value of a property."""
        return next(iter(self.all(name)), "")

    def spoken_name(self) -> str:
        """Return the given and family name of the structured name."""
        name = next((line.value for line in self._lines if line.name == "N"), None)
        parts = (getattr(name, part, "") for part in ("given", "family"))
        return " ".join(part for part in parts if isinstance(part, str) and part)

    def notes(self) -> str:
        """Return the notes of the card."""
        return "\n".join(str(line.value).strip() for line in self._lines if line.name == "NOTE")

    def linkedin(self) -> str | None:
        """Return the first address on linkedin.com."""
        return next((found for url in self.all(*_PROFILES) if (found := slugs.linkedin(url))), None)

    def homepage(self) -> str | None:
        """Return the first address that is not on LinkedIn, or else the LinkedIn address."""
        urls = (url for url in self.all("URL") if slugs.is_safe(url) and not slugs.linkedin(url))
        return next(urls, None) or self.linkedin()

    def metadata(self) -> dict[str, Any]:
        """Return the properties as metadata."""
        organisation, *units = self.all("ORG") or [""]
        facts = {
            "emails": [mail.removeprefix("mailto:") for mail in self.all("EMAIL")],
            "phones": [phone.removeprefix("tel:") for phone in self.all("TEL")],
            "organisation": organisation,
            "unit": ", ".join(units),
            "job_title": self.first("TITLE"),
            "role": self.first("ROLE"),
            "linkedin": self.linkedin(),
            "urls": [url for url in self.all(*_PROFILES) if slugs.is_safe(url)],
        }
        return {name: value for name, value in facts.items() if value}

    def described(self, name: str) -> str:
        """Return the card as sentences that full-text search can find."""
        facts = self.metadata()
        post = [facts[part] for part in ("job_title", "role", "unit", "organisation") if part in facts]
        lines = [f"{', '.join((name, *dict.fromkeys(post)))}.", self.notes()]
        lines += [f"{label}: {', '.join(facts[key])}" for key, label in _LABELS if key in facts]
        return "\n".join(line for line in lines if line)


_LABELS = (("emails", "E-mail"), ("phones", "Phone"), ("urls", "Links"))


def _moment(revised: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(revised)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
