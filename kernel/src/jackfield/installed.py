"""What an installation names: distributions, and the entry points by which they take part."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import NamedTuple

TOOLS = "jackfield.tools"
PLUGINS = "jackfield.plugins"


class Distribution(NamedTuple):
    """An installed distribution, or one that is looked at where it lies."""

    name: str
    version: str
    location: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.version}".strip()


class Entry(NamedTuple):
    """One entry point: a name, what it points at, and who installed it."""

    group: str
    name: str
    value: str
    distribution: Distribution

    def matches(self, pattern: str) -> bool:
        """Whether a pattern means this entry, by its own name or by its distribution's."""
        return fnmatchcase(self.name, pattern) or fnmatchcase(self.distribution.name, normalised(pattern))


def normalised(name: str) -> str:
    """A distribution's name as the package index compares it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()
