"""`POST /execute/{tool}`: CPU time and memory of the host for each call, beside a bare endpoint."""

from __future__ import annotations

import http.client
import json
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.host.processes import Program, running
from bench.report import Report, RunOptions, Table, rounds_text

SECTION = "Calls over HTTP"
EXECUTE = Table("execute", SECTION, "request", {"CPU, us": ".0f"})
EXECUTE_MEMORY = Table("execute-memory", SECTION, "calls in one session", {"bytes per call": ".0f"})

TOOL = "echo"
ARGUMENTS = {"text": "hello"}

SESSIONS = (1, 1_000, 10_000)
"""How many saved sessions the host knows, of which one is used."""

BLOCK = 500
"""Requests for each figure of a round."""

MEMORY_BLOCK = 5_000


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

    def _request(self, headers: dict[str, str]) -> http.client.HTTPResponse:
        self._connection.request("POST", f"/execute/{TOOL}", self._body, headers)
        return self._connection.getresponse()

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
            while known < count:
                for caller in programs.values():
                    caller.call()
                known += 1
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
    report.table(
        EXECUTE_MEMORY,
        f"Growth of the host's memory over {MEMORY_BLOCK:,} calls, after {MEMORY_BLOCK:,} earlier calls.",
        {f"{store} store": (retained(store),) for store in ("memory", "sqlite")},
    )


def retained(store: str) -> float:
    """Return the bytes that the host retains of each call in a session."""
    with host(store) as program:
        caller = Caller(program)
        token = caller.call()["token"]
        for _ in range(MEMORY_BLOCK):
            caller.call(token)
        before = program.memory
        for _ in range(MEMORY_BLOCK):
            caller.call(token)
        return (program.memory - before) / MEMORY_BLOCK


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
