"""`POST /execute/{tool}`: CPU time and memory of the host for each call, beside a bare endpoint."""

from __future__ import annotations

import contextlib
import http.client
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from bench.host.processes import Program, running
from bench.report import Report, RunOptions, Table, rounds_text

Result = TypeVar("Result")

SECTION = "Calls over HTTP"
EXECUTE = Table("execute", SECTION, "request", {"CPU, us": ".0f"})
EXECUTE_MEMORY = Table(
    "execute-memory",
    SECTION,
    "calls in one session",
    {"bytes per call": ".0f", "for its events": ".0f", "for anything else": ".0f"},
)

TOOL = "echo"
ARGUMENTS = {"text": "hello"}

SESSIONS = (1, 1_000, 10_000)
"""How many saved sessions the host knows, of which one is used."""

BLOCK = 500
"""Requests for each figure of a round."""

MEMORY_BLOCKS = {"memory": 40_000, "sqlite": 5_000}
EARLIER_CALLS = {"memory": 40_000, "sqlite": 5_000}
"""Calls before the memory is measured; after these, the memory store is at its limit for results."""


class Caller:
    """A client that keeps its connection open."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._connection = http.client.HTTPConnection("127.0.0.1", program.port)
        self._body = json.dumps({"arguments": ARGUMENTS}).encode()

    def call(self, token: str | None = None) -> dict[str, Any]:
        """Call the tool once, in the session of a token or in a new one."""
        headers = {"Content-Type": "application/json"}
        if token is not None:
            headers["Jackfield-Session"] = token
        try:
            response = self._request(headers)
        except ConnectionError:
            # The host has closed the connection, because it was idle while another host was measured.
            self._connection.close()
            response = self._request(headers)
        content = response.read()
        assert response.status == 200, content
        answer: dict[str, Any] = json.loads(content)
        return answer

    def open_sessions(self, count: int) -> None:
        """Let the host know this many more sessions."""
        for _ in range(count):
            self.call()

    def _request(self, headers: dict[str, str]) -> http.client.HTTPResponse:
        self._connection.request("POST", f"/execute/{TOOL}", self._body, headers)
        return self._connection.getresponse()

    def event_bytes(self, token: str) -> float:
        """Return the memory that a store in the host's process needs for the two events of a call."""
        stream = http.client.HTTPConnection("127.0.0.1", self._program.port)
        stream.request("GET", "/events", headers={"Jackfield-Session": token, "Last-Event-ID": "0"})
        with contextlib.closing(stream), stream.getresponse() as response:
            lines = (line for line in response if line.startswith(b"data: ") and b'"id":' in line)
            events = [line.removeprefix(b"data: ").rstrip() for line, _ in zip(lines, range(2), strict=False)]
        assert len(events) == 2, events
        # An object, rounded as Python's allocator does, its place in a list, and its expiry.
        return sum((sys.getsizeof(event) + 15) // 16 * 16 + 8 + 8 for event in events)

    def cpu(self, token: str | None = None, calls: int = BLOCK) -> float:
        """Return the host's CPU time for each of many calls, in microseconds."""
        before = self._program.cpu
        for _ in range(calls):
            self.call(token)
        return (self._program.cpu - before) / calls * 1e6


def run(report: Report, asked: RunOptions) -> None:
    figures: dict[str, list[float]] = {}
    with running("bench.host.bare_host") as bare, host("memory") as memory, host("sqlite") as sqlite:
        plain, programs = Caller(bare), {"memory": Caller(memory), "SQLite": Caller(sqlite)}
        tokens = {name: str(caller.call()["token"]) for name, caller in programs.items()}
        known = 1
        for count in SESSIONS:
            at_once(Caller.open_sessions, programs.values(), [count - known] * len(programs))
            known = count
            for _ in range(asked.rounds):
                figures.setdefault("a bare Starlette endpoint", []).append(plain.cpu())
                for name, caller in programs.items():
                    label = f"in a session, {name} store, {count:,} saved"
                    figures.setdefault(label, []).append(caller.cpu(tokens[name]))
        for _ in range(asked.rounds):
            for name, caller in programs.items():
                figures.setdefault(f"without a session, {name} store", []).append(caller.cpu())
    report.table(
        EXECUTE,
        f"CPU time of the host for one `POST /execute/{TOOL}`; "
        f"{rounds_text(asked.rounds)} of {BLOCK} requests.",
        {name: (statistics.median(times),) for name, times in figures.items()},
    )
    stores = list(EARLIER_CALLS)
    report.table(
        EXECUTE_MEMORY,
        "Growth of the host's memory over "
        + " and ".join(
            f"{MEMORY_BLOCKS[store]:,} calls after {count:,} ({store})"
            for store, count in EARLIER_CALLS.items()
        )
        + ".",
        dict(zip((f"{store} store" for store in stores), at_once(retained, stores), strict=True)),
    )


def at_once(work: Callable[..., Result], *arguments: Iterable[Any]) -> list[Result]:
    """Do some work for several hosts at the same time, because it is not timed."""
    with ThreadPoolExecutor() as threads:
        return list(threads.map(work, *arguments))


def retained(store: str) -> tuple[float, float, float]:
    """Return the bytes that the host retains of a call: all, those for its events, and the rest."""
    with host(store) as program:
        caller = Caller(program)
        token = caller.call()["token"]
        for _ in range(EARLIER_CALLS[store]):
            caller.call(token)
        before = program.memory
        for _ in range(MEMORY_BLOCKS[store]):
            caller.call(token)
        growth = (program.memory - before) / MEMORY_BLOCKS[store]
        events = caller.event_bytes(token) if store == "memory" else 0.0
        return growth, events, growth - events


@contextmanager
def host(store: str) -> Iterator[Program]:
    """Run a host with its own folder and a store of this kind."""
    with (
        tempfile.TemporaryDirectory() as folder,
        running("bench.host.jackfield_host", Path(folder), {"BENCH_STORE": store}) as program,
    ):
        yield program


if __name__ == "__main__":
    run(Report(), RunOptions(rounds=3, full=True))
