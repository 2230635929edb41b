"""Quality and speed of the local agent: decisions, recognition and speech."""

from __future__ import annotations

import os
from typing import Any

from bench.agent.dataset import UTTERANCES
from bench.agent.scores import Row
from bench.host import voice_latency
from bench.report import Report, Rows, RunOptions, Table
from bench.subprocesses import run_module

SETS = (
    "third_party",
    "third_party_voice",
    "earlier",
    "public",
    "console",
    "spoken",
    "sample",
    "completion",
    "conversations",
)
"""The sets that can be scored; `bench.agent.__main__` has a function for each."""

ROUTER_ONLY = frozenset(("third_party_voice", "completion"))
"""The model decides the same in text and voice, and asks for missing values like the router without forms."""

MODEL_PUBLIC = 65
"""The number of public requests, a fair sample for a model that takes seconds for each."""

PATIENCE = 3 * 3600
"""Timeout in seconds for a set with the model."""

SECTION = "The agent on this machine"
DECISIONS = Table(
    "decisions",
    SECTION,
    "requests, by decider",
    {
        "requests": ".0f",
        "right tool, %": ".0f",
        "calls made, %": ".0f",
        "all arguments right, %": ".0f",
        "in a call or form, %": ".0f",
        "asked back where due, %": ".0f",
        "answer right, %": ".0f",
        "wrong writes": ".0f",
        "forms with a wrong value": ".0f",
        "seconds per request": ".2f",
    },
)
COMPLETION = Table(
    "completion",
    SECTION,
    "how the values are completed",
    {
        "requests": ".0f",
        "ends in a valid call, %": ".0f",
        "all arguments right, %": ".0f",
        "wrong writes": ".0f",
        "exchanges": ".0f",
        "most exchanges": ".0f",
    },
)
CONVERSATIONS = Table(
    "conversations",
    SECTION,
    "conversations, by decider",
    {
        "conversations": ".0f",
        "turns": ".0f",
        "turns right, %": ".0f",
        "of them after a yes": ".0f",
        "conversations all right": ".0f",
        "wrong writes": ".0f",
        "seconds per turn": ".2f",
    },
)
VOICE = Table(
    "voice",
    SECTION,
    "what",
    {"CPU seconds per second of audio": ".3f", "words wrong": ".0f", "of": ".0f"},
)
TABLES = (DECISIONS, COMPLETION, CONVERSATIONS, VOICE, voice_latency.SPOKEN)

GGUF = "JACKFIELD_TEST_GGUF"
_FIGURES = {
    "decisions": (
        "requests",
        "tool",
        "made",
        "exact",
        "offered",
        "asked",
        "answer",
        "wrong writes",
        "wrong forms",
        "seconds",
    ),
    "completion": ("requests", "valid", "exact", "wrong writes", "exchanges", "most exchanges"),
    "conversations": ("conversations", "turns", "right", "after yes", "whole", "wrong writes", "seconds"),
}
"""The figures of a table in the order of its columns, under the names that a set returns."""


def run(report: Report, asked: RunOptions) -> None:
    decisions(report, asked)
    voice(report)
    voice_latency.run(report, asked)


def decisions(report: Report, asked: RunOptions) -> None:
    """Score the held-out part of every set, with the router and with the model."""
    deciders = {"the router": "router"}
    if lack := _lacking():
        report.note(SECTION, f"The language model is left out: {lack}.")
    else:
        deciders["the model"] = "model"
    filled: dict[str, Row] = {}
    for name, decider in deciders.items():
        for each in SETS:
            if decider == "model" and each in ROUTER_ONLY:
                continue
            most = MODEL_PUBLIC if decider == "model" and each == "public" and not asked.full else 0
            arguments = [each, "--decider", decider, "--part", "held-out", "--most", str(most)]
            found: Any = run_module("agent", arguments=arguments, patience=PATIENCE)
            filled |= {f"{kind}: {name}": figures for kind, figures in found.items()}
    for table, caption, own in (
        (DECISIONS, "Held-out requests, each in its own session.", "requests"),
        (COMPLETION, "Every held-out request for a third-party tool, until a tool is called.", "valid"),
        (CONVERSATIONS, "Held-out conversations.", "turns"),
    ):
        rows = {
            name: [figures.get(each) for each in _FIGURES[table.name]]
            for name, figures in filled.items()
            if own in figures and (own == "valid" or "valid" not in figures)
        }
        report.table(table, caption, rows)
    if not os.environ.get(UTTERANCES):
        report.note(SECTION, f"Public requests are left out: set {UTTERANCES} to the path of their file.")


def _lacking() -> str:
    from jackfield_local.model_file import unavailable_reason
    from jackfield_local.settings import LocalSettings

    return unavailable_reason(LocalSettings(tool_selection="model", model_path=os.environ.get(GGUF, "")))


def voice(report: Report) -> None:
    from jackfield_local.voice.engines import missing_packages

    if lacking := missing_packages():
        report.note(SECTION, f"Speech models left out; not installed: {', '.join(lacking)}.")
        return
    found = run_module("agent.voice")
    rows: Rows = {
        "recognition of a human voice": [found["hearing"], found["wrong"], found["words"]],
        "synthesis": [found["speaking"], None, None],
    }
    caption = (
        f"The speech models, with {found['heard']:.0f} seconds of a human voice and "
        f"{found['said']:.0f} of synthesis."
    )
    report.table(VOICE, caption, rows)
