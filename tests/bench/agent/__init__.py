"""How good and how fast the agent is that needs no service: its planner, its ears, its mouth."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

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
DECISIONS = Table(
    "decisions",
    SECTION,
    "requests and who answers",
    {
        "requests": ".0f",
        "right tool, %": ".0f",
        "calls made, %": ".0f",
        "all arguments right, %": ".0f",
        "asked back where due, %": ".0f",
        "a request, seconds": ".1f",
    },
)
VOICE = Table(
    "voice",
    SECTION,
    "what",
    {"CPU, seconds a second of sound": ".3f", "words wrong": ".0f", "of": ".0f"},
)
TABLES = (REQUESTS, DECISIONS, VOICE, spoken.SPOKEN)

HELD_OUT = Path(__file__).parents[3] / "plugins" / "transport-local" / "tests"
"""Where the requests are that nothing was tuned to."""
GGUF = "JACKFIELD_TEST_GGUF"


def run(report: Report, asked: Asked) -> None:
    requests(report)
    decisions(report)
    voice(report)
    spoken.run(report, asked)


def requests(report: Report) -> None:
    path = os.pathsep.join([str(HELD_OUT), os.environ.get("PYTHONPATH", "")])
    found = ask("agent.requests", environment={"PYTHONPATH": path})
    row = [found[key] for key in ("right", "requests", "called", "lines", "seconds")]
    caption = "Held-out requests, with the tool and every argument checked."
    report.table(REQUESTS, caption, {"the planner": row})


def decisions(report: Report) -> None:
    """Unseen requests for tools of third parties and for our own, with the planner and with the model."""
    from jackfield_local.agent.mind import lacking
    from jackfield_local.options import Options

    path = os.pathsep.join([str(HELD_OUT), os.environ.get("PYTHONPATH", "")])
    minds = {"the planner": "planner"}
    if lack := lacking(Options(mind="llama", model_path=os.environ.get(GGUF, ""))):
        report.note(SECTION, f"The language model is left out: {lack}.")
    else:
        minds["the model"] = "llama"
    rows: dict[str, list[float | None]] = {}
    for name, mind in minds.items():
        found: Any = ask("agent.decisions", environment={"PYTHONPATH": path, "BENCH_MIND": mind})
        for kind, figures in found.items():
            rows[f"{kind}: {name}"] = [
                figures.get(key) for key in ("requests", "tool", "made", "exact", "asked", "seconds")
            ]
    report.table(DECISIONS, "Requests that nothing was tuned to, each in a session of its own.", rows)
    if not os.environ.get("JACKFIELD_UTTERANCES"):
        report.note(SECTION, "Public requests are left out: JACKFIELD_UTTERANCES names their file.")


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
