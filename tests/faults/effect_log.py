"""The effect log: one line for every effect, written by the tools themselves."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

LOOK_SECONDS = 0.002


class Effect(NamedTuple):
    """One effect of a call; both times are of the machine's monotonic clock."""

    name: str
    after: float
    """Taken by the tool before it wrote the line: the effect is not older."""
    before: float
    """When the line was first seen here: the effect is not younger."""


class GrowingFile:
    """A file that other processes append lines to."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0

    def new_lines(self) -> list[str]:
        """Return the complete lines since the last call."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._read)
            whole, newline, _ = file.read().rpartition(b"\n")
        self._read += len(whole) + len(newline)
        return whole.decode().splitlines()


class EffectLog:
    """The effects of the tools so far, by call."""

    def __init__(self, folder: Path) -> None:
        self.effects: dict[str, list[Effect]] = defaultdict(list)
        self.begun: set[str] = set()
        self._effects = GrowingFile(folder / "effects.log")
        self._begun = GrowingFile(folder / "begun.log")

    def look(self) -> None:
        """Read new lines."""
        lines = self._effects.new_lines()
        now = time.monotonic()
        for line in lines:
            call, name, after = line.split(" ")
            self.effects[call].append(Effect(name, float(after), now))
        self.begun.update(self._begun.new_lines())

    async def follow(self) -> None:
        """Keep reading until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait for an entry in the log; return False after a timeout."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                return False
            await asyncio.sleep(LOOK_SECONDS)
        return True
