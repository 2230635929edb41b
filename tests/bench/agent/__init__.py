"""How good and how fast the agent is that needs no service: its decisions, recognition and speech."""

from __future__ import annotations

import os
from typing import Any

from bench.agent.material import UTTERANCES
from bench.agent.scores import Row
from bench.hosting import spoken
from bench.programs import ask
from bench.recording import Asked, Report, Rows, Table

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
"""What can be scored; `bench.agent.__main__` has a function for each."""

ROUTER_ONLY = frozenset(("third_party_voice", "completion"))
"""The model decides alike in text and voice, and asks for missing values as the router does without forms."""

MODEL_PUBLIC = 65
"""So many public requests are a fair sample for a model that takes seconds for each."""

PATIENCE = 3 * 3600
"""Seconds after which a set with the model hangs."""

SECTION = "The agent on this machine"
DECISIONS = Table(
    "decisions",
    SECTION,
    "requests, and who decides",
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
        "a request, seconds": ".2f",
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
    "conversations, and who decides",
    {
        "conversations": ".0f",
        "turns": ".0f",
        "turns right, %": ".0f",
        "of them after a yes": ".0f",
        "conversations all right": ".0f",
        "wrong writes": ".0f",
        "a turn, seconds": ".2f",
    },
)
VOICE = Table(
    "voice",
    SECTION,
    "what",
    {"CPU, seconds a second of sound": ".3f", "words wrong": ".0f", "of": ".0f"},
)
TABLES = (DECISIONS, COMPLETION, CONVERSATIONS, VOICE, spoken.SPOKEN)

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
"""The figures of a table in the order of its columns, by the names under which a set returns them."""


def run(report: Report, asked: Asked) -> None:
    decisions(report, asked)
    voice(report)
    spoken.run(report, asked)


def decisions(report: Report, asked: Asked) -> None:
    """The held-out part of every set, with the router and with the model."""
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
            found: Any = ask("agent", arguments=arguments, patience=PATIENCE)
            filled |= {f"{kind}: {name}": figures for kind, figures in found.items()}
    for table, caption, own in (
        (DECISIONS, "Held-out requests, each in a session of its own.", "requests"),
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
        report.note(SECTION, f"Public requests are left out: {UTTERANCES} names their file.")


def _lacking() -> str:
    from jackfield_local.model_file import unavailable_reason
    from jackfield_local.settings import LocalSettings

    return unavailable_reason(LocalSettings(tool_selection="model", model_path=os.environ.get(GGUF, "")))


def voice(report: Report) -> None:
    from jackfield_local.voice.engines import missing_packages

    if lacking := missing_packages():
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
