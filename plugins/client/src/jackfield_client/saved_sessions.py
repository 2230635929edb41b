"""The last session at each host, saved in a file that only its owner can read, so that it can be resumed."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import orjson


class SavedSession(NamedTuple):
    """A session that can be resumed."""

    token: str
    session: str


def folder() -> Path:
    """Return the folder for saved sessions, in the platform's directory for application state."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    else:
        base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "jackfield" / "sessions"


def save(key: str, saved: SavedSession) -> None:
    """Save the session under a key; do nothing if the file cannot be written."""
    target = _path(key)
    with suppress(OSError):
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # mkstemp makes the file private from the first byte; the rename makes the write atomic.
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=".")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(orjson.dumps({"key": key, **saved._asdict()}))
            Path(name).replace(target)
        except OSError:
            Path(name).unlink(missing_ok=True)


def load(key: str) -> SavedSession | None:
    """Return the session saved under a key; None if there is none or it cannot be read."""
    try:
        value = orjson.loads(_path(key).read_bytes())
        return SavedSession(str(value["token"]), str(value["session"]))
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError):
        return None


def delete(key: str) -> None:
    """Delete the session saved under a key, if there is one."""
    with suppress(OSError):
        _path(key).unlink()


def _path(key: str) -> Path:
    return folder() / f"{sha256(key.encode()).hexdigest()[:32]}.json"
