"""How good and how fast the agent is that needs no service: its planner, its ears, its mouth."""

from __future__ import annotations

import os
from pathlib import Path

from bench.hosting import spoken
from bench.programs import ask
from bench.recording import Asked, Report, Rows, Table

SECTION = "The agent on this machine"
REQUESTS = Table(
    "requests",
    SECTION,
    "who",
    {
        "right": ".0f",
        "of held out": ".0f",
        "small talk that called a tool": ".0f",
        "of lines": ".0f",
        "a request, seconds": ".2f",
    },
)
VOICE = Table(
    "voice",
    SECTION,
    "what",
    {"CPU, seconds a second of sound": ".3f", "words wrong": ".0f", "of": ".0f"},
)
TABLES = (REQUESTS, VOICE, spoken.SPOKEN)

HELD_OUT = Path(__file__).parents[3] / "plugins" / "transport-local" / "tests"
"""Where the requests are that nothing was tuned to."""
GGUF = "JACKFIELD_TEST_GGUF"


def run(report: Report, asked: Asked) -> None:
    requests(report)
    voice(report)
    spoken.run(report, asked)


def requests(report: Report) -> None:
    path = os.pathsep.join([str(HELD_OUT), os.environ.get("PYTHONPATH", "")])
    minds = {"the planner": "planner"}
    if os.environ.get(GGUF):
        minds["the language model (extra), one thread"] = "llama"
    rows = {}
    for name, mind in minds.items():
        found = ask("agent.requests", environment={"PYTHONPATH": path, "BENCH_MIND": mind})
        rows[name] = [found[key] for key in ("right", "requests", "called", "lines", "seconds")]
    report.table(REQUESTS, "Held-out requests, with the tool and every argument checked.", rows)
    if len(minds) == 1:
        sentence = (
            f"The language model is left out: {GGUF} names its file, which `jackfield model get` fetches."
        )
        report.note(SECTION, sentence)


def voice(report: Report) -> None:
    from jackfield_local.models.speech import missing

    if lacking := missing():
        report.note(SECTION, f"Speech models left out; not installed: {', '.join(lacking)}.")
        return
    found = ask("agent.voice")
    rows: Rows = {
        "recognition, of a human reading": [found["hearing"], found["wrong"], found["words"]],
        "speaking": [found["speaking"], None, None],
    }
    caption = (
        f"The speech models, on {found['heard']:.0f} seconds of a reader and {found['said']:.0f} of speech."
    )
    report.table(VOICE, caption, rows)
