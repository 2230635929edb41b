"""The fault campaign: a small campaign passes, and each check detects its fault."""

from __future__ import annotations

import asyncio
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from faults import __main__ as command
from faults import campaign, report
from faults.campaign import Result, Scale
from faults.checks import (
    CARD,
    CONTRADICTS,
    DIFFERS,
    DOUBLED,
    KINDS,
    LOST,
    REFUSED,
    UNAPPROVED,
    Fault,
    check_call,
)
from faults.client import events_of_call
from faults.deployment import BOOK, NOTE
from faults.effect_log import Effect, EffectLog
from faults.record import CallRecord, EventRecord, Statement

PAGE = Path(__file__).parents[1] / "docs" / "reliability.md"

EFFECT = Effect("e1", after=10.0, before=10.1)
DATA = {"call": "c", "effect": "e1"}


def test_a_small_campaign_of_kills_and_pauses_finds_no_fault(tmp_path: Path) -> None:
    said: list[str] = []
    scale = Scale(kills=4, pauses=2, calls=2, hosts=3, lanes=2, lease=1.0, expiry=5.0, seed=1)

    result = asyncio.run(campaign.run(tmp_path, scale, said.append))

    assert result.faults == [], report.broken(result.faults)
    assert (result.kills.total(), result.pauses.total()) == (4, 2)
    assert len(result.calls) == 12
    assert result.effects > 0
    assert result.effects == len((tmp_path / "effects.log").read_text("utf-8").splitlines())
    assert any("2 of 2 pauses" in line for line in said)
    assert "| kills | 4 |" in report.report(result)


def call(*statements: Statement, tool: str = BOOK, sent: set[str] | None = None, **fields: Any) -> CallRecord:
    made = CallRecord("c", "key-of-c", tool, 0.0, 0.0, "approve", **fields)
    made.statements += statements
    made.sent = {"approve"} if sent is None else sent
    return made


def said(state: str, at: float, how: str = "execute", **fields: Any) -> Statement:
    """Return an answer to a question that was asked at this time and answered at once."""
    fields.setdefault("denies_effects", state in ("declined", "expired", "never_run", "waiting", "unheard"))
    if state == "done":
        fields.setdefault("data", DATA)
    if state == "waiting":
        fields.setdefault("token", "t")
    return Statement(how, 1, at, at + 0.01, state, **fields)


GOOD = {
    "done, and replayed": (call(said("waiting", 9), said("done", 11), said("done", 12)), [EFFECT]),
    "in doubt, and done later": (call(said("in_doubt", 9), said("running", 10), said("done", 11)), [EFFECT]),
    "declined without an effect": (call(said("declined", 9), sent={"decline"}), []),
    "not run so far, and run later": (call(said("unheard", 9), said("done", 11)), [EFFECT]),
    "waiting, answered while it took effect": (call(said("waiting", 10.05)), [EFFECT]),
    "in doubt for good": (call(said("in_doubt", 12)), [EFFECT]),
    "unavailable after the outcome": (call(said("done", 11), said("unavailable", 12)), [EFFECT]),
}

BAD = {
    "two effects": (call(said("done", 11)), [EFFECT, EFFECT._replace(name="e2")], DOUBLED),
    "an effect that nobody approved": (call(said("done", 11), sent=set()), [EFFECT], UNAPPROVED),
    "done without an effect": (call(said("done", 11)), [], CONTRADICTS),
    "done before the effect": (call(said("done", 9)), [EFFECT], CONTRADICTS),
    "done with another effect": (call(said("done", 11, data={"effect": "e9"})), [EFFECT], CONTRADICTS),
    "waiting after the effect": (call(said("waiting", 11)), [EFFECT], CONTRADICTS),
    "unheard of after the effect": (call(said("unheard", 11)), [EFFECT], CONTRADICTS),
    "declined, and run later": (call(said("declined", 9)), [EFFECT], CONTRADICTS),
    "never run, after it ran": (call(said("never_run", 11)), [EFFECT], CONTRADICTS),
    "failed without side effects, after it ran": (
        call(said("failed", 11, denies_effects=True)),
        [EFFECT],
        CONTRADICTS,
    ),
    "an outcome that is gone": (call(said("done", 11), said("in_doubt", 12)), [EFFECT], LOST),
    "an outcome that waits again": (call(said("done", 9.5), said("waiting", 9.8)), [EFFECT], LOST),
    "two outcomes": (call(said("declined", 11), said("expired", 12)), [], DIFFERS),
    "other bytes": (
        call(said("done", 11, envelope='{"a":1}'), said("done", 12, envelope='{"a":2}')),
        [EFFECT],
        DIFFERS,
    ),
    "another card": (call(said("waiting", 1), said("waiting", 2, token="u")), [], CARD),
    "no card": (call(said("waiting", 1, token=None)), [], CARD),
    "a session that is gone": (call(said("refused", 1)), [], REFUSED),
}


@pytest.mark.parametrize("name", GOOD)
def test_permitted_outcomes_are_not_faults(name: str) -> None:
    made, effects = GOOD[name]
    assert check_call(made, effects) == []


@pytest.mark.parametrize("name", BAD)
def test_each_check_detects_its_fault(name: str) -> None:
    made, effects, kind = BAD[name]
    assert kind in {each.kind for each in check_call(made, effects)}


@pytest.mark.parametrize(
    ("event", "effects", "kind"),
    [
        (EventRecord("done", DATA), [], CONTRADICTS),
        (EventRecord("declined"), [EFFECT], CONTRADICTS),
        (EventRecord("expired"), [EFFECT], DIFFERS),
        (EventRecord("asked", token="u"), [EFFECT], CARD),
    ],
)
def test_events_are_checked_against_the_log_and_the_answers(
    event: EventRecord, effects: list[Effect], kind: str
) -> None:
    made = call(said("waiting", 9), said("done", 11))
    made.event_records.append(event)
    assert kind in {each.kind for each in check_call(made, effects)}


def test_events_of_other_calls_and_recoverable_errors_are_ignored() -> None:
    made = call(tool=NOTE, call_id="mine")
    error = {"type": "tool_error", "callId": "mine", "recoverable": True, "id": 3}
    messages = [error, {**error, "recoverable": False}, {**error, "callId": "theirs"}]
    assert [each.state for each in events_of_call(made, messages)] == ["unavailable", "failed"]


def test_a_growing_log_is_read_without_its_incomplete_last_line(
    tmp_path: Path,
) -> None:
    log, file = EffectLog(tmp_path), tmp_path / "effects.log"
    log.look()
    file.write_text("a e1 1.5\nb e")
    log.look()
    assert list(log.effects) == ["a"]
    with file.open("a") as more:
        more.write("2 2.5\n")
    log.look()
    (effect,) = log.effects["b"]
    assert (effect.name, effect.after) == ("e2", 2.5)


def test_a_result_replaces_only_the_marked_section_of_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nfigures of yesterday\n{report.END}\nafter\n")
    result = Result(Scale(seed=7), kills=Counter(any=3), faults=[Fault(LOST, "c", "gone")])

    report.write(result, page)

    text = page.read_text("utf-8")
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "yesterday" not in text
    assert "| kills | 3 |" in text
    assert f"| {LOST} | 1 |" in text
    page.write_text("no marks")
    with pytest.raises(ValueError, match="has no section"):
        report.write(result, page)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [(["--hosts", "2"], "it takes three hosts"), (["--kills", "-1"], "counts are positive")],
)
def test_invalid_campaign_options_are_rejected(
    wrong: list[str], complaint: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["faults", *wrong])
    with pytest.raises(SystemExit):
        command.main()
    assert complaint in capsys.readouterr().err


def test_the_page_shows_a_complete_campaign_without_faults() -> None:
    section = PAGE.read_text("utf-8").partition(report.BEGIN)[2].partition(report.END)[0]
    rows = dict(re.findall(r"^\| (.+?) \| (.+?) \|$", section, re.MULTILINE))
    assert int(rows["kills"]) >= 200
    assert int(rows["pauses"]) >= 50
    assert {kind: rows[kind] for kind in KINDS} == dict.fromkeys(KINDS, "0")
