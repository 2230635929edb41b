"""What it costs to carry 20 milliseconds of sound between a session and a model, in either direction."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import NamedTuple

from bench.clock import table


class Contestant(NamedTuple):
    """A program that carries sound, what has to be installed for it, and the server it talks to."""

    name: str
    module: str
    needs: str
    server: str


PLAIN = "plain"

CONTESTANTS = (
    Contestant("a plain relay: `websockets`, binary frames", PLAIN, "websockets", "openai_server"),
    Contestant("by hand: `websockets`, `json`, `base64`", "by_hand", "websockets", "openai_server"),
    Contestant(
        "**Jackfield**, OpenAI Realtime through the SDK", "openai", "jackfield_openai", "openai_server"
    ),
    Contestant("the SDK's own events and verbs", "openai_sdk", "openai", "openai_server"),
    Contestant("a plain relay over TLS", "plain_tls", "trustme", "gemini_server"),
    Contestant(
        "**Jackfield**, Gemini Live through the SDK, over TLS, to 16 kHz",
        "gemini",
        "jackfield_gemini",
        "gemini_server",
    ),
    Contestant("the SDK's own messages and verbs, over TLS", "gemini_sdk", "google.genai", "gemini_server"),
)
"""Each a module of `bench.relays` that prints the microseconds of CPU a frame takes `in` and `out`."""

Figures = dict[str, float]


def run(rounds: int) -> None:
    present = [each for each in CONTESTANTS if installed(each.needs)]
    taken: dict[str, list[Figures]] = {each.module: [] for each in present}
    for _ in range(rounds):
        for each in present:
            taken[each.module].append(ask(each))
    print("## Carrying 20 ms of sound (microseconds of CPU, server not counted)\n")
    rows = []
    for each in present:
        figures = [f"{median(taken[each.module], way):.1f}" for way in ("in", "out")]
        ratios = [f"{ratio(taken, each.module, way):.2f}" for way in ("in", "out")]
        rows.append((each.name, *figures, *ratios))
    table(("what", "from the model", "to the model", "from, plain = 1", "to, plain = 1"), rows)
    if absent := [each.name for each in CONTESTANTS if each not in present]:
        print(f"Not installed and left out: {', '.join(absent)}.\n")


def installed(module: str) -> bool:
    """Whether a module could be imported, whose package may be missing as well."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def ask(contestant: Contestant) -> Figures:
    """What one program measured against a server of its own."""
    command = [sys.executable, "-m"]
    with subprocess.Popen(
        [*command, f"bench.relays.{contestant.server}"], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            port, _, authority = server.stdout.readline().strip().partition(" ")
            address = {"BENCH_PORT": port, "BENCH_CA": authority}
            environment = {**os.environ, **address, "OPENAI_API_KEY": "none", "GEMINI_API_KEY": "none"}
            ran = subprocess.run(
                [*command, f"bench.relays.{contestant.module}"],
                env=environment, check=False, capture_output=True, text=True, timeout=120,
            )  # fmt: skip
        finally:
            server.terminate()
    if ran.returncode:
        raise SystemExit(f"bench.relays.{contestant.module} failed:\n{ran.stderr}")
    figures: Figures = json.loads(ran.stdout.splitlines()[-1])
    return figures


def median(figures: list[Figures], way: str) -> float:
    return statistics.median(each[way] for each in figures)


def ratio(taken: Mapping[str, list[Figures]], module: str, way: str) -> float:
    """The median of what stood beside each other in each round, which a slow minute disturbs least."""
    pairs = zip(taken[module], taken[PLAIN], strict=True)
    return statistics.median(each[way] / plain[way] for each, plain in pairs)
