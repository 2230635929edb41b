"""The answer to a call as a person reads it: data on standard output, all about it on standard error."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import click

from jackfield_cli.report import echo

ALREADY_SHOWN = ("confirmation_required", "tool_progress")
"""Events that were shown when they came."""


def print_answer(shown: Mapping[str, Any], *, reads: bool) -> None:
    """What came of a call, what its tool asked for besides, and what each policy decided."""
    answer, decisions = shown["answer"], shown["decisions"]
    replayed = decisions.get("duplicates") == "replayed"
    if answer["ok"]:
        echo(json.dumps(answer["data"], indent=2, ensure_ascii=False))
        for intent in answer["intents"]:
            _aside(f"intent {intent['type']}{_members(intent, 'type')}")
    else:
        first, *others = _failure(answer["error"], reads=reads)
        echo(click.style(first, fg="red"), err=True)
        for line in others:
            _aside(f"  -> {line}")
    for event in shown["events"]:
        if event["event"] not in ALREADY_SHOWN:
            _aside(f"told the client: {event['event']}{_members(event, 'event')}")
    trail = ", ".join(f"{name} {decision}" for name, decision in decisions.items()) or "none"
    _aside(f"policies: {trail}")
    meta = answer["meta"]
    tool = f"{meta['toolId']} {meta['toolVersion']}".strip()
    _aside(
        f"{tool} {'answered before, ' if replayed else ''}in {meta['duration']} ms, registry "
        f"{meta['registryVersion']}, session {shown['session']}, turn {shown['turn']}"
    )


def _aside(line: str) -> None:
    # Below each other, so that the second line of a text is not taken for something of its own.
    echo(click.style(line.replace("\n", "\n     "), dim=True), err=True)


def _members(whole: Mapping[str, Any], name: str) -> str:
    rest = {key: value for key, value in whole.items() if key != name}
    return f" {json.dumps(rest, ensure_ascii=False, default=str, skipkeys=True)}" if rest else ""


def _failure(error: Mapping[str, Any], *, reads: bool) -> Iterator[str]:
    """What went wrong, and what there is to know about it, a line each."""
    if error["type"] == "CONFIRMATION_REQUIRED":
        # The answer's own sentences tell the model what to say; the person has just read the card.
        yield "CONFIRMATION_REQUIRED: nothing was run."
        return
    yield f"{error['type']}: {error['message']}{_place(error)}"
    if error.get("partialSideEffects") and not reads:
        yield "It may have changed something all the same."
    if error.get("suggestion"):
        yield error["suggestion"]


def _place(error: Mapping[str, Any]) -> str:
    """Where JSON stops being JSON, which the sentence for the model leaves out."""
    details = error.get("details")
    faults = details.get("errors") if isinstance(details, dict) else None
    first = faults[0] if isinstance(faults, list) and faults else None
    where = first.get("path") if isinstance(first, dict) else None
    return f" ({where})" if isinstance(where, str) and where.startswith("line ") else ""
