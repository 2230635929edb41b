"""The campaign: rounds of calls, each with one host killed or paused in the middle of them.

A round makes a few calls, waits for a stage of their life, and strikes. Then it queries every call, at the
other hosts at once and at the struck host when it is back. At the end calls in doubt are settled from the
effect log, and every call is queried once more.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faults import client
from faults.checks import DOUBTS, EVENTS, UNSETTLED, UNTOLD, Fault, check_call
from faults.client import SessionSocket
from faults.deployment import BOOK, NOTE, Deployment, Host, Store
from faults.effect_log import EffectLog
from faults.record import FINAL, CallRecord, Statement

AIMS = ("asking", "deciding", "begun", "effect", "answered", "any")
"""The stages of a call at which a host is struck; `any` is a random moment."""

RESUMED = 100
"""The number of sessions resumed over the WebSocket at the end."""

RESUME_SECONDS = 1.0
"""Seconds without a message after which a resumed session is complete."""

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Scale:
    """The size of a campaign."""

    kills: int = 200
    pauses: int = 50
    calls: int = 3
    """Calls per round."""
    hosts: int = 4
    lanes: int = 3
    """Rounds that run at the same time."""
    lease: float = 2.0
    """The lease of the store while hosts are paused; while they are killed it has its default."""
    expiry: float = 30.0
    """How long a call waits for its user."""
    seed: int = 1


@dataclass
class Result:
    """The counts of the campaign."""

    scale: Scale
    seconds: float = 0.0
    kills: Counter[str] = field(default_factory=Counter)
    pauses: Counter[str] = field(default_factory=Counter)
    calls: list[CallRecord] = field(default_factory=list)
    effects: int = 0
    struck: Counter[str] = field(default_factory=Counter)
    """The states of calls when their host was struck."""
    streams: int = 0
    """Event streams that were read and resumed."""
    resumed: int = 0
    """Sessions resumed over the WebSocket."""
    settled: Counter[str] = field(default_factory=Counter)
    faults: list[Fault] = field(default_factory=list)

    @property
    def statements(self) -> Iterable[Statement]:
        """Every answer."""
        return (each for call in self.calls for each in call.statements)


async def run(folder: Path, scale: Scale, tell: Tell, store: Store | None = None) -> Result:
    """Run the campaign in an empty folder; without `store`, on a SQLite file in it."""
    return await _Campaign(folder, scale, tell, store).run()


class _Campaign:
    def __init__(self, folder: Path, scale: Scale, tell: Tell, store: Store | None) -> None:
        self._scale = scale
        self._tell = tell
        self._deployment = Deployment(folder, expiry=scale.expiry, store=store)
        self._hosts = [Host(self._deployment, number + 1) for number in range(scale.hosts)]
        self._idle = list(self._hosts)
        """The hosts that no round is striking."""
        self._log = EffectLog(folder)
        self._result = Result(scale)
        self._began = time.monotonic()

    async def run(self) -> Result:
        scale, result = self._scale, self._result
        following = asyncio.create_task(self._log.follow())
        try:
            first, *others = self._hosts
            await first.start()
            await asyncio.gather(*(host.start() for host in others))
            self._say(f"{len(self._hosts)} hosts are up")
            await self._rounds("kill", scale.kills, self._kill)
            await self._restart(scale.lease if scale.pauses else None)
            await self._rounds("pause", scale.pauses, self._pause)
            await self._settle()
        finally:
            await asyncio.gather(*(host.close() for host in self._hosts))
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following
        self._log.look()
        result.effects = sum(map(len, self._log.effects.values()))
        for call in result.calls:
            result.faults += check_call(call, self._log.effects.get(call.name, []))
        result.seconds = time.monotonic() - self._began
        return result

    def _say(self, text: str) -> None:
        self._tell(f"{time.monotonic() - self._began:6.1f} s  {text}")

    async def _rounds(
        self, kind: str, count: int, strike: Callable[[int, random.Random], Awaitable[None]]
    ) -> None:
        """Run this many rounds, some of them concurrently."""
        numbers = iter(range(count))
        done = 0

        async def lane() -> None:
            nonlocal done
            for number in numbers:
                # Its own generator, so that a round does not depend on concurrent ones.
                await strike(number, random.Random(f"{self._scale.seed}/{kind}/{number}"))
                done += 1
                if done % 10 == 0 or done == count:
                    states = Counter(call.last_state() for call in self._result.calls)
                    told = ", ".join(f"{state} {many}" for state, many in sorted(states.items()))
                    self._say(f"{done} of {count} {kind}s; calls: {told}")

        async with asyncio.TaskGroup() as group:
            for _ in range(min(self._scale.lanes, len(self._hosts) - 1)):
                group.create_task(lane())

    async def _restart(self, lease: float | None) -> None:
        """Restart every host with another lease."""
        if lease is None:
            return
        for host in self._hosts:
            host.lease = lease

            async def again(host: Host = host) -> None:
                await host.kill()
                await host.start()

            await again()
        self._say(f"hosts restarted with a lease of {lease:g} s")

    # One round.

    async def _kill(self, number: int, chance: random.Random) -> None:
        victim = self._choose(chance)
        aim = AIMS[number % len(AIMS)]
        calls = await self._calls("k", number, chance)
        line = await self._line(calls, victim, chance)
        delivered = await self._until_aim(aim, calls, victim, line, chance)
        self._note(calls)
        await victim.kill()
        self._result.kills[aim] += 1
        starting = asyncio.create_task(victim.start())
        lines = await self._move(line, calls, self._up(victim), chance)
        await self._question(calls, chance, self._up(victim))
        await starting
        self._idle.append(victim)
        await asyncio.gather(*delivered)
        await self._question(calls, chance, [victim, *self._up(victim)])
        await self._sessions(calls, lines, chance)

    async def _pause(self, number: int, chance: random.Random) -> None:
        victim = self._choose(chance)
        aims = ("paused", *AIMS)
        aim = aims[number % len(aims)]
        calls = await self._calls("p", number, chance)
        line = await self._line(calls, victim, chance)
        if aim == "paused":
            # Delivered to the socket of a host that does not read; it finds them when it resumes.
            await self._cards(calls, chance)
            victim.pause()
            delivered = self._deliver(calls, victim, line, chance)
        else:
            delivered = await self._until_aim(aim, calls, victim, line, chance)
            victim.pause()
        self._note(calls)
        self._result.pauses[aim] += 1
        # Queried at once, and again when other hosts consider the host dead by its lease. Nothing here waits
        # for an answer: a paused host may hold the lock of the store, and then there is none before it
        # resumes.
        asked = [_task(self._question(calls, chance, self._up(victim)))]
        await asyncio.sleep(self._scale.lease + 0.1)
        moving = _task(self._move(line, calls, self._up(victim), chance))
        asked.append(_task(self._question(calls, chance, self._up(victim))))
        await asyncio.sleep(chance.uniform(0.2, 0.9))
        victim.resume()
        await asyncio.gather(*asked, *delivered)
        lines = await moving
        self._idle.append(victim)
        await self._question(calls, chance, [victim, *self._up(victim)])
        await self._sessions(calls, lines, chance)

    def _choose(self, chance: random.Random) -> Host:
        """Choose a host to strike; no other round strikes it or relies on it until this round is over."""
        victim = chance.choice(sorted(self._idle, key=lambda host: host.number))
        self._idle.remove(victim)
        return victim

    def _up(self, *but: Host) -> list[Host]:
        found = [host for host in self._hosts if host.is_up and host not in but]
        return found or [host for host in self._idle if host not in but]

    async def _calls(self, prefix: str, number: int, chance: random.Random) -> list[CallRecord]:
        """Return the calls of a round: some in a named session, some under a key alone."""
        session = None
        while session is None:
            session = await client.open_session(chance.choice(self._up()))
        made = []
        for index in range(self._scale.calls):
            name = f"{prefix}{number}-{index}"
            decision = chance.choices(("approve", "decline", "both", "none"), (65, 12, 13, 10))[0]
            tool = chance.choices((BOOK, NOTE), (75, 25))[0]
            # Long before the effect, long after it, or both.
            before, after = chance.choice(((0.15, 0.15), (0.3, 0.0), (0.0, 0.3)))
            made.append(
                CallRecord(
                    name,
                    f"campaign-{self._scale.seed}-{name}",
                    tool,
                    round(chance.uniform(0, before), 3),
                    round(chance.uniform(0, after), 3),
                    decision if tool == BOOK else "none",
                    session if chance.random() < 0.5 else None,
                )
            )
        self._result.calls += made
        return made

    async def _until_aim(
        self,
        aim: str,
        calls: list[CallRecord],
        victim: Host,
        line: SessionSocket | None,
        chance: random.Random,
    ) -> list[asyncio.Task[Any]]:
        """Deliver the calls and wait for the moment to strike; return the pending requests."""
        if aim == "asking":
            delivered = [_task(client.execute(call, victim)) for call in calls]
            await asyncio.sleep(chance.uniform(0, 0.06))
            return delivered
        await self._cards(calls, chance)
        delivered = self._deliver(calls, victim, line, chance)
        names, log = [call.name for call in calls], self._log
        match aim:
            case "deciding":
                await asyncio.sleep(chance.uniform(0, 0.03))
            case "begun":
                await log.until(lambda: any(name in log.begun for name in names), 1.0)
                await asyncio.sleep(chance.uniform(0, 0.1))
            case "effect":
                await log.until(lambda: any(name in log.effects for name in names), 1.0)
                await asyncio.sleep(chance.uniform(0, 0.1))
            case "answered":
                await asyncio.wait(delivered, timeout=5.0, return_when=asyncio.FIRST_COMPLETED)
                await asyncio.sleep(chance.uniform(0, 0.02))
            case _:
                await asyncio.sleep(chance.uniform(0, 0.5))
        return delivered

    async def _cards(self, calls: Iterable[CallRecord], chance: random.Random) -> None:
        """Request approval of the calls that need it, some of them at two hosts at once."""

        async def ask(call: CallRecord, hosts: list[Host]) -> None:
            await asyncio.gather(*(client.execute(call, host) for host in hosts))
            for _ in range(20):
                if call.token is not None:
                    return
                # The host may be one that another round has struck.
                await client.execute(call, chance.choice(self._up()))

        waiting = [call for call in calls if call.needs_approval]
        await asyncio.gather(
            *(ask(call, self._some(chance, 1 + (chance.random() < 0.3))) for call in waiting)
        )

    async def _line(
        self, calls: Iterable[CallRecord], victim: Host, chance: random.Random
    ) -> SessionSocket | None:
        """Connect the named session in some rounds, often at the host that will be struck."""
        named = next((call.session for call in calls if call.session), None)
        if named is None or chance.random() < 0.5:
            return None
        return await SessionSocket.open(
            named, victim if chance.random() < 0.6 else chance.choice(self._up(victim))
        )

    async def _move(
        self,
        line: SessionSocket | None,
        calls: Iterable[CallRecord],
        hosts: Sequence[Host],
        chance: random.Random,
    ) -> list[SessionSocket]:
        """Resume the named session at another host, which takes it from the struck one."""
        named = next((call.session for call in calls if call.session), None)
        if line is None or named is None:
            return []
        other = await SessionSocket.open(named, chance.choice(hosts))
        return [line] if other is None else [line, other]

    def _deliver(
        self, calls: Iterable[CallRecord], victim: Host, line: SessionSocket | None, chance: random.Random
    ) -> list[asyncio.Task[Any]]:
        """Send decisions and plain calls to the victim, and some of them to another host as well."""
        delivered = []
        for call in calls:
            other = chance.choice(self._up(victim)) if chance.random() < 0.3 else None
            spoken = line if call.session and chance.random() < 0.5 else None
            if not call.needs_approval:
                delivered += [_task(client.execute(call, host)) for host in (victim, other) if host]
            for approve in self._decisions(call):
                there = other if call.decision == "both" and not approve and other else victim
                if spoken is not None:
                    delivered.append(_task(spoken.decide(call, approve=approve)))
                else:
                    delivered.append(_task(client.decide(call, there, approve=approve)))
            if other is not None and call.decision == "approve":
                delivered.append(_task(client.decide(call, other, approve=True)))
        return delivered

    def _decisions(self, call: CallRecord) -> list[bool]:
        return {"approve": [True], "decline": [False], "both": [True, False], "none": []}[call.decision]

    def _note(self, calls: Iterable[CallRecord]) -> None:
        """Count the states of the calls at the moment of the strike."""
        self._log.look()
        for call in calls:
            answered = any(each.is_final for each in call.statements)
            reached = (
                "after the answer"
                if answered
                else "after the effect"
                if call.name in self._log.effects
                else "running, before the effect"
                if call.name in self._log.begun
                else "before it ran"
            )
            self._result.struck[reached] += 1

    def _some(self, chance: random.Random, count: int, hosts: Sequence[Host] | None = None) -> list[Host]:
        there = list(hosts or self._up())
        return chance.sample(there, min(count, len(there)))

    async def _question(self, calls: Iterable[CallRecord], chance: random.Random, hosts: list[Host]) -> None:
        """Query every call in every way, each time at another host."""
        await asyncio.gather(
            *(self._question_one(call, random.Random(chance.random()), hosts) for call in calls)
        )

    async def _question_one(self, call: CallRecord, chance: random.Random, hosts: list[Host]) -> None:
        ways: list[Callable[[Host], Coroutine[Any, Any, Statement | None]]] = [
            lambda host: client.execute(call, host),
            lambda host: client.execute(call, host, named=False),
            lambda host: client.task(call, host),
        ]
        if call.decision in ("approve", "both"):
            ways.append(lambda host: client.decide(call, host, approve=True))
        if call.decision in ("decline", "both"):
            ways.append(lambda host: client.decide(call, host, approve=False))
        chance.shuffle(ways)
        # Two concurrently, then the others: answers that cross and answers that follow each other.
        await asyncio.gather(*(way(chance.choice(hosts)) for way in ways[:2]))
        for way in ways[2:]:
            await way(chance.choice(hosts))

    async def _sessions(
        self, calls: Sequence[CallRecord], lines: Sequence[SessionSocket], chance: random.Random
    ) -> None:
        """Read the events of every session, and resume each stream in the middle."""
        for line in lines:
            self._result.resumed += line.was_resumed
            await line.close()
            for call in calls:
                call.event_records += client.events_of_call(call, line.messages)
        by_token = _by_session(calls)
        await asyncio.gather(
            *(self._stream(*each, random.Random(chance.random())) for each in by_token.items())
        )

    async def _stream(self, token: str, calls: Iterable[CallRecord], chance: random.Random) -> None:
        whole = await client.events(token, chance.choice(self._up()))
        if not whole:
            return
        kept = [each for each in whole if each["streamId"]]
        numbers = [each["id"] for each in kept]
        named = ", ".join(call.name for call in calls)
        # A number may be missing after a takeover by another host; none may be repeated or late.
        if numbers != sorted(set(numbers)):
            self._result.faults.append(Fault(EVENTS, named, f"events {numbers}"))
        if kept:
            place = chance.randrange(len(kept))
            rest = await client.events(token, chance.choice(self._up()), kept[place]["streamId"])
            expected = kept[place + 1 :]
            if rest is not None and rest[: len(expected)] != expected:
                self._result.faults.append(Fault(EVENTS, named, f"resumed after {numbers[place]}: {rest}"))
            self._result.streams += 1
        for call in calls:
            call.event_records += client.events_of_call(call, kept)

    async def _resume(self, token: str, calls: Sequence[CallRecord], host: Host) -> None:
        """Resume a session at the end: its events have to report the outcomes of its calls."""
        line = await SessionSocket.open(token, host)
        if line is None:
            return
        await line.quiet(RESUME_SECONDS)
        await line.close()
        if not line.was_resumed:
            named, said = ", ".join(call.name for call in calls), f"not resumed: {line.messages}"
            self._result.faults.append(Fault(UNTOLD, named, said))
            return
        self._result.resumed += 1
        for call in calls:
            told = client.events_of_call(call, line.messages)
            call.event_records += told
            if call.needs_approval and call.last_state() not in {each.state for each in told}:
                states = ", ".join(each.state for each in told)
                states = states or f"nothing among {[each['type'] for each in line.messages]}"
                message = f"{call.last_state()}, and the session's events say {states}"
                self._result.faults.append(Fault(UNTOLD, call.name, message))

    # The end.

    async def _settle(self) -> None:
        """Settle calls in doubt from the effect log, and query every call once more."""
        calls, chance = self._result.calls, random.Random(f"{self._scale.seed}/end")
        await self._let_expire(calls)
        await self._in_parts(calls, lambda call: self._question_one(call, chance, self._hosts))
        # A live host that could not renew its lease in time is temporarily considered dead.
        await asyncio.sleep(self._scale.lease + 1.0)
        doubtful = [call for call in calls if call.last_state() == "in_doubt"]
        await self._in_parts(doubtful, lambda call: self._question_one(call, chance, self._hosts))
        self._log.look()
        listed = {
            each["arguments"].split('"call":"')[1].partition('"')[0]: each["key"]
            for each in await self._deployment.command("calls", "list", "--in-doubt")
        }
        doubted = {call.name for call in calls if call.last_state() == "in_doubt"}
        self._say(f"{len(doubted)} calls in doubt, {len(listed)} listed; settling them from the effect log")
        for name in sorted(doubted ^ set(listed)):
            where = "answered as in doubt, and not listed" if name in doubted else "listed, but not in doubt"
            self._result.faults.append(Fault(DOUBTS, name, where))
        by_name = {call.name: call for call in calls}
        await self._in_parts(
            list(listed.items()), lambda each: self._settle_one(by_name[each[0]], each[1]), 3
        )
        await self._in_parts(calls, lambda call: self._question_one(call, chance, self._hosts))
        await self._in_parts(calls, lambda call: self._question_one(call, chance, self._hosts))
        for call in calls:
            expected = {None: FINAL, True: {"done"}, False: {"never_run"}}[call.settled]
            if call.last_state() not in expected:
                said = f"{call.last_state()}; settled as run: {call.settled}"
                self._result.faults.append(Fault(UNSETTLED, call.name, said))
        self._say("everything was asked once more")
        sessions = list(_by_session(calls).items())
        chosen = chance.sample(sessions, min(len(sessions), RESUMED))
        await self._in_parts(chosen, lambda each: self._resume(each[0], each[1], chance.choice(self._hosts)))
        self._say(f"{len(chosen)} sessions were resumed")

    async def _let_expire(self, calls: Iterable[CallRecord]) -> None:
        """Wait until no call waits for its user any more."""
        waiting = [call for call in calls if call.last_state() == "waiting"]
        if not waiting:
            return
        last = max(each.answered for call in waiting for each in call.statements if each.state == "waiting")
        left = last + self._scale.expiry - time.monotonic()
        self._say(f"{len(waiting)} calls wait for a decision that never comes; they expire in {left:.0f} s")
        await asyncio.sleep(max(0.0, left))

    async def _settle_one(self, call: CallRecord, key: str) -> None:
        effects = self._log.effects.get(call.name, [])
        call.settled = bool(effects)
        outcome = ["--not-run"]
        if effects:
            outcome = ["--ran", "--data", f'{{"call":"{call.name}","effect":"{effects[0].name}"}}']
        await self._deployment.command("calls", "settle", key, *outcome)
        self._result.settled["run" if effects else "never run"] += 1

    async def _in_parts(
        self, items: Sequence[Any], work: Callable[[Any], Coroutine[Any, Any, None]], at_once: int = 8
    ) -> None:
        room = asyncio.Semaphore(at_once)

        async def one(item: Any) -> None:
            async with room:
                await work(item)

        await asyncio.gather(*map(one, items))


def _by_session(calls: Iterable[CallRecord]) -> dict[str, list[CallRecord]]:
    found: dict[str, list[CallRecord]] = {}
    for call in calls:
        if call.session_token is not None:
            found.setdefault(call.session_token, []).append(call)
    return found


def _task(work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    return asyncio.create_task(work)
