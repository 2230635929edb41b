"""In which zone a session's times are meant."""

from __future__ import annotations

import os
import re
from pathlib import Path
from zoneinfo import ZoneInfo

_IANA = re.compile(r"\b(?:UTC|[A-Z][A-Za-z]+/[A-Z][A-Za-z_]+(?:/[A-Z][A-Za-z_]+)?)\b")
_JUST_NOW = "## Just now"


def zone_in(instructions: str) -> str:
    """The zone that the facts of a session name; empty when they name none."""
    facts = instructions.rpartition(_JUST_NOW)[2] if _JUST_NOW in instructions else ""
    return next((name for name in _IANA.findall(facts) if name != "UTC" and is_zone(name)), "")


def own_zone() -> str:
    """The name of this machine's zone; empty when only its offset is known."""
    named = os.environ.get("TZ", "").removeprefix(":")
    linked = str(Path("/etc/localtime").resolve()).partition("zoneinfo/")[2]
    return next((name for name in (named, linked) if name and is_zone(name)), "")


def is_zone(name: str) -> bool:
    """Whether there is a zone of this name."""
    try:
        ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        return False
    return True
