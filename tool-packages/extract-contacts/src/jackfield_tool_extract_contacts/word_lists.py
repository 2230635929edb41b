"""Words that indicate the role of their neighbours; lists are files in `words/`, one language per line."""

from __future__ import annotations

import re
from importlib import resources


def _entries(name: str) -> frozenset[str]:
    text = resources.files(__package__).joinpath("words", f"{name}.txt").read_text("utf-8")
    lines = [line.partition(": ")[2] for line in text.splitlines() if not line.startswith("#")]
    return frozenset(entry.strip() for line in lines for entry in line.split(","))


def _alternatives(name: str) -> str:
    """Return a pattern for verbose mode that prefers longer phrases."""
    return "|".join(
        re.escape(entry) for entry in sorted(_entries(name), key=lambda entry: (-len(entry), entry))
    )


CHANNELS = _entries("channels")
CONNECTORS = _entries("connectors")
FILE_ENDINGS = _entries("file_endings")
LEAD_INS = _entries("lead_ins")
NOT_NAMES = _entries("not_names")
PARTICLES = _entries("particles")
SHARED_MAILBOXES = _entries("shared_mailboxes")
SIGN_OFFS = _entries("sign_offs")
TOP_LEVEL_DOMAINS = _entries("top_level_domains")

NAME_LABELS = _alternatives("name_labels")
HEADER_LABELS = _alternatives("header_labels")
NUMBERED_THINGS = _alternatives("numbered_things")
