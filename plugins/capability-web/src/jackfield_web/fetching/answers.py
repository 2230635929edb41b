"""What a host sent, before anybody has read it."""

from __future__ import annotations

from dataclasses import dataclass

from jackfield_web.reading.kinds import Kind


@dataclass(frozen=True, slots=True)
class Answer:
    """The bytes of a page, and what is known about them."""

    url: str
    content_type: str
    kind: Kind
    content: bytes
    cut: bool
