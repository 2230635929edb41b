"""The last session at each address, kept so that it can be taken up again: a file for its owner alone."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import orjson


class Keepsake(NamedTuple):
    """A session that may be resumed."""

    token: str
    session: str


def folder() -> Path:
    """Where programs keep what should last but matters to nobody else."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    else:
        base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "jackfield" / "sessions"


def keep(place: str, keepsake: Keepsake) -> None:
    """Remember the session at a place; where that cannot be written, nothing is."""
    wanted = _file(place)
    with suppress(OSError):
        wanted.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # The file is its owner's alone from the first byte, and whole or not there.
        handle, name = tempfile.mkstemp(dir=wanted.parent, prefix=".")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(orjson.dumps({"place": place, **keepsake._asdict()}))
            Path(name).replace(wanted)
        except OSError:
            Path(name).unlink(missing_ok=True)


def kept(place: str) -> Keepsake | None:
    """The session that was remembered last, if it was and can be read."""
    try:
        value = orjson.loads(_file(place).read_bytes())
        return Keepsake(str(value["token"]), str(value["session"]))
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError):
        return None


def forget(place: str) -> None:
    """There is nothing to go on with any more."""
    with suppress(OSError):
        _file(place).unlink()


def _file(place: str) -> Path:
    return folder() / f"{sha256(place.encode()).hexdigest()[:32]}.json"
