"""Faults with real processes: killed hosts, several hosts on one store, concurrent use of tokens."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

HOST = Path(__file__).with_name("chaos_host.py")


class Machine:
    """One store and one effects file, with hosts that are started and killed."""

    def __init__(self, folder: Path) -> None:
        self.store, self.effects = folder / "jackfield.db", folder / "effects"

    def start(self, **script: Any) -> subprocess.Popen[str]:
        command = [sys.executable, str(HOST), str(self.store), str(self.effects), json.dumps(script)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, **script: Any) -> list[Any]:
        """Run a host that is not killed; return its answers."""
        host = self.start(**script)
        out, err = host.communicate(timeout=120)
        assert host.returncode == 0, err
        return [json.loads(line) for line in out.splitlines()]

    def run_killed(self, **script: Any) -> None:
        host = self.start(**script)
        _, err = host.communicate(timeout=120)
        assert host.returncode == -signal.SIGKILL, err

    def effects_of(self, n: int) -> int:
        return self.all_effects().count(str(n))

    def all_effects(self) -> list[str]:
        return self.effects.read_text().split("\n") if self.effects.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize("tool", ["write", "rewrite"])
@pytest.mark.parametrize(
    ("die", "effects"),
    [
        ("before the claim", 0),
        ("after the claim", 0),
        ("in the middle", 0),
        ("after the effect", 1),
        ("after the record", 1),
    ],
)
def test_a_host_killed_during_a_call_never_repeats_its_effect_and_reports_the_doubt(
    machine: Machine, tool: str, die: str, effects: int
) -> None:
    machine.run_killed(session="s", tool=tool, calls=[7], die=die)
    assert machine.effects_of(7) == effects

    first, again = machine.run(session="s", tool=tool, calls=[7], times=2)

    assert first.get("error") == again.get("error")
    assert first.get("data") == again.get("data")
    recorded = die == "after the record"
    if die == "before the claim" or tool == "rewrite" or recorded:
        # Never begun, finished and recorded, or harmless to repeat.
        assert first["ok"] is True
        assert machine.effects_of(7) == (1 if recorded or die != "after the effect" else 2)
    else:
        assert first["error"]["partialSideEffects"] is True
        assert "may or may not" in first["error"]["message"]
        assert machine.effects_of(7) == effects, "in doubt, so not run again"


def test_hosts_killed_at_random_repeat_nothing_and_lose_nothing_acknowledged(
    machine: Machine,
) -> None:
    chance = random.Random(20261116)
    acknowledged: dict[int, Any] = {}
    for moment in ("an answer", "an effect") * 3:
        with machine.start(session="s", calls=list(range(40))) as host:
            assert host.stdout
            seen, enough = "", chance.randint(1, 8)
            if moment == "an answer":
                seen = "".join(host.stdout.readline() for _ in range(10 + enough))
            else:
                enough += len(machine.all_effects())
                while len(machine.all_effects()) < enough and host.poll() is None:
                    time.sleep(0.001)
            host.kill()
            seen += host.stdout.read()
        for line in seen.splitlines():
            if line.endswith("}"):
                answer = json.loads(line)
                if answer["ok"]:
                    acknowledged.setdefault(answer["data"]["n"], answer)
    assert acknowledged
    final = machine.run(session="s", calls=list(range(40)))
    for n, answer in enumerate(final):
        assert machine.effects_of(n) <= 1
        if n in acknowledged:
            assert answer == acknowledged[n]
        if answer["ok"]:
            assert machine.effects_of(n) == 1
        else:
            assert answer["error"]["partialSideEffects"] is True


def test_a_call_delivered_by_two_hosts_at_once_has_one_effect_and_one_answer(machine: Machine) -> None:
    hosts = [machine.start(session="s", calls=[1], times=50) for _ in range(2)]
    answers = [json.loads(line) for host in hosts for line in host.communicate(timeout=120)[0].splitlines()]
    assert len(answers) == 100
    assert all(answer == answers[0] for answer in answers)
    assert machine.effects_of(1) == 1


def test_ten_thousand_deliveries_of_a_thousand_calls_have_a_thousand_effects(
    machine: Machine,
) -> None:
    calls = list(range(1000))
    hosts = [machine.start(session="s", calls=calls, times=times) for times in (3, 3, 2, 2)]
    answers = [json.loads(line) for host in hosts for line in host.communicate(timeout=300)[0].splitlines()]
    assert len(answers) == 10_000
    assert all(answer["ok"] for answer in answers)
    lines = machine.effects.read_text().split()
    assert len(lines) == 1000
    assert len(set(lines)) == 1000


def test_the_same_id_with_other_arguments_is_a_conflict_after_a_restart_too(
    machine: Machine, tmp_path: Path
) -> None:
    machine.run(session="s", tool="write", calls=[3])
    (answer,) = machine.run(session="s", tool="rewrite", calls=[3])
    assert answer["error"]["type"] == "CONFLICT"
    assert machine.effects_of(3) == 1


def test_a_token_survives_its_host_and_only_one_of_ten_hosts_redeems_it(
    machine: Machine,
) -> None:
    pending, event = machine.run(session="s", tool="ask", calls=[5])
    assert pending["error"]["type"] == "CONFIRMATION_REQUIRED"
    assert event["token"] not in json.dumps(pending)
    assert machine.effects_of(5) == 0

    assert machine.run(session="other", redeem=event["token"]) == [None]
    hosts = [machine.start(session="s", redeem=event["token"]) for _ in range(10)]
    answers = [json.loads(host.communicate(timeout=120)[0].splitlines()[0]) for host in hosts]
    assert all(answer == answers[0] for answer in answers)
    assert answers[0]["data"]["n"] == 5
    assert machine.effects_of(5) == 1
