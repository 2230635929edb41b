"""The settings of the transport, `[transports.local]`, and the time zones that they name."""

from __future__ import annotations

import os
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, available_timezones

from jackfield.settings import Format, Ge, Help, Le


def is_zone(name: str) -> bool:
    """Whether there is a time zone of this name."""
    try:
        ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        return False
    return True


def machine_zone() -> str:
    """Return the name of this machine's time zone; empty if only its offset is known."""
    named = os.environ.get("TZ", "").removeprefix(":")
    linked = str(Path("/etc/localtime").resolve()).partition("zoneinfo/")[2]
    return next((name for name in (named, linked) if name and is_zone(name)), "")


def _zone(name: str) -> str:
    if name and not is_zone(name):
        close = get_close_matches(name, available_timezones(), 1)
        fix = f"did you mean {close[0]!r}?" if close else "write it as Area/City, such as Europe/London"
        raise ValueError(f"there is no time zone {name!r}; {fix}")
    return name


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """`[transports.local]`"""

    tool_selection: Annotated[
        Literal["auto", "router", "model"],
        Help(
            "What selects tools: `router`; `model`, the local language model; or `auto`, which decides for "
            "each new conversation: the model if its file and the extra `llama` are there, otherwise the "
            "router."
        ),
    ] = "auto"
    time_zone: Annotated[
        Annotated[str, Format("an IANA time zone such as Europe/London", _zone)],
        Help(
            "The IANA zone of times without a zone; the zone of the session takes precedence.",
            default="the machine's",
        ),
    ] = ""
    model_path: Annotated[
        str,
        Help(
            "Any GGUF file with a chat template, for the model.",
            default="what `jackfield model get` downloaded",
        ),
    ] = ""
    threads: Annotated[
        int, Ge(0), Le(256), Help("Threads of the model; 0 means one less than the number of cores.")
    ] = 0
