"""The store and its model side by side, in sequences that nobody thought of; needs hypothesis."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from jackfield.store import MemoryStore, Store

Make = Callable[[str, Callable[[], float]], Store | None]

_KEYS = st.sampled_from(["", "a", "ab", "b", "ä\x00"])
_VALUES = st.binary(max_size=4)
_FINGERPRINTS = st.sampled_from([b"", b"f"])
_TTLS = st.sampled_from([0.0, 5.0, 10.0, 1000.0])


class Comparison(RuleBasedStateMachine):
    """Asks the store in memory, which is the model, and the one under test the same."""

    make: ClassVar[Make]
    folder: ClassVar[Path]
    _numbers: ClassVar[itertools.count[int]] = itertools.count()

    def __init__(self) -> None:
        super().__init__()
        self._moment = 1_800_000_000.0
        self._runner = asyncio.Runner()
        self._model = MemoryStore(lambda: self._moment)
        place = str(self.folder / f"compared-{next(self._numbers)}")
        self._store = type(self).make(place, lambda: self._moment)

    def _both(self, method: str, *arguments: Any, **options: Any) -> None:
        async def ask(store: Any) -> Any:
            return await getattr(store, method)(*arguments, **options)

        expected = self._runner.run(ask(self._model))
        found = self._runner.run(ask(self._store))
        if found != expected:
            # Not as other tests fail: the steps that lead here are shown with a traceback only.
            raise AssertionError(f"{method}() gave {found!r}, and the store in memory {expected!r}")

    @rule(key=_KEYS, value=_VALUES, ttl=st.none() | _TTLS)
    def put(self, key: str, value: bytes, ttl: float | None) -> None:
        """Set a value."""
        self._both("put", key, value, ttl=ttl)

    @rule(
        method=st.sampled_from(
            [
                *("get", "take", "delete", "keys", "streams", "clear"),
                *("holds", "release", "abandon", "reclaim", "in_doubt"),
            ]
        ),
        key=_KEYS,
    )
    def ask(self, method: str, key: str) -> None:
        """Whatever takes nothing but a key."""
        self._both(method, key)

    @rule(key=_KEYS, amount=st.integers(-5, 5), window=_TTLS)
    def add(self, key: str, amount: int, window: float) -> None:
        """Count."""
        self._both("add", key, amount, window=window)

    @rule(key=_KEYS, fingerprint=_FINGERPRINTS, ttl=_TTLS, note=st.sampled_from([b"", b"n"]))
    def claim(self, key: str, fingerprint: bytes, ttl: float, note: bytes) -> None:
        """Claim, with or without a note."""
        self._both("claim", key, fingerprint, ttl=ttl, note=note)

    @rule(key=_KEYS, fingerprint=_FINGERPRINTS, ttl=_TTLS, result=_VALUES)
    def record(self, key: str, fingerprint: bytes, ttl: float, result: bytes) -> None:
        """Claim and record the outcome in one step."""
        self._both("claim", key, fingerprint, ttl=ttl, note=b"n", result=result)

    @rule(key=_KEYS, result=_VALUES, ttl=st.none() | _TTLS)
    def complete(self, key: str, result: bytes, ttl: float | None) -> None:
        """Complete, held or not."""
        self._both("complete", key, result, ttl=ttl)

    @rule()
    def list_doubts(self) -> None:
        """List everything in doubt."""
        self._both("in_doubt", "")

    @rule(key=_KEYS)
    def outcome(self, key: str) -> None:
        """Ask without waiting."""
        self._both("outcome", key, within=0)

    @rule(key=_KEYS, value=_VALUES, ttl=st.none() | _TTLS)
    def append(self, key: str, value: bytes, ttl: float | None) -> None:
        """Add to a stream."""
        self._both("append", key, value, ttl=ttl)

    @rule(key=_KEYS, after=st.integers(0, 5), limit=st.integers(0, 5))
    def read(self, key: str, after: int, limit: int) -> None:
        """Read a part of a stream."""
        self._both("read", key, after=after, limit=limit)

    @rule(seconds=st.sampled_from([1.0, 4.0, 5.0, 20.0]))
    def let_pass(self, seconds: float) -> None:
        """Move the clock of both."""
        self._moment += seconds

    @rule()
    def prune(self) -> None:
        """Remove what has expired; how much that is depends on what was removed before anyone asked."""
        for store in (self._model, self._store):
            self._runner.run(_prune(store))

    def teardown(self) -> None:
        """Let go of both."""
        self._both("close")
        self._runner.close()


async def _prune(store: Any) -> None:
    await store.prune()
