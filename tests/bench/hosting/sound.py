"""The server's CPU for a frame of sound, beside relays that do nothing else."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from bench.clock import table
from bench.hosting.programs import running

CALLERS, SECONDS = 40, 5.0


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


def run(rounds: int) -> None:
    taken: dict[str, list[Carried]] = {each.name: [] for each in CONTESTANTS}
    for _ in range(rounds):
        for each in CONTESTANTS:
            taken[each.name].append(carry(each, CALLERS, SECONDS))
    print(f"## A host's CPU for 20 ms of sound, in and out, {CALLERS} callers at once\n")
    rows = []
    for each in CONTESTANTS:
        ours, plain = taken[each.name], taken[RELAY.name]
        ratio = statistics.median(
            one.microseconds / other.microseconds for one, other in zip(ours, plain, strict=True)
        )
        cost = statistics.median(one.microseconds for one in ours)
        rows.append(
            (each.name, f"{cost:.0f}", f"{ratio:.2f}", str(sum(one.sent - one.taken for one in ours)))
        )
    table(("what", "us a frame", "plain = 1", "frames lost"), rows)
    many = carry(CONTESTANTS[-1], 100, 60.0)
    print(
        f"100 callers for a minute at Jackfield's host: {many.sent} frames sent, {many.taken} came back, "
        f"{many.microseconds:.0f} us of CPU a frame.\n"
    )


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
