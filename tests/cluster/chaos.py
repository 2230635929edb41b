"""Chaos: calls arrive again and again while hosts and the database are killed; every answer is checked.

The checks and the effect log are those of the fault campaign (tests/faults). A round there looks closely at a
few calls; here a steady load meets many kills at random moments.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpx
from faults import client
from faults.checks import CONTRADICTS, DIFFERS, DOUBLED, LOST, UNSETTLED, Fault, check_call
from faults.deployment import BOOK, LOOK, NOTE, Host
from faults.effect_log import EffectLog
from faults.record import FINAL, CallRecord

from cluster.cluster import Cluster

PROBE_SECONDS = 0.1
"""The interval between two probes of the cluster."""

PROBE_TIMEOUT = 2.0
"""A probe that takes longer found the cluster unavailable."""

FINAL_SECONDS = 60.0
"""How long a call is asked for its outcome at the end."""

RESTART_SECONDS = 60.0
"""How long a killed host is started again and again."""

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Scale:
    """The size of a run: it ends after `calls`, or after `seconds` if there is no number of calls."""

    calls: int = 0
    seconds: float = 60.0
    deliveries: int = 10
    """How often each call is delivered."""
    kills: int = 10
    """Kills of hosts."""
    crashes: int = 2
    """Immediate shutdowns and restarts of the database."""
    failovers: int = 1
    """Kills of the database with a promotion of its standby."""
    callers: int = 12
    """Calls at the same time."""
    seed: int = 1


@dataclass
class Result:
    """The counts of a run."""

    scale: Scale
    hosts: int
    store: str
    seconds: float = 0.0
    calls: list[CallRecord] = field(default_factory=list)
    strikes: Counter[str] = field(default_factory=Counter)
    effects: int = 0
    probes: int = 0
    unavailable: float = 0.0
    """Seconds in which a caller behind nginx got no answer."""
    longest: float = 0.0
    """The longest such time."""
    faults: list[Fault] = field(default_factory=list)

    def rows(self) -> list[tuple[str, object]]:
        """Return the counts with their names."""
        states = Counter(call.last_state() for call in self.calls)
        answers = Counter(each.state for call in self.calls for each in call.statements)
        kinds = Counter(each.kind for each in self.faults)
        acknowledged = sum(any(each.is_final for each in call.statements) for call in self.calls)
        untrue = kinds[CONTRADICTS] + kinds[DIFFERS]
        other = sum(kinds.values()) - kinds[DOUBLED] - kinds[LOST] - untrue
        return [
            ("store", self.store),
            ("hosts", self.hosts),
            ("kills of hosts", self.strikes["kill"]),
            ("immediate shutdowns and restarts of the database", self.strikes["crash"]),
            ("promotions of a synchronous standby", self.strikes["failover"]),
            ("starts of a host that failed because of the database", self.strikes["failed start"]),
            ("calls", len(self.calls)),
            ("deliveries", sum(call.deliveries for call in self.calls)),
            ("answers checked", sum(answers.values())),
            ("of these, unavailable: try again", answers["unavailable"]),
            ("effects", self.effects),
            ("calls with an acknowledged outcome", acknowledged),
            ("calls in doubt at the end, reported as such", states["in_doubt"]),
            ("effects doubled", kinds[DOUBLED]),
            ("acknowledged outcomes lost", kinds[LOST]),
            ("untrue answers", untrue),
            ("other faults", other),
            ("seconds without an answer behind nginx", f"{self.unavailable:.1f}"),
            ("longest time without an answer", f"{self.longest:.1f} s"),
            ("duration", f"{self.seconds:.0f} s"),
            ("seed", self.scale.seed),
        ]


async def run(cluster: Cluster, scale: Scale, tell: Tell) -> Result:
    """Run the load and the strikes, and check every call."""
    return await _Chaos(cluster, scale, tell).run()


class _Chaos:
    def __init__(self, cluster: Cluster, scale: Scale, tell: Tell) -> None:
        self._cluster = cluster
        self._scale = scale
        self._tell = tell
        self._log = EffectLog(cluster.deployment.folder)
        store = "postgres" if cluster.database else "sqlite"
        self._result = Result(scale, len(cluster.hosts), store)
        self._began = time.monotonic()
        self._started = 0
        self._finished = 0
        self._strikes = self._plan()
        self._striking_hosts = asyncio.Lock()
        self._moved = asyncio.Condition()
        """Notified when a call or a strike is over."""

    def _plan(self) -> dict[str, list[float]]:
        """Return when each kind of strike is due, as a part of the whole run."""
        scale = self._scale
        counts = {"kill": scale.kills}
        if self._cluster.database is not None:
            counts |= {"crash": scale.crashes, "failover": scale.failovers}
        chance = random.Random(f"{scale.seed}/strikes")
        # Not at the very end: what a strike breaks has to be met by calls.
        return {kind: sorted(chance.uniform(0.02, 0.95) for _ in range(n)) for kind, n in counts.items()}

    @property
    def _progress(self) -> float:
        if self._scale.calls:
            return self._finished / self._scale.calls
        return (time.monotonic() - self._began) / self._scale.seconds

    async def run(self) -> Result:
        result = self._result
        following = asyncio.create_task(self._log.follow())
        probing = asyncio.create_task(self._probe())
        try:
            async with asyncio.TaskGroup() as group:
                for kind, due in self._strikes.items():
                    if kind == "kill":
                        group.create_task(self._strike_hosts(due))
                if self._cluster.database is not None:
                    group.create_task(self._strike_database())
                for number in range(self._scale.callers):
                    group.create_task(self._caller(number))
                if not self._scale.calls:
                    group.create_task(self._clock())
            probing.cancel()
            self._say("the load is over; every call is asked for its outcome once more")
            await self._ask_all()
        finally:
            for task in (following, probing):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
        self._log.look()
        result.effects = sum(map(len, self._log.effects.values()))
        for call in result.calls:
            result.faults += check_call(call, self._log.effects.get(call.name, []))
        result.seconds = time.monotonic() - self._began
        return result

    def _say(self, text: str) -> None:
        self._tell(f"{time.monotonic() - self._began:7.1f} s  {text}")

    # The load.

    async def _caller(self, number: int) -> None:
        """Make calls, one after the other."""
        while self._progress < 1.0 and not (self._scale.calls and self._started >= self._scale.calls):
            index = self._started
            self._started += 1
            await self._until_strikes(index)
            await self._call(random.Random(f"{self._scale.seed}/call/{index}"), f"c{index}")
            self._finished += 1
            async with self._moved:
                self._moved.notify_all()

    async def _until_strikes(self, index: int) -> None:
        """Wait until the strikes that are due before this call are over, so that they meet a load."""
        if not self._scale.calls:
            return
        # A few strikes may be under way while calls continue: that is the point.
        ahead = 4 * self._scale.callers
        async with self._moved:
            await self._moved.wait_for(lambda: index - ahead < self._allowed())

    def _allowed(self) -> float:
        """Return how many calls may have begun, given the strikes that are not over."""
        waiting = [due[0] for due in self._strikes.values() if due]
        return min(waiting, default=1.0) * self._scale.calls + self._scale.callers

    async def _clock(self) -> None:
        while self._progress < 1.0:
            await asyncio.sleep(0.05)
            async with self._moved:
                self._moved.notify_all()

    async def _call(self, chance: random.Random, name: str) -> None:
        """Make one call: deliver it several times, at random entrances, partly at the same time."""
        tool = chance.choices((NOTE, BOOK), (85, 15))[0]
        before, after = chance.choice(((0.0, 0.0), (0.05, 0.05), (0.2, 0.0), (0.0, 0.2)))
        call = CallRecord(
            name,
            f"chaos-{self._scale.seed}-{name}",
            tool,
            round(chance.uniform(0, before), 3),
            round(chance.uniform(0, after), 3),
            "approve" if tool == BOOK else "none",
        )
        self._result.calls.append(call)
        while call.deliveries < self._scale.deliveries:
            left = self._scale.deliveries - call.deliveries
            at_once = [self._deliver(call, chance) for _ in range(min(left, chance.randint(1, 4)))]
            await asyncio.gather(*at_once)
            if call.token is not None and "approve" not in call.sent:
                await client.decide(call, chance.choice(self._cluster.entrances), approve=True)

    def _deliver(self, call: CallRecord, chance: random.Random) -> Coroutine[Any, Any, Any]:
        return client.execute(call, chance.choice(self._cluster.entrances))

    # The strikes.

    async def _due(self, at: float) -> None:
        async with self._moved:
            await self._moved.wait_for(lambda: self._progress >= at)

    async def _over(self, kind: str) -> None:
        self._strikes[kind].pop(0)
        self._result.strikes[kind] += 1
        async with self._moved:
            self._moved.notify_all()
        done = self._result.strikes
        if kind != "kill" or done["kill"] % 10 == 0:
            self._say(
                f"{len(self._result.calls)} calls; {done['kill']} kills, {done['crash']} crashes, "
                f"{done['failover']} failovers"
            )

    async def _strike_hosts(self, due: list[float]) -> None:
        chance = random.Random(f"{self._scale.seed}/hosts")
        while due:
            await self._due(due[0])
            victim = chance.choice(self._cluster.hosts)
            await asyncio.sleep(chance.uniform(0, 0.2))
            await victim.kill()
            await asyncio.sleep(chance.uniform(0, 0.3))
            await self._restart(victim)
            await self._over("kill")

    async def _restart(self, host: Host) -> None:
        """Start a host again, as a service manager does: a host does not start without its database."""
        end = time.monotonic() + RESTART_SECONDS
        while True:
            try:
                return await host.start()
            except RuntimeError:
                if time.monotonic() > end:
                    raise
                self._result.strikes["failed start"] += 1
                await asyncio.sleep(0.5)

    async def _strike_database(self) -> None:
        database = self._cluster.database
        if database is None:
            return
        chance = random.Random(f"{self._scale.seed}/database")
        while waiting := [(due[0], kind) for kind, due in self._strikes.items() if due and kind != "kill"]:
            at, kind = min(waiting)
            await self._due(at)
            await asyncio.sleep(chance.uniform(0, 0.2))
            await asyncio.to_thread(database.crash if kind == "crash" else database.fail_over)
            await self._over(kind)

    # Availability.

    async def _probe(self) -> None:
        """Measure how long a caller behind nginx gets no answer."""
        down_since: float | None = None
        result = self._result
        while True:
            asked = time.monotonic()
            answered = await self._answers()
            result.probes += 1
            if answered and down_since is not None:
                down = time.monotonic() - down_since
                result.unavailable += down
                result.longest = max(result.longest, down)
                down_since = None
            elif not answered and down_since is None:
                down_since = asked
            await asyncio.sleep(max(0.0, PROBE_SECONDS - (time.monotonic() - asked)))

    async def _answers(self) -> bool:
        try:
            answer = await self._cluster.proxy.http.post(
                f"/execute/{LOOK}", json={"arguments": {"call": "probe"}}, timeout=PROBE_TIMEOUT
            )
        except httpx.HTTPError:
            return False
        return answer.status_code == 200 and bool(answer.json()["envelope"]["ok"])

    # The end.

    async def _ask_all(self) -> None:
        room = asyncio.Semaphore(self._scale.callers)
        chance = random.Random(f"{self._scale.seed}/end")

        async def ask(call: CallRecord) -> None:
            async with room:
                await self._ask(call, random.Random(chance.random()))

        await asyncio.gather(*map(ask, self._result.calls))

    async def _ask(self, call: CallRecord, chance: random.Random) -> None:
        """Ask until the call has an outcome or is in doubt."""
        settled = {*FINAL, "in_doubt"}
        end = time.monotonic() + FINAL_SECONDS
        while True:
            answer = await client.execute(call, chance.choice(self._cluster.entrances))
            if answer is not None and answer.state in settled:
                return
            if answer is not None and answer.state == "waiting":
                await client.decide(call, chance.choice(self._cluster.entrances), approve=True)
            if time.monotonic() > end:
                fault = Fault(UNSETTLED, call.name, f"still {call.last_state()}")
                self._result.faults.append(fault)
                return
            await asyncio.sleep(0.1)
