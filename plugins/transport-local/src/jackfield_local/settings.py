"""The settings of the transport, `[transports.local]`, and the machine's time zone."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from jackfield.datetimes import find_zone, is_zone
from jackfield.settings import Format, Ge, Help, Le, PathText


def machine_zone() -> str:
    """Return the name of this machine's time zone; empty if only its offset is known."""
    named = os.environ.get("TZ", "").removeprefix(":")
    linked = str(Path("/etc/localtime").resolve()).partition("zoneinfo/")[2]
    return next((name for name in (named, linked) if name and is_zone(name)), "")


def _zone(name: str) -> str:
    return find_zone(name).key if name else ""


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """`[transports.local]`"""

    tool_selection: Annotated[
        Literal["auto", "router", "model"],
        Help(
            "What selects tools: `router`; `model`, the local language model; or `auto`, which decides for "
            "each new conversation: the model if its file exists and the `llama` extra is installed, "
            "otherwise the router."
        ),
    ] = "auto"
    time_zone: Annotated[
        Annotated[str, Format("an IANA time zone such as Europe/London", _zone)],
        Help(
            "The time zone for times that do not name one; the session's time zone takes precedence.",
            default="the machine's",
        ),
    ] = ""
    model_path: Annotated[
        str,
        PathText(),
        Help(
            "The model: any GGUF file with a chat template.",
            default="the file that `jackfield model get` downloaded",
        ),
    ] = ""
    threads: Annotated[
        int,
        Ge(0),
        Le(256),
        Help("How many threads the model uses; 0 means one less than the number of cores."),
    ] = 0
