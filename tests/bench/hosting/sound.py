"""The server's CPU for a frame of sound, beside relays that do nothing else."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from bench.hosting.programs import running
from bench.recording import Asked, Report, Table

HOST = Table("host", "The host", "what", {"us a frame": ".0f", "plain = 1": ".2f", "frames lost": ".0f"})
MANY = Table(
    "callers", "The host", "callers", {"frames sent": ",.0f", "came back": ",.0f", "us a frame": ".0f"}
)
CALLERS, SECONDS = 40, 5.0
MOST_ROUNDS = 3
CROWD, CROWD_SECONDS, CROWD_SECONDS_FULL = 100, 15.0, 60.0


class Contestant(NamedTuple):
    name: str
    module: str
    path: str


RELAY = Contestant("a plain relay: Starlette, `websockets`, binary frames", "bare", "/relay")
CONTESTANTS = (
    RELAY,
    Contestant("a relay by hand: Starlette, `json`, `base64`, as OpenAI wants it", "bare", "/by-hand"),
    Contestant("**Jackfield's host**, OpenAI Realtime", "ours", "/ws/voice"),
)


class Carried(NamedTuple):
    """What one run came to."""

    microseconds: float
    sent: int
    taken: int


def run(report: Report, asked: Asked) -> None:
    rounds = min(asked.rounds, MOST_ROUNDS)
    taken: dict[str, list[Carried]] = {each.name: [] for each in CONTESTANTS}
    for _ in range(rounds):
        for each in CONTESTANTS:
            taken[each.name].append(carry(each, CALLERS, SECONDS))
    rows = {each.name: _row(taken[each.name], taken[RELAY.name]) for each in CONTESTANTS}
    caption = (
        f"A server's CPU for 20 ms of sound, in and out, {CALLERS} callers at once for {SECONDS:.0f} "
        f"seconds; {rounds} rounds."
    )
    report.table(HOST, caption, rows)
    seconds = CROWD_SECONDS_FULL if asked.full else CROWD_SECONDS
    many = carry(CONTESTANTS[-1], CROWD, seconds)
    caption = f"Many callers at Jackfield's host, for {seconds:.0f} seconds."
    report.table(MANY, caption, {str(CROWD): (many.sent, many.taken, many.microseconds)})


def _row(ours: list[Carried], plain: list[Carried]) -> tuple[float, float, float]:
    ratios = [one.microseconds / other.microseconds for one, other in zip(ours, plain, strict=True)]
    cost = statistics.median(one.microseconds for one in ours)
    return cost, statistics.median(ratios), sum(one.sent - one.taken for one in ours)


def carry(contestant: Contestant, callers: int, seconds: float) -> Carried:
    with tempfile.TemporaryDirectory() as folder, running("bench.hosting.provider") as provider:
        env = {"BENCH_PORT": str(provider.port), "OPENAI_API_KEY": "none"}
        with running(f"bench.hosting.{contestant.module}", Path(folder), env) as host:
            url = f"ws://127.0.0.1:{host.port}{contestant.path}"
            asked = [url, "--callers", str(callers), "--seconds", str(seconds)]
            command = [sys.executable, "-m", "bench.hosting.callers", *asked]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as calling:
                assert calling.stdout is not None
                calling.stdout.readline()
                # What it takes to begin a session is measured elsewhere.
                before = host.cpu
                counted = json.loads(calling.stdout.readline())
                used = host.cpu - before
    return Carried(used * 1e6 / counted["sent"], counted["sent"], counted["taken"])
