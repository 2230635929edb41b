"""The capacity model of docs/scaling.md agrees with a simulation, and its command is usable."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from cluster import service_times
from cluster.capacity import Inputs, main, plan, simulate
from cluster.service_times import CpuTime, ServiceTimes, measured

SMALL = Inputs(sessions_per_day=40_000, session_minutes=1.0, host_cores=1.0)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_simulation_agrees_with_the_model(seed: int) -> None:
    expected, seen = plan(SMALL), simulate(SMALL, seconds=400.0, seed=seed)
    assert seen.host_cores == pytest.approx(expected.host_cores, rel=0.2)
    assert seen.database_cores == pytest.approx(expected.database_cores, rel=0.2)
    assert seen.open_sessions == pytest.approx(expected.open_sessions, rel=0.2)
    assert seen.calls / 400 == pytest.approx(expected.calls_per_second, rel=0.2)


def test_planned_cores_keep_queues_short_and_fewer_do_not() -> None:
    text = replace(SMALL, voice_share=0.0, sessions_per_day=2_000_000)
    assert simulate(text, seconds=20.0).wait_p99_ms < 20.0
    # Planned to 100 % and beyond, work waits ever longer.
    assert simulate(replace(text, use=1.0), seconds=20.0).wait_p99_ms > 20.0


def test_the_model_uses_the_means_of_the_measured_times() -> None:
    calls = measured().call
    assert Inputs().call_host_us == pytest.approx(sum(each.host for each in calls) / len(calls))
    assert len(calls) >= 100
    assert len(set(calls)) > 10, "not measured one by one"


def test_the_simulation_draws_from_the_measured_times() -> None:
    # The same means, but one piece of work in ten takes nine times as long as the others.
    even, skewed = [CpuTime(1800, 1800)] * 10, [CpuTime(1000, 1000)] * 9 + [CpuTime(9000, 9000)]
    inputs = replace(
        SMALL,
        voice_share=0.0,
        sessions_per_day=1_000_000,
        **{f"{kind}_{part}_us": 1800.0 for kind in ServiceTimes._fields for part in ("host", "database")},
    )
    steady, bursty = (
        simulate(inputs, seconds=30.0, times=ServiceTimes(each, each, each)) for each in (even, skewed)
    )
    assert bursty.host_cores == pytest.approx(steady.host_cores, rel=0.1)
    assert bursty.wait_p99_ms > 1.5 * steady.wait_p99_ms


def test_measured_times_can_be_written_and_read(tmp_path: Path) -> None:
    times = ServiceTimes(*([CpuTime(100 * number, 7) for number in range(1, 4)] for _ in range(3)))
    times.write(tmp_path / "times.json")
    assert ServiceTimes.read(tmp_path / "times.json") == times
    assert "| a message, the host | 200 | 200 |" in service_times.summary(times)


def test_twice_the_sessions_need_twice_the_cores() -> None:
    once, twice = (plan(Inputs(sessions_per_day=count)) for count in (1e6, 2e6))
    assert twice.host_cores == pytest.approx(2 * once.host_cores)
    assert twice.database_cores == pytest.approx(2 * once.database_cores)
    assert twice.host_machines > once.host_machines
    assert not plan(Inputs(sessions_per_day=1e9)).fits_one_database


def test_the_command_prints_plan_and_simulation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--sessions-per-day", "1000", "--session-minutes", "1", "--simulate", "5"]) == 0
    said = capsys.readouterr().out
    assert "host machines" in said
    assert "wait p99 ms" in said


def test_impossible_inputs_are_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--use", "2"])
    assert "between 0 and 1" in capsys.readouterr().err
