"""What a deployment may say about the store."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from jackfield_store_sqlite import limits

_KINDS: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "path": (str, "a path"),
    "lease": ((int, float), "a number of seconds"),
    "patience": ((int, float), "a number of seconds"),
    "durable_appends": (bool, "true or false"),
    "id": (str, "the id that `jackfield store show` prints"),
}

_ID = re.compile(r"[0-9a-f]{32}")


def options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings as arguments of `SqliteStore`, refused when one is misspelt or of the wrong kind."""
    for name, value in settings.items():
        if name not in _KINDS:
            close = get_close_matches(name, _KINDS, 1)
            meant = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(_KINDS)}"
            raise ValueError(f"the sqlite store has no setting {name!r}; {meant}")
        kind, wanted = _KINDS[name]
        # To Python true is the number 1, to whoever wrote the setting it is not.
        if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
            raise ValueError(f"the setting {name} of the sqlite store is {wanted}, not {value!r}")
    for name in ("lease", "patience"):
        if name in settings:
            limits.patience(name, settings[name])
    given = {"path": "jackfield.db", **settings}
    pinned = given.pop("id", None)
    if pinned is not None and not _ID.fullmatch(pinned):
        raise ValueError(f"the setting id of the sqlite store is {_KINDS['id'][1]}, not {pinned!r}")
    return {**given, "store_id": pinned}
