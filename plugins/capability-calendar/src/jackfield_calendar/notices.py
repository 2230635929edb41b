"""What could not be read, told to whoever runs this: once for every cause, not with every question."""

from __future__ import annotations

import logging

_log = logging.getLogger("jackfield_calendar")

_MOST = 1000


class Notices:
    """Remembers what has been said."""

    def __init__(self) -> None:
        self._said: set[tuple[str, str]] = set()

    def log(self, where: str, cause: str) -> None:
        """Warn of something that cannot be read, unless that was said before."""
        if (where, cause) in self._said:
            return
        if len(self._said) >= _MOST:
            self._said.clear()
        self._said.add((where, cause))
        _log.warning("%s cannot be read, and counts as no time taken: %s", where, cause)
