"""The settings of the transport: `[transports.local]`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from jackfield.settings import Format, Ge, Help, Le

from jackfield_local.zone import is_zone


def _zone(name: str) -> str:
    if name and not is_zone(name):
        from difflib import get_close_matches
        from zoneinfo import available_timezones

        close = get_close_matches(name, available_timezones(), 1)
        fix = f"did you mean {close[0]!r}?" if close else "write it as Area/City, such as Europe/London"
        raise ValueError(f"there is no time zone {name!r}; {fix}")
    return name


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """`[transports.local]`"""

    mind: Annotated[
        Literal["auto", "router", "llama"],
        Help(
            "What chooses tools: `router`; `llama`, the language model; or `auto`, which decides for each "
            "new conversation: the model if its file and the extra `llama` are there, otherwise the router."
        ),
    ] = "auto"
    time_zone: Annotated[
        Annotated[str, Format("an IANA time zone such as Europe/London", _zone)],
        Help("The IANA zone of times without a zone; the zone of the session wins.", default="the machine's"),
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
