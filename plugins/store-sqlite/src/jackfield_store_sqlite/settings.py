"""The settings of the store."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from jackfield.settings import Format, Help, Seconds

_ID = re.compile(r"[0-9a-f]{32}")


def _id(value: str) -> str:
    if not _ID.fullmatch(value):
        raise ValueError
    return value


@dataclass(frozen=True, slots=True)
class SqliteSettings:
    """`[stores.sqlite]`"""

    path: Annotated[Path, Help("The database file.")] = Path("jackfield.db")
    id: Annotated[
        Annotated[str, Format("the id that `jackfield store show` prints", _id)] | None,
        Help("The id that the store must have; a store with a different id is rejected."),
    ] = None
    lease: Annotated[Seconds, Help("How long a process that no longer answers is assumed to be alive.")] = (
        10.0
    )
    patience: Annotated[
        Seconds,
        Help("How long an operation waits for a file that another process has locked before it fails."),
    ] = 5.0
    durable_appends: Annotated[bool, Help("Make streams survive a power cut too.")] = False
