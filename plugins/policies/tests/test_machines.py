"""Calls over several hosts that are killed, paused and restarted, against a log of what really took effect.

Hypothesis draws sequences of asking, approving, declining, letting time pass, repeating, pausing, killing,
restarting and settling. Whatever happens, a call takes effect at most once, and no answer about it
contradicts the log. The store is SQLite, shared by all hosts; a host that is killed or paused keeps its calls
frozen where they are and renews its lease no more, as a process would.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import jackfield_policies
import pytest
from hypothesis import currently_in_test_context, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from jackfield import ToolResponse, ledger, ok
from jackfield.confirmation import Confirmations, confirmation_token
from jackfield.governance import Call, Proceed
from jackfield.ledger import CallLedger, stable_key
from jackfield.offers import PolicyOffer, Stage
from jackfield.orchestrator import CallResult
from jackfield.outcomes import CallState, state_of
from jackfield_store_sqlite import SqliteStore
from jackfield_store_sqlite.creation import initialise
from jackfield_store_sqlite.process import Machine
from jackfield_testkit.runtime import TestRuntime, make_tool

PARAMETERS = {"type": "object", "additionalProperties": False, "properties": {"n": {"type": "integer"}}}
EXPIRY = 300
LEASE = 10.0
NUMBERS = st.integers(0, 1)
HOSTS = st.integers(0, 2)
HOLDS = st.sampled_from(["", "", "before the handler", "before the effect", "after the effect"])
ASKING = st.sampled_from(["", "", "before the card is kept", "after the card is kept"])
ASKS = ("before the card is kept", "after the card is kept")
UNRUN = (CallState.DECLINED, CallState.EXPIRED, CallState.NEVER_RUN)


class HaltingStore(SqliteStore):
    """A store whose host can be made to hang between two operations."""

    host: Host

    async def put(self, key: str, value: bytes, *, ttl: float | None = None) -> None:
        await self.host.halt("before the card is kept")
        await super().put(key, value, ttl=ttl)
        await self.host.halt("after the card is kept")


class Halting:
    """A policy right before the handler, in which a host can be made to hang."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def applies_to(self, tool: Any, session: Any) -> bool:
        return True

    async def apply(self, call: Call, proceed: Proceed) -> ToolResponse:
        await self._host.halt("before the handler")
        return await proceed(call)


class Host:
    """A process: a store of its own on the shared file, the policies, and two tools that leave a trace."""

    def __init__(self, path: Path, machine: Machine, effects: list[int]) -> None:
        self.effects = effects
        self.state = "live"
        self.held = ""
        self.stuck = False
        self.resumed = asyncio.Event()
        self.store = HaltingStore(path, lease=LEASE, machine=machine)
        self.store.host = self
        owner = self.store._owner
        self._renew = owner.renew
        # A host that is not live keeps silent, and the others find it dead.
        owner.renew = self._renew_if_live  # type: ignore[method-assign]
        fields: dict[str, Any] = {"sideEffects": "writes", "idempotent": False, "parameters": PARAMETERS}
        self.work = TestRuntime(
            make_tool("write", self._execute, **fields),
            make_tool("ask", self._execute, requiresConfirmation=True, **fields),
            policies=[
                *jackfield_policies.jackfield_policies(),
                PolicyOffer("halting", Stage.SHAPE, 90, lambda _settings, _services: Halting(self)),
            ],
            settings={"loops": {"identical_calls": 10_000}, "confirmation": {"expiry_seconds": EXPIRY}},
            store=self.store,
        )
        self.ledger = CallLedger(self.store)

    def _renew_if_live(self, db: Any, now: float) -> None:
        if self.state == "live":
            self._renew(db, now)

    async def _execute(self, args: dict[str, Any], ctx: Any) -> ToolResponse:
        await self.halt("before the effect")
        self.effects.append(args["n"])
        await self.halt("after the effect")
        return ok({"n": args["n"]})

    async def halt(self, point: str) -> None:
        """Hang here, if the host was told to, until it is resumed."""
        if self.held == point:
            self.stuck = True
            await self.resumed.wait()

    def session(self) -> Any:
        return self.work.session(session_id="s", user="ada", secret="known to ada's client")

    async def silence(self) -> None:
        """Be believed dead by everybody else."""
        self.state = "silent"
        await self.store._write(lambda db, _: self.store._owner.resign(db, self.store.now()))


class Hosts(RuleBasedStateMachine):
    """Three hosts on one store."""

    @initialize()
    def start(self) -> None:
        self.loop = asyncio.new_event_loop()
        # In memory where there is such a folder: nothing here is about power cuts.
        self.folder = tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
        self.path = Path(self.folder.name) / "jackfield.db"
        self.now = 1_000_000.0
        self.machine = Machine("boot", uptime=lambda: self.now, wall=lambda: self.now)
        initialise(self.path)
        self.effects: list[int] = []
        self.hosts = [Host(self.path, self.machine, self.effects) for _ in range(3)]
        self.frozen: dict[int, tuple[Host, asyncio.Task[Any], str]] = {}
        """The calls that are in the middle of their handlers, by number."""
        self.final: dict[int, bytes] = {}
        """The outcome of each call that has one, as it was first told."""
        self.everyone = list(self.hosts)

    def run(self, work: Awaitable[Any]) -> Any:
        return self.loop.run_until_complete(asyncio.wait_for(work, 30))

    def live(self, index: int) -> Host:
        """A host that can be reached; one is always started if there is none."""
        reachable = [host for host in self.hosts if host.state == "live"]
        if not reachable:
            self.kill(index)
            return self.hosts[index]
        return reachable[index % len(reachable)]

    # What callers do.

    @rule(index=HOSTS, n=NUMBERS, hold=HOLDS)
    def write(self, index: int, n: int, hold: str) -> None:
        """A call that needs no approval is delivered, perhaps again, perhaps to a host that hangs in it."""
        self.deliver(index, 10 + n, "write", hold)

    @rule(index=HOSTS, n=NUMBERS, hold=ASKING)
    def ask(self, index: int, n: int, hold: str) -> None:
        """A call that needs approval is delivered, perhaps again, perhaps to a host that hangs meanwhile."""
        self.deliver(index, n, "ask", hold)

    def deliver(self, index: int, n: int, tool: str, hold: str) -> None:
        host = self.live(index)
        self.attempt(
            host, n, hold, lambda: host.work.call(host.session(), tool, json.dumps({"n": n}), call_id(n))
        )

    @rule(index=HOSTS, n=NUMBERS, hold=HOLDS)
    def approve(self, index: int, n: int, hold: str) -> None:
        """The user approves, perhaps again, perhaps too late, perhaps at a host that hangs in the call."""
        self.decide(index, n, hold, approve=True)

    @rule(index=HOSTS, n=NUMBERS)
    def decline(self, index: int, n: int) -> None:
        """The user declines, perhaps after something else was decided."""
        self.decide(index, n, "", approve=False)

    def decide(self, index: int, n: int, hold: str, *, approve: bool) -> None:
        host = self.live(index)
        session = host.session()
        pending = self.run(Confirmations(host.store).of_key("s", stable_key("s", call_id(n))))
        if pending is None:
            self.ask(index, n, "")
            pending = self.run(Confirmations(host.store).of_key("s", stable_key("s", call_id(n))))
        token = confirmation_token(session, pending.id)
        self.attempt(host, n, hold, lambda: host.work.resolve(session, token, approve=approve))

    @rule(index=HOSTS, n=NUMBERS, asks=st.booleans())
    def look(self, index: int, n: int, asks: bool) -> None:
        """Somebody asks what became of a call, without delivering it."""
        host, n = self.live(index), n if asks else 10 + n
        status = self.run(host.ledger.status(stable_key("s", call_id(n)), always_asks=asks))
        # A call that nobody delivered has not run; that is no outcome yet.
        if status.state is CallState.NEVER_RUN and status.wire is None:
            assert n not in self.final
            assert n not in self.effects
        else:
            self.check(n, status.state, status.wire)

    # What happens to hosts.

    @rule(index=HOSTS)
    def pause(self, index: int) -> None:
        """A host hangs for longer than its lease."""
        self.run(self.live(index).silence())

    @precondition(lambda self: any(host.state == "silent" for host in self.hosts))
    @rule(index=HOSTS)
    def resume(self, index: int) -> None:
        """A host that hung goes on, with whatever it was doing."""
        hung = [host for host in self.hosts if host.state == "silent"]
        host = hung[index % len(hung)]
        host.state, host.held = "live", ""
        self.run(host.store._write(lambda _db, _now: None))
        host.resumed.set()
        for n, (holder, task, _) in list(self.frozen.items()):
            if holder is host:
                del self.frozen[n]
                answer = self.run(task)
                self.check(n, state_of(answer.wire), answer.wire)
        host.resumed = asyncio.Event()

    @rule(index=HOSTS)
    def kill(self, index: int) -> None:
        """A host dies where it is, and another one starts in its place."""
        host = self.hosts[index]
        if host.state == "live":
            self.run(host.silence())
        host.state = "dead"
        self.hosts[index] = Host(self.path, self.machine, self.effects)
        self.everyone.append(self.hosts[index])

    @rule(seconds=st.sampled_from([1, 100, EXPIRY + 1]))
    def wait(self, seconds: int) -> None:
        """Time goes by; hosts that live say so."""
        self.now += seconds
        for host in self.hosts:
            if host.state == "live":
                self.run(host.store._write(lambda _db, _now: None))

    @rule(index=HOSTS)
    def settle(self, index: int) -> None:
        """A person looks at the log, and settles the calls in doubt whose hosts are gone for good."""
        host = self.live(index)
        for doubtful in self.run(host.ledger.in_doubt()):
            n = int(json.loads(doubtful.arguments)["n"])
            holder, _, point = self.frozen[n]
            # Nobody can know yet what a handler that only hangs is about to do.
            if holder.state == "dead" or point != "before the effect":
                ran = n in self.effects
                wire = self.run(host.ledger.settle(doubtful.key, ran=ran, by="a person"))
                assert wire is not None
                self.check(n, state_of(wire), wire)

    # What must hold.

    def attempt(
        self, host: Host, n: int, hold: str, make: Callable[[], Coroutine[Any, Any, CallResult | None]]
    ) -> None:
        """Deliver something; if the host gets stuck in the handler, it hangs from there on."""
        host.held, host.stuck = hold, False
        task: asyncio.Task[Any] = self.loop.create_task(make())
        before = self.effects.count(n)

        async def settle_down() -> None:
            while not task.done() and not host.stuck:  # noqa: ASYNC110 - either may come first
                await asyncio.sleep(0)

        self.run(settle_down())
        if task.done():
            host.held = ""
            answer = task.result()
            assert answer is not None
            self.check(n, state_of(answer.wire), answer.wire)
        else:
            assert self.effects.count(n) - before == (hold == "after the effect")
            self.frozen[n] = (host, task, hold)
            self.run(host.silence())

    def check(self, n: int, state: CallState, wire: bytes | None) -> None:
        """No answer contradicts the log, and no outcome changes."""
        if currently_in_test_context():
            event(f"{'ask' if n < 10 else 'write'} {state}")
        ran = n in self.effects
        if wire is not None and state not in (CallState.WAITING, CallState.RUNNING, CallState.IN_DOUBT):
            first = self.final.setdefault(n, wire)
            assert wire == first, (first, wire)
        match state:
            case CallState.DONE:
                assert ran
            case CallState.RUNNING | CallState.IN_DOUBT:
                assert n not in self.final
                assert n in self.frozen
                # A call that hangs while it asks cannot have run, and is not said to be in doubt.
                assert state is CallState.RUNNING or self.frozen[n][2] not in ASKS
            case CallState.FAILED:
                error = json.loads(wire or b"{}")["error"]
                assert error["partialSideEffects"] or not ran, error
            case _:
                assert not ran, state

    @invariant()
    def at_most_one_effect(self) -> None:
        assert len(self.effects) == len(set(self.effects)) if hasattr(self, "effects") else True

    @invariant()
    def what_was_said_to_be_unrun_never_runs(self) -> None:
        for n, wire in getattr(self, "final", {}).items():
            assert (n in self.effects) is (state_of(wire) not in UNRUN)

    def teardown(self) -> None:
        if not hasattr(self, "loop"):
            return
        frozen: list[asyncio.Future[Any]] = [task for _, task, _ in self.frozen.values()]
        frozen += [task for host in self.everyone for task in host.work.orchestrator._writing]
        for task in frozen:
            task.cancel()
            with suppress(asyncio.CancelledError):
                self.loop.run_until_complete(task)
        for host in self.everyone:
            host.state = "live"
            self.loop.run_until_complete(host.store.close())
        self.loop.close()
        self.folder.cleanup()


def call_id(n: int) -> str:
    return f"call_{n:06}"


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever repeats a running call waits for it; here it would wait for a host that hangs."""
    monkeypatch.setattr(ledger, "_patience", lambda _call: 0.001)


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    machine = Hosts()
    machine.start()
    yield machine
    machine.teardown()


# Sequences that would be found late.


def test_a_host_that_hung_does_not_run_what_was_settled_as_never_run(hosts: Hosts) -> None:
    hosts.approve(0, 0, "before the handler")
    hosts.settle(0)
    hosts.resume(0)
    assert hosts.effects == []
    assert state_of(hosts.final[0]) is CallState.NEVER_RUN


def test_a_host_that_hung_answers_with_the_outcome_that_was_settled_meanwhile(hosts: Hosts) -> None:
    hosts.write(0, 0, "after the effect")
    hosts.settle(0)
    settled = hosts.final[10]
    hosts.resume(0)
    assert hosts.final[10] == settled
    assert hosts.effects == [10]


def test_a_host_that_hung_records_its_result_if_nobody_settled_the_call(hosts: Hosts) -> None:
    hosts.approve(0, 0, "after the effect")
    hosts.look(0, 0, asks=True)
    assert 0 not in hosts.final
    hosts.resume(0)
    hosts.look(0, 0, asks=True)
    assert json.loads(hosts.final[0])["data"] == {"n": 0}


@pytest.mark.parametrize("hold", ASKS)
def test_a_card_decided_while_its_host_hung_is_answered_with_the_decision(hosts: Hosts, hold: str) -> None:
    hosts.ask(0, 0, hold)
    hosts.approve(0, 0, "")
    hosts.ask(1, 0, "")
    hosts.resume(0)
    assert hosts.effects == [0]
    assert state_of(hosts.final[0]) is CallState.DONE


def test_a_call_that_was_killed_while_it_asked_keeps_its_card(hosts: Hosts) -> None:
    hosts.ask(0, 0, "after the card is kept")
    hosts.kill(0)
    host = hosts.live(0)
    kept = hosts.run(Confirmations(host.store).of_session("s"))
    hosts.ask(0, 0, "")
    assert hosts.run(Confirmations(host.store).of_session("s")) == kept
    hosts.approve(0, 0, "")
    assert hosts.effects == [0]


def test_a_host_that_hung_after_asking_tells_what_was_decided_meanwhile(hosts: Hosts) -> None:
    hosts.ask(0, 0, "after the card is kept")
    hosts.approve(0, 0, "")
    hosts.resume(0)
    assert state_of(hosts.final[0]) is CallState.DONE


TestHosts = Hosts.TestCase
TestHosts.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
