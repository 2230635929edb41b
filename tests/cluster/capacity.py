"""A model of the machines and the cost of a deployment, and a simulation that checks it.

    python -m cluster.capacity --help       (with tests on PYTHONPATH)

The model multiplies the load of the busiest hour by the mean of the measured CPU times. The simulation begins
sessions at random, draws the CPU time of each session, call and message from those that were measured
(`cluster.service_times`), runs the work on the cores of the model, and reports how long it waited.
"""

from __future__ import annotations

import argparse
import heapq
import math
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Annotated, NamedTuple, get_type_hints

from cluster.service_times import ServiceTimes, draw, mean, measured


def _mean_host(kind: str) -> float:
    return mean(getattr(measured(), kind))[0]


def _mean_database(kind: str) -> float:
    return mean(getattr(measured(), kind))[1]


@dataclass(frozen=True)
class Inputs:
    """The load, the measured figures and the prices; docs/scaling.md says where each figure comes from."""

    sessions_per_day: Annotated[float, "sessions that begin on a day"] = 1_000_000
    peak_factor: Annotated[float, "load of the busiest hour, relative to the mean hour"] = 2.5
    voice_share: Annotated[float, "part of the sessions that are spoken"] = 0.3
    session_minutes: Annotated[float, "mean length of a session"] = 4.0
    calls_per_session: Annotated[float, "tool calls in a session"] = 6.0
    messages_per_session: Annotated[float, "messages of the user in a text session"] = 8.0
    call_host_us: Annotated[float, "CPU time of a host for a call"] = field(
        default_factory=partial(_mean_host, "call")
    )
    call_database_us: Annotated[float, "CPU time of the database for a call"] = field(
        default_factory=partial(_mean_database, "call")
    )
    session_host_us: Annotated[float, "CPU time of a host for the start and end of a session"] = field(
        default_factory=partial(_mean_host, "session")
    )
    session_database_us: Annotated[float, "CPU time of the database for a session"] = field(
        default_factory=partial(_mean_database, "session")
    )
    message_host_us: Annotated[float, "CPU time of a host for a message and its answer"] = field(
        default_factory=partial(_mean_host, "message")
    )
    message_database_us: Annotated[float, "CPU time of the database for a message"] = field(
        default_factory=partial(_mean_database, "message")
    )
    standby: Annotated[float, "CPU time of primary and standby, relative to a primary alone"] = 1.5
    frame_host_us: Annotated[float, "CPU time of a host for 20 ms of sound, in and out"] = 82.0
    session_kb: Annotated[float, "memory of a host for an open session"] = 56.0
    use: Annotated[float, "part of a core that is planned, so that queues stay short"] = 0.6
    host_cores: Annotated[float, "cores of a machine for hosts, with one worker each"] = 8.0
    database_cores: Annotated[float, "cores of the largest database server to plan with"] = 32.0
    host_price: Annotated[float, "price of a machine for hosts, per month"] = 200.0
    database_core_price: Annotated[float, "price of a core of the database, per month, with its standby"] = (
        100.0
    )


class Capacity(NamedTuple):
    """What a load needs in the busiest hour."""

    sessions_per_second: float
    open_sessions: float
    calls_per_second: float
    host_cores: float
    """Cores that are busy with hosts, on average."""
    database_cores: float
    host_machines: int
    """Machines for hosts, with one more in case one fails."""
    database_cores_planned: int
    memory_gb: float
    """Memory of all open sessions."""
    month: float
    """Price of a month, without the model provider."""
    fits_one_database: bool


def plan(inputs: Inputs) -> Capacity:
    """Compute the machines for a load."""
    rate = inputs.sessions_per_day / 86_400 * inputs.peak_factor
    seconds = inputs.session_minutes * 60
    calls = rate * inputs.calls_per_session
    frames = rate * inputs.voice_share * seconds * 50
    messages = rate * (1 - inputs.voice_share) * inputs.messages_per_session
    host = (
        rate * inputs.session_host_us
        + calls * inputs.call_host_us
        + messages * inputs.message_host_us
        + frames * inputs.frame_host_us
    ) / 1e6
    database = inputs.standby * (
        rate * inputs.session_database_us
        + calls * inputs.call_database_us
        + messages * inputs.message_database_us
    )
    database /= 1e6
    machines = math.ceil(host / inputs.use / inputs.host_cores) + 1
    planned = math.ceil(database / inputs.use)
    return Capacity(
        sessions_per_second=rate,
        open_sessions=rate * seconds,
        calls_per_second=calls,
        host_cores=host,
        database_cores=database,
        host_machines=machines,
        database_cores_planned=planned,
        memory_gb=rate * seconds * inputs.session_kb / 1e6,
        month=machines * inputs.host_price + planned * inputs.database_core_price,
        fits_one_database=planned <= inputs.database_cores,
    )


class Simulated(NamedTuple):
    """What the simulation saw."""

    sessions: int
    calls: int
    host_cores: float
    database_cores: float
    open_sessions: float
    wait_p99_ms: float
    """How long work waited for a core of the hosts or of the database, beyond its own CPU time."""


class _Cores:
    """Cores that take the next piece of work when one is free."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.busy = 0.0
        self._free = [0.0] * count

    def run(self, at: float, seconds: float) -> float:
        """Run a piece of work that arrives at a time; return when it is done."""
        begins = max(at, heapq.heappop(self._free))
        heapq.heappush(self._free, begins + seconds)
        self.busy += seconds
        return begins + seconds


class _Work(NamedTuple):
    """A call, a message or the start of a session, at a moment."""

    at: float
    kind: str


class _Costs:
    """Draws measured times; their means are scaled to those of the inputs."""

    def __init__(self, inputs: Inputs, times: ServiceTimes, chance: random.Random) -> None:
        self._chance = chance
        self._samples = times._asdict()
        self._factors = {}
        for kind, samples in self._samples.items():
            host, database = mean(samples)
            self._factors[kind] = (
                getattr(inputs, f"{kind}_host_us") / host / 1e6,
                getattr(inputs, f"{kind}_database_us") * inputs.standby / database / 1e6,
            )

    def draw(self, kind: str) -> tuple[float, float]:
        """Return the seconds of host and database for one piece of work."""
        found, factors = draw(self._chance, self._samples[kind]), self._factors[kind]
        return found.host * factors[0], found.database * factors[1]


def simulate(
    inputs: Inputs, seconds: float = 120.0, seed: int = 1, times: ServiceTimes | None = None
) -> Simulated:
    """Simulate the busiest hour on the planned cores; sound takes its share of the hosts' cores.

    Sessions begin at random (Poisson) and their lengths are exponential, which nobody has measured. CPU
    times are drawn from `times`, by default those of the repository.
    """
    chance, capacity = random.Random(seed), plan(inputs)
    hosts = _Cores(max(1, round((capacity.host_machines - 1) * inputs.host_cores)))
    database = _Cores(max(1, capacity.database_cores_planned))
    window = 3 * inputs.session_minutes * 60, 3 * inputs.session_minutes * 60 + seconds
    events: list[_Work] = []
    at, open_seconds, frames = 0.0, 0.0, 0.0
    while at < window[1]:
        at += chance.expovariate(capacity.sessions_per_second)
        length = chance.expovariate(1 / (inputs.session_minutes * 60))
        inside = max(0.0, min(at + length, window[1]) - max(at, window[0]))
        open_seconds += inside
        is_voice = chance.random() < inputs.voice_share
        frames += inside * 50 if is_voice else 0.0
        events += _session(chance, inputs, at, length, is_voice=is_voice)
    events = sorted(each for each in events if window[0] <= each.at < window[1])
    sound = frames * inputs.frame_host_us / 1e6
    # Sound arrives evenly, so it slows every core down by its share.
    slower = 1 / max(0.05, 1 - sound / seconds / hosts.count)
    costs, waits = _Costs(inputs, times or measured(), chance), []
    for moment, kind in events:
        host, stored = costs.draw(kind)
        done = database.run(hosts.run(moment, host * slower), stored)
        waits.append(done - moment - host * slower - stored)
    waits.sort()
    return Simulated(
        sessions=sum(each.kind == "session" for each in events),
        calls=sum(each.kind == "call" for each in events),
        host_cores=hosts.busy / slower / seconds + sound / seconds,
        database_cores=database.busy / seconds,
        open_sessions=open_seconds / seconds,
        wait_p99_ms=waits[int(len(waits) * 0.99)] * 1e3 if waits else 0.0,
    )


def _session(
    chance: random.Random, inputs: Inputs, at: float, length: float, *, is_voice: bool
) -> list[_Work]:
    """Return the start, the calls and the messages of a session."""
    counts = {"call": inputs.calls_per_session, "message": 0.0 if is_voice else inputs.messages_per_session}
    found = [_Work(at, "session")]
    for kind, count in counts.items():
        moment = at
        while (
            count
            and (moment := moment + chance.expovariate(count / (inputs.session_minutes * 60))) < at + length
        ):
            found.append(_Work(moment, kind))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the plan for the given load, and what the simulation says about it."""
    parser = argparse.ArgumentParser(prog="python -m cluster.capacity", description=__doc__)
    default, hints = Inputs(), get_type_hints(Inputs, include_extras=True)
    for each in fields(Inputs):
        flag, value = f"--{each.name.replace('_', '-')}", getattr(default, each.name)
        (text,) = hints[each.name].__metadata__
        parser.add_argument(flag, type=float, default=value, help=f"{text} (default: {value:g})")
    parser.add_argument("--simulate", type=float, default=0.0, metavar="SECONDS", help="simulate this long")
    parser.add_argument("--seed", type=int, default=1, help="of the simulation (default: 1)")
    options = vars(parser.parse_args(arguments))
    given = {each.name: options[each.name] for each in fields(Inputs)}
    if any(value < 0 for value in given.values()) or not 0 < given["use"] <= 1:
        parser.error("values are positive, and --use is between 0 and 1")
    inputs = replace(default, **given)
    for name, value in plan(inputs)._asdict().items():
        print(f"{name.replace('_', ' '):26} {value if isinstance(value, bool) else f'{value:,.1f}'}")
    if options["simulate"]:
        print("\nsimulated")
        for name, figure in simulate(inputs, options["simulate"], options["seed"])._asdict().items():
            print(f"{name.replace('_', ' '):26} {figure:,.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
