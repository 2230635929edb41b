"""The benchmark scores the local agent as documented, and shows no row of the held-out part."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from bench import agent
from bench.agent import __main__ as command
from bench.agent import completion, conversations, criteria, dataset, requests
from bench.agent.dataset import Chosen, Request
from bench.agent.scores import Score
from bench.agent.sessions import Call, Question, Turn, schema_of, third_party_opening
from bench.report import Report, RunOptions
from jackfield.transport.events import FormRequest

FILES = ("third_party", "console", "spoken", "conversations")
TABLE = {"date": "2026-03-03", "time": "19:30", "party_size": 4, "name": "Marsh"}
REQUEST = Request("a table for four", "book_table", TABLE, ())


def judged(request: Request, turn: Turn) -> dict[str, float]:
    score = Score(shown=False)
    requests._judge(request, turn, third_party_opening("text", forms=True), score)
    return score.row()


@pytest.mark.parametrize("name", FILES)
def test_every_row_is_in_exactly_one_of_the_two_parts(name: str) -> None:
    both = [dataset.unseen(name, Chosen(development=part)) for part in (True, False)]
    assert all(both)
    assert sum(map(len, both)) == len(dataset.agent_test_module("unseen_requests").rows(name))
    assert not any(row in both[1] for row in both[0])


def test_a_sample_continues_where_the_previous_one_ended() -> None:
    whole = dataset.unseen("console", Chosen(development=True))
    first = dataset.unseen("console", Chosen(development=True, most=5))
    second = dataset.unseen("console", Chosen(development=True, most=5, first=5))
    assert [*first, *second] == whole[:10]


def test_the_held_out_part_shows_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    Score(shown=False).failed("said", "expected", "happened")
    assert capsys.readouterr() == ("", "")
    Score(shown=True).failed("said", "expected", "happened")
    assert "said" in capsys.readouterr().err


def test_arguments_are_compared_by_meaning_and_defaults_may_be_absent() -> None:
    train = schema_of("find_train")
    wanted = {"origin": "Ulm", "destination": "Basel", "depart": "2026-03-03T17:45:00+01:00"}
    found = {**wanted, "origin": "ulm.", "depart": "2026-03-03T16:45:00Z", "seats": 1}
    assert criteria.exact(found, wanted, train)
    assert criteria.exact(wanted, {**wanted, "seats": 1}, train)
    assert not criteria.exact({**wanted, "seats": 2}, wanted, train)
    assert not criteria.exact({**wanted, "depart": "tomorrow"}, wanted, train)
    assert not criteria.exact({**wanted, "depart": None}, wanted, train)


def test_a_write_with_another_argument_is_a_wrong_write() -> None:
    right = judged(REQUEST, Turn(calls=[Call("book_table", TABLE)]))
    assert (right["tool"], right["exact"], right["wrong writes"]) == (100, 100, 0)
    wrong = judged(REQUEST, Turn(calls=[Call("book_table", {**TABLE, "party_size": 2})]))
    assert (wrong["tool"], wrong["made"], wrong["exact"], wrong["wrong writes"]) == (100, 100, 0, 1)
    read = judged(REQUEST, Turn(calls=[Call("weather", {"city": "Oslo"})]))
    assert (read["tool"], read["made"], read["wrong writes"]) == (0, 0, 0)


def test_a_form_offers_the_arguments_without_making_the_call() -> None:
    row = judged(REQUEST, Turn(form=FormRequest("f", "book_table", TABLE)))
    assert (row["tool"], row["made"], row["offered"], row["wrong forms"]) == (100, 0, 100, 0)
    row = judged(REQUEST, Turn(form=FormRequest("f", "book_table", {**TABLE, "name": "dinner"})))
    assert (row["offered"], row["wrong forms"]) == (0, 1)
    incomplete = Turn(form=FormRequest("f", "book_table", {"date": "2026-03-03"}))
    assert judged(REQUEST, incomplete)["wrong forms"] == 0


def test_a_missing_value_is_asked_for_and_not_made_up() -> None:
    lacking = Request("a table for four tomorrow", "book_table", {}, ("time", "name"))
    for turn in (
        Turn(question=Question("book_table", "name")),
        Turn(form=FormRequest("f", "book_table", {"time": "19:30"})),
    ):
        assert judged(lacking, turn)["asked"] == 100
    for turn in (
        Turn(question=Question("book_table", "party_size")),
        Turn(question=Question("weather", "city")),
        Turn(form=FormRequest("f", "book_table", TABLE)),
        Turn(calls=[Call("book_table", TABLE)]),
    ):
        assert judged(lacking, turn)["asked"] == 0


@pytest.mark.parametrize(
    ("expected", "right", "wrong"),
    [
        (
            {"call": "weather", "args": {"city": "Oslo"}},
            Turn(calls=[Call("weather", {"city": "Oslo", "day": "2026-03-03"})]),
            Turn(calls=[Call("weather", {"city": "Bergen"})]),
        ),
        (
            {"ask": "time"},
            Turn(question=Question("book_table", "time")),
            Turn(question=Question("book_table", None)),
        ),
        (
            {"answer": ["2026-042"]},
            Turn(said="Invoice 2026-042."),
            Turn(said="Invoice 2026-042.", calls=[Call("send_invoice", {})]),
        ),
        ({"no_call": True}, Turn(said="Bye."), Turn(calls=[Call("weather", {"city": "Oslo"})])),
    ],
)
def test_a_turn_is_right_if_it_meets_an_expectation(expected: Any, right: Turn, wrong: Turn) -> None:
    writers = dataset.agent_test_module("agent_tools").WRITERS
    assert conversations._is_met(expected, right, writers)
    assert not conversations._is_met(expected, wrong, writers)


def test_the_user_of_the_bench_completes_every_third_party_tool_with_valid_values() -> None:
    for description, schema, _ in dataset.agent_test_module("agent_tools").TOOLS.values():
        filled = {name: completion.likely(told) for name, told in schema["properties"].items()}
        validator = jsonschema_rs.validator_for(schema, validate_formats=True)
        assert validator.is_valid(filled), description
    assert completion.in_words("2026-03-03T19:30:00+01:00") == "3 March 2026 at 19:30"
    assert completion.in_words("2026-03-03") == "3 March 2026"
    assert completion.in_words(["web", "login"]) == "web and login"
    assert completion.in_words(21.5) == "21.5"


def test_the_report_has_a_table_for_every_figure_of_every_set() -> None:
    assert list(command.SETS) == list(agent.SETS)
    for table in (agent.DECISIONS, agent.COMPLETION, agent.CONVERSATIONS):
        assert len(agent._FIGURES[table.name]) == len(table.columns)


def test_each_set_is_scored_once_with_the_router_and_on_the_held_out_part(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = []

    def figures(module: str, arguments: list[str], patience: float) -> dict[str, dict[str, float]]:
        asked.append((module, *arguments))
        kinds: dict[str, dict[str, float]] = {
            "completion": {"valid": 90, "requests": 3},
            "conversations": {"turns": 4, "right": 50},
        }
        assert patience > 0
        return {arguments[0]: kinds.get(arguments[0], {"requests": 2, "tool": 100})}

    monkeypatch.setattr(agent, "run_module", figures)
    monkeypatch.setenv(agent.GGUF, str(tmp_path / "absent.gguf"))
    report = Report()
    agent.decisions(report, RunOptions(1))
    expected = [
        ("agent", name, "--decider", "router", "--part", "held-out", "--most", "0") for name in agent.SETS
    ]
    assert asked == expected
    rows = {name: list(each.rows) for name, each in report.tables.items()}
    assert rows["completion"] == ["completion: the router"]
    assert rows["conversations"] == ["conversations: the router"]
    assert len(rows["decisions"]) == len(agent.SETS) - 2


def test_requests_are_scored_from_the_command_line() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "bench.agent", "third_party", "console", "--most", "2"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    found = json.loads(ran.stdout.splitlines()[-1])
    assert [row["requests"] for row in found.values()] == [2, 2]
    assert "## third_party: router" in ran.stderr
