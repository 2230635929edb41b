"""Records which functions of the repository run in the main thread.

`sys.setprofile` reports every call of a Python function, also calls from C code and from the event loop. It
reports a coroutine again when the coroutine continues after a wait. So each function is counted once, but
crossings between distributions are counted in the order in which the code really ran.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]

NOT_TRACED = frozenset({"testkit", "scripted-providers", "client"})
"""Distributions that play the provider and the user in the same process."""


class Hop(NamedTuple):
    """One function of the repository."""

    distribution: str
    file: str
    function: str


class Counts(NamedTuple):
    """The size of a path."""

    files: int
    functions: int
    crossings: int


@dataclass
class Trace:
    """The calls of one run, in order."""

    hops: list[Hop] = field(default_factory=list)

    @property
    def crossings(self) -> int:
        """Return how often the code passed from one distribution to another."""
        names = [hop.distribution for hop in self.hops]
        return sum(before != after for before, after in itertools.pairwise(names))


@dataclass
class CallPath:
    """What several runs of the same scenario have in common, without what else the host did at the time."""

    hops: list[Hop]
    """The functions, in the order in which the first run reached them."""
    crossings: int
    """The crossings of the run with the fewest."""
    seen: frozenset[Hop]
    """Every function that at least one run reached; which ones depends on the load of the machine."""

    @classmethod
    def common(cls, traces: Iterable[Trace]) -> CallPath:
        """Return the functions that every run passed through, and the fewest crossings."""
        first, *others = runs = list(traces)
        shared = set(first.hops).intersection(*(trace.hops for trace in others))
        hops = [hop for hop in dict.fromkeys(first.hops) if hop in shared]
        seen = frozenset(hop for trace in runs for hop in trace.hops)
        return cls(hops, min(trace.crossings for trace in runs), seen)

    @property
    def counts(self) -> Counts:
        """Return how many files, functions and crossings there are."""
        return Counts(len({hop.file for hop in self.hops}), len(self.hops), self.crossings)

    @property
    def distributions(self) -> list[str]:
        """Return the distributions in the order in which the path first enters them."""
        return list(dict.fromkeys(hop.distribution for hop in self.hops))

    @property
    def listing(self) -> str:
        """Return the functions by file, to show what became longer."""
        by_file: dict[str, list[str]] = {}
        for hop in self.hops:
            by_file.setdefault(hop.file, []).append(hop.function)
        lines = [f"{file}: {', '.join(functions)}" for file, functions in by_file.items()]
        return "\n".join([str(self.counts), *lines])


@contextmanager
def tracing() -> Iterator[Trace]:
    """Record while the block runs; code of the interpreter, of libraries and of tests is left out."""
    trace = Trace()

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and (hop := _hop(frame.f_code)) is not None:
            trace.hops.append(hop)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield trace
    finally:
        sys.setprofile(before)


@cache
def _hop(code: CodeType) -> Hop | None:
    path = Path(code.co_filename)
    # Comprehensions, generator expressions and lambdas are part of the function around them.
    if code.co_name.startswith("<") or not path.is_relative_to(ROOT):
        return None
    parts = path.relative_to(ROOT).parts
    if "src" not in parts or "_template" in parts:
        return None
    distribution = parts[parts.index("src") - 1]
    if distribution in NOT_TRACED:
        return None
    return Hop(distribution, "/".join(parts), code.co_qualname)
