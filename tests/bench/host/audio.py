"""CPU time of the server for an audio frame, compared with plain relays."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from bench.host.processes import running
from bench.report import Report, RunOptions, Table, rounds_text

HOST = Table("host", "The host", "what", {"us per frame": ".0f", "plain = 1": ".2f", "frames lost": ".0f"})
MANY = Table(
    "callers",
    "The host",
    "callers",
    {"frames sent": ",.0f", "frames received": ",.0f", "us per frame": ".0f"},
)
LOAD = Table(
    "load",
    "The host",
    "concurrent callers",
    {
        "p50, ms": ".1f",
        "p99, ms": ".1f",
        "frames lost": ".0f",
        "us per frame": ".0f",
        "callers per core": ".0f",
    },
)
CALLERS, SECONDS = 40, 5.0
MOST_ROUNDS = 3
IDLE_SOCKETS, CROWD_SECONDS, CROWD_SECONDS_FULL = 100, 15.0, 60.0
STEPS, STEP_SECONDS, STEP_SECONDS_FULL = (25, 50, 100, 150, 200, 250, 300, 400), 4.0, 15.0
LATEST_MS = 40.0
"""Two frames: a later one is missing when it should be played."""
FRAMES_PER_SECOND = 50


class Implementation(NamedTuple):
    name: str
    module: str
    path: str


RELAY = Implementation("a plain relay: Starlette, `websockets`, binary frames", "bare_host", "/relay")
CONTESTANTS = (
    RELAY,
    Implementation(
        "a hand-written relay: Starlette, `json`, `base64`, in OpenAI's format", "bare_host", "/by-hand"
    ),
    Implementation("**Jackfield's host**, OpenAI Realtime", "jackfield_host", "/ws/voice"),
)


class Carried(NamedTuple):
    """The result of one run."""

    microseconds: float
    sent: int
    taken: int
    p50_ms: float
    p99_ms: float


def run(report: Report, asked: RunOptions) -> None:
    rounds = min(asked.rounds, MOST_ROUNDS)
    taken: dict[str, list[Carried]] = {each.name: [] for each in CONTESTANTS}
    for _ in range(rounds):
        for each in CONTESTANTS:
            taken[each.name].append(carry(each, CALLERS, SECONDS))
    rows = {each.name: _row(taken[each.name], taken[RELAY.name]) for each in CONTESTANTS}
    caption = (
        f"CPU time of the server for receiving and sending 20 ms of audio, with {CALLERS} concurrent callers "
        f"for {SECONDS:.0f} seconds; {rounds_text(rounds)}."
    )
    report.table(HOST, caption, rows)
    seconds = CROWD_SECONDS_FULL if asked.full else CROWD_SECONDS
    many = carry(CONTESTANTS[-1], IDLE_SOCKETS, seconds)
    caption = f"Many concurrent callers on Jackfield's host, for {seconds:.0f} seconds."
    report.table(MANY, caption, {str(IDLE_SOCKETS): (many.sent, many.taken, many.microseconds)})
    _raise_load(report, STEP_SECONDS_FULL if asked.full else STEP_SECONDS)


def _raise_load(report: Report, seconds: float) -> None:
    """Raise the number of callers until frames are late or lost."""
    rows: dict[str, tuple[float, ...]] = {}
    served = 0
    for callers in STEPS:
        step = carry(CONTESTANTS[-1], callers, seconds)
        lost = step.sent - step.taken
        per_core = 1e6 / FRAMES_PER_SECOND / step.microseconds
        rows[str(callers)] = (step.p50_ms, step.p99_ms, lost, step.microseconds, per_core)
        if lost or step.p99_ms > LATEST_MS:
            break
        served = callers
    caption = (
        f"Round trips of 20 ms frames through Jackfield's host, for {seconds:.0f} seconds per row, until p99 "
        f"exceeds {LATEST_MS:.0f} ms or frames are lost; callers, host and provider share the "
        "machine's cores. The last column is the number of callers that the host's own CPU time would allow."
    )
    report.table(LOAD, caption, rows)
    report.note(LOAD.section, f"Frames arrive in time for up to {served} concurrent callers.")


def _row(ours: list[Carried], plain: list[Carried]) -> tuple[float, float, float]:
    ratios = [one.microseconds / other.microseconds for one, other in zip(ours, plain, strict=True)]
    cost = statistics.median(one.microseconds for one in ours)
    return cost, statistics.median(ratios), sum(one.sent - one.taken for one in ours)


def carry(implementation: Implementation, callers: int, seconds: float) -> Carried:
    with tempfile.TemporaryDirectory() as folder, running("bench.host.provider") as provider:
        env = {"BENCH_PORT": str(provider.port), "OPENAI_API_KEY": "none"}
        with running(f"bench.host.{implementation.module}", Path(folder), env) as host:
            url = f"ws://127.0.0.1:{host.port}{implementation.path}"
            asked = [url, "--callers", str(callers), "--seconds", str(seconds)]
            command = [sys.executable, "-m", "bench.host.callers", *asked]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as calling:
                assert calling.stdout is not None
                calling.stdout.readline()
                # The start of a session is measured elsewhere.
                before = host.cpu
                counted = json.loads(calling.stdout.readline())
                used = host.cpu - before
    return Carried(
        used * 1e6 / counted["sent"],
        counted["sent"],
        counted["taken"],
        counted["p50_ms"],
        counted["p99_ms"],
    )
