"""Cost of transporting 20 milliseconds of audio between a session and a model, in either direction."""

from __future__ import annotations

import statistics
import subprocess
import sys
from typing import NamedTuple

from bench.report import Report, RunOptions, Table, rounds_text
from bench.subprocesses import Figures, installed, median, ratio, run_module


class Implementation(NamedTuple):
    """A program that transports audio, the module it needs, and its server."""

    name: str
    module: str
    needs: str
    server: str


PLAIN = "plain"

CONTESTANTS = (
    Implementation("a plain relay: `websockets`, binary frames", PLAIN, "websockets", "openai_server"),
    Implementation(
        "hand-written: `websockets`, `json`, `base64`", "handwritten", "websockets", "openai_server"
    ),
    Implementation("**Jackfield**, OpenAI Realtime", "openai", "jackfield_openai", "openai_server"),
    Implementation("the OpenAI SDK's own events and verbs", "openai_sdk", "openai", "openai_server"),
    Implementation("a plain relay over TLS", "plain_tls", "trustme", "gemini_server"),
    Implementation(
        "**Jackfield**, Gemini Live, over TLS, resampled to 16 kHz",
        "gemini",
        "jackfield_gemini",
        "gemini_server",
    ),
    Implementation(
        "the Gemini SDK's own messages and verbs, over TLS, not resampled",
        "gemini_sdk",
        "google.genai",
        "gemini_server",
    ),
)
"""Modules of `bench.relays` that print the microseconds of CPU time for a frame `in` and `out`."""

SOUND = Table(
    "sound",
    "Audio",
    "what",
    {
        "from the model, us": ".1f",
        "to the model, us": ".1f",
        "from, plain = 1": ".2f",
        "to, plain = 1": ".2f",
    },
)
TABLES = (SOUND,)
MOST_ROUNDS = 5


def run(report: Report, asked: RunOptions) -> None:
    rounds = min(asked.rounds, MOST_ROUNDS)
    present = [each for each in CONTESTANTS if installed(each.needs)]
    taken: dict[str, list[Figures]] = {each.module: [] for each in present}
    for _ in range(rounds):
        for each in present:
            taken[each.module].append(carried(each))
    rows = {
        each.name: (
            *(median(taken[each.module], way) for way in ("in", "out")),
            *(ratio(taken[each.module], taken[PLAIN], way) for way in ("in", "out")),
        )
        for each in present
    }
    caption = f"CPU time in microseconds for 20 ms of audio, excluding the server; {rounds_text(rounds)}."
    report.table(SOUND, caption, rows)
    if absent := [each.name for each in CONTESTANTS if each not in present]:
        report.note(SOUND.section, f"Not installed and left out: {', '.join(absent)}.")
    if installed("jackfield_gemini"):
        alone = [run_module("relays.resampler")["us"] for _ in range(rounds)]
        report.note(
            SOUND.section,
            f"For audio sent to Gemini, resampling alone takes {statistics.median(alone):.0f} us "
            f"({min(alone):.0f} to {max(alone):.0f}).",
        )


def carried(implementation: Implementation) -> Figures:
    """Return what one program measured against its own server."""
    with subprocess.Popen(
        [sys.executable, "-m", f"bench.relays.{implementation.server}"], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            port, _, authority = server.stdout.readline().strip().partition(" ")
            address = {"BENCH_PORT": port, "BENCH_CA": authority}
            keys = {"OPENAI_API_KEY": "none", "GEMINI_API_KEY": "none"}
            return run_module(f"relays.{implementation.module}", environment={**address, **keys})
        finally:
            server.terminate()
