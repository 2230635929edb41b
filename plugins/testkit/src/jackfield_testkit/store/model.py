"""Compares a store with the memory store over random sequences of operations; needs hypothesis."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from jackfield.store import MemoryStore, Store

_KEYS = st.sampled_from(["", "a", "ab", "b", "ä\x00"])
_VALUES = st.binary(max_size=4)
_FINGERPRINTS = st.sampled_from([b"", b"f"])
_TTLS = st.sampled_from([0.0, 5.0, 10.0, 1000.0])


class StoreComparison(RuleBasedStateMachine):
    """Runs the same operations on the memory store, which is the model, and on the store under test."""

    create: ClassVar[Callable[[str, Callable[[], float]], Store | None]]
    folder: ClassVar[Path]
    _numbers: ClassVar[itertools.count[int]] = itertools.count()

    def __init__(self) -> None:
        super().__init__()
        self._now = 1_800_000_000.0
        self._runner = asyncio.Runner()
        self._model = MemoryStore(lambda: self._now)
        place = str(self.folder / f"compared-{next(self._numbers)}")
        self._store = type(self).create(place, lambda: self._now)

    def _compare(self, method: str, *arguments: Any, **options: Any) -> None:
        async def call(store: Any) -> Any:
            return await getattr(store, method)(*arguments, **options)

        expected = self._runner.run(call(self._model))
        found = self._runner.run(call(self._store))
        if found != expected:
            # Not fail_test: hypothesis shows the steps only for an error with a traceback.
            raise AssertionError(f"{method}() returned {found!r}, but the memory store {expected!r}")

    @rule(key=_KEYS, value=_VALUES, ttl=st.none() | _TTLS)
    def put(self, key: str, value: bytes, ttl: float | None) -> None:
        """Set a value."""
        self._compare("put", key, value, ttl=ttl)

    @rule(
        method=st.sampled_from(
            [
                *("get", "take", "delete", "keys", "streams", "clear"),
                *("holds", "release", "abandon", "reclaim", "in_doubt"),
            ]
        ),
        key=_KEYS,
    )
    def call_with_key(self, method: str, key: str) -> None:
        """Call a method that takes only a key."""
        self._compare(method, key)

    @rule(key=_KEYS, amount=st.integers(-5, 5), window=_TTLS)
    def add(self, key: str, amount: int, window: float) -> None:
        """Add to a counter."""
        self._compare("add", key, amount, window=window)

    @rule(key=_KEYS, fingerprint=_FINGERPRINTS, ttl=_TTLS, note=st.sampled_from([b"", b"n"]))
    def claim(self, key: str, fingerprint: bytes, ttl: float, note: bytes) -> None:
        """Claim a key, with or without a note."""
        self._compare("claim", key, fingerprint, ttl=ttl, note=note)

    @rule(key=_KEYS, fingerprint=_FINGERPRINTS, ttl=_TTLS, result=_VALUES)
    def record(self, key: str, fingerprint: bytes, ttl: float, result: bytes) -> None:
        """Record an outcome in one step."""
        self._compare("claim", key, fingerprint, ttl=ttl, note=b"n", result=result)

    @rule(key=_KEYS, result=_VALUES, ttl=st.none() | _TTLS)
    def complete(self, key: str, result: bytes, ttl: float | None) -> None:
        """Complete a claim, held or not."""
        self._compare("complete", key, result, ttl=ttl)

    @rule()
    def list_in_doubt(self) -> None:
        """List all claims in doubt."""
        self._compare("in_doubt", "")

    @rule(key=_KEYS)
    def outcome(self, key: str) -> None:
        """Get the outcome without waiting."""
        self._compare("outcome", key, within=0)

    @rule(key=_KEYS, values=st.lists(_VALUES, min_size=1, max_size=3), ttl=st.none() | _TTLS)
    def append(self, key: str, values: list[bytes], ttl: float | None) -> None:
        """Append one or more entries to a stream."""
        self._compare("append", key, *values, ttl=ttl)

    @rule(key=_KEYS, after=st.integers(0, 5), limit=st.integers(0, 5))
    def read(self, key: str, after: int, limit: int) -> None:
        """Read part of a stream."""
        self._compare("read", key, after=after, limit=limit)

    @rule(seconds=st.sampled_from([1.0, 4.0, 5.0, 20.0]))
    def advance(self, seconds: float) -> None:
        """Move the clock of both stores."""
        self._now += seconds

    @rule()
    def prune(self) -> None:
        """Prune both; the counts may differ, because a store may remove expired entries earlier."""
        for store in (self._model, self._store):
            self._runner.run(_prune(store))

    def teardown(self) -> None:
        """Close both stores."""
        self._compare("close")
        self._runner.close()


async def _prune(store: Any) -> None:
    await store.prune()
