"""Calls over several hosts that are killed, paused and restarted, compared with a log of real effects.

Hypothesis draws sequences of asking, approving, declining, letting time pass, repeating, pausing, killing,
restarting and settling. In every sequence, a call takes effect at most once, and no answer about it
contradicts the log.

The store is SQLite, shared by all hosts; a killed or paused host keeps its calls frozen and does not renew
its lease, like a process.
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
from jackfield.call_states import CallState, state_of
from jackfield.confirmation import Confirmations, confirmation_token
from jackfield.governance import Call, Proceed
from jackfield.ledger import CallLedger, stable_key
from jackfield.offers import PolicyOffer, Stage
from jackfield.orchestrator import CallResult
from jackfield_store_sqlite import SqliteStore
from jackfield_store_sqlite.creation import initialise
from jackfield_store_sqlite.process_identity import Machine
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
    """A store whose host can hang between two operations."""

    host: Host

    async def put(self, key: str, value: bytes, *, ttl: float | None = None) -> None:
        await self.host.halt("before the card is kept")
        await super().put(key, value, ttl=ttl)
        await self.host.halt("after the card is kept")


class HaltPolicy:
    """A policy right before the handler, in which a host can hang."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def applies_to(self, tool: Any, session: Any) -> bool:
        return True

    async def apply(self, call: Call, proceed: Proceed) -> ToolResponse:
        await self._host.halt("before the handler")
        return await proceed(call)


class Host:
    """A process: its own store on the shared file, the policies, and two tools that leave a trace."""

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
        # A host that is not live stays silent, and the others consider it dead.
        owner.renew = self._renew_if_live  # type: ignore[method-assign]
        fields: dict[str, Any] = {"sideEffects": "writes", "idempotent": False, "parameters": PARAMETERS}
        self.work = TestRuntime(
            make_tool("write", self._execute, **fields),
            make_tool("ask", self._execute, requiresConfirmation=True, **fields),
            policies=[
                *jackfield_policies.jackfield_policies(),
                PolicyOffer("halting", Stage.SHAPE, 90, lambda _settings, _services: HaltPolicy(self)),
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
        """Hang here until resumed, if the host is paused."""
        if self.held == point:
            self.stuck = True
            await self.resumed.wait()

    def session(self) -> Any:
        return self.work.session(session_id="s", user="ada", secret="known to ada's client")

    async def silence(self) -> None:
        """Make the other hosts consider this one dead."""
        self.state = "silent"
        await self.store._write(lambda db, _: self.store._owner.resign(db, self.store.now()))


class Hosts(RuleBasedStateMachine):
    """Three hosts on one store."""

    @initialize()
    def start(self) -> None:
        self.loop = asyncio.new_event_loop()
        # In memory if there is such a folder: these tests are not about power cuts.
        self.folder = tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
        self.path = Path(self.folder.name) / "jackfield.db"
        self.now = 1_000_000.0
        self.machine = Machine("boot", uptime=lambda: self.now, wall=lambda: self.now)
        initialise(self.path)
        self.effects: list[int] = []
        self.hosts = [Host(self.path, self.machine, self.effects) for _ in range(3)]
        self.frozen: dict[int, tuple[Host, asyncio.Task[Any], str]] = {}
        """The calls whose handlers are running, by number."""
        self.final: dict[int, bytes] = {}
        """The outcome of each call that has one, as first reported."""
        self.everyone = list(self.hosts)

    def run(self, work: Awaitable[Any]) -> Any:
        return self.loop.run_until_complete(asyncio.wait_for(work, 30))

    def live(self, index: int) -> Host:
        """Return a reachable host; start one if there is none."""
        reachable = [host for host in self.hosts if host.state == "live"]
        if not reachable:
            self.kill(index)
            return self.hosts[index]
        return reachable[index % len(reachable)]

    # Actions of callers

    @rule(index=HOSTS, n=NUMBERS, hold=HOLDS)
    def write(self, index: int, n: int, hold: str) -> None:
        """Deliver a call without approval, possibly again, possibly to a host that hangs in it."""
        self.deliver(index, 10 + n, "write", hold)

    @rule(index=HOSTS, n=NUMBERS, hold=ASKING)
    def ask(self, index: int, n: int, hold: str) -> None:
        """Deliver a call with approval, possibly again, possibly to a host that hangs."""
        self.deliver(index, n, "ask", hold)

    def deliver(self, index: int, n: int, tool: str, hold: str) -> None:
        host = self.live(index)
        self.attempt(
            host, n, hold, lambda: host.work.call(host.session(), tool, json.dumps({"n": n}), call_id(n))
        )

    @rule(index=HOSTS, n=NUMBERS, hold=HOLDS)
    def approve(self, index: int, n: int, hold: str) -> None:
        """Approve, possibly again, possibly too late, possibly at a host that hangs in the call."""
        self.decide(index, n, hold, approve=True)

    @rule(index=HOSTS, n=NUMBERS)
    def decline(self, index: int, n: int) -> None:
        """Decline, possibly after another decision."""
        self.decide(index, n, "", approve=False)

    def decide(self, index: int, n: int, hold: str, *, approve: bool) -> None:
        host = self.live(index)
        session = host.session()
        pending = self.run(Confirmations(host.store).for_call("s", stable_key("s", call_id(n))))
        if pending is None:
            self.ask(index, n, "")
            pending = self.run(Confirmations(host.store).for_call("s", stable_key("s", call_id(n))))
        token = confirmation_token(session, pending.id)
        self.attempt(host, n, hold, lambda: host.work.resolve(session, token, approve=approve))

    @rule(index=HOSTS, n=NUMBERS, asks=st.booleans())
    def look(self, index: int, n: int, asks: bool) -> None:
        """Query the outcome of a call without delivering it."""
        host, n = self.live(index), n if asks else 10 + n
        status = self.run(host.ledger.status(stable_key("s", call_id(n)), always_confirms=asks))
        # A call that was never delivered has not run; that is not an outcome yet.
        if status.state is CallState.NEVER_RUN and status.wire is None:
            assert n not in self.final
            assert n not in self.effects
        else:
            self.check(n, status.state, status.wire)

    # Faults of hosts

    @rule(index=HOSTS)
    def pause(self, index: int) -> None:
        """Pause a host for longer than its lease."""
        self.run(self.live(index).silence())

    @precondition(lambda self: any(host.state == "silent" for host in self.hosts))
    @rule(index=HOSTS)
    def resume(self, index: int) -> None:
        """Resume a paused host with its running calls."""
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
        """Kill a host, and start another one in its place."""
        host = self.hosts[index]
        if host.state == "live":
            self.run(host.silence())
        host.state = "dead"
        self.hosts[index] = Host(self.path, self.machine, self.effects)
        self.everyone.append(self.hosts[index])

    @rule(seconds=st.sampled_from([1, 100, EXPIRY + 1]))
    def wait(self, seconds: int) -> None:
        """Let time pass; live hosts renew their leases."""
        self.now += seconds
        for host in self.hosts:
            if host.state == "live":
                self.run(host.store._write(lambda _db, _now: None))

    @rule(index=HOSTS)
    def settle(self, index: int) -> None:
        """Settle the calls in doubt of dead hosts from the log."""
        host = self.live(index)
        for doubtful in self.run(host.ledger.in_doubt()):
            n = int(json.loads(doubtful.arguments)["n"])
            holder, _, point = self.frozen[n]
            # The outcome of a handler that only hangs is not known yet.
            if holder.state == "dead" or point != "before the effect":
                ran = n in self.effects
                wire = self.run(host.ledger.settle(doubtful.key, ran=ran, by="a person"))
                assert wire is not None
                self.check(n, state_of(wire), wire)

    # Invariants

    def attempt(
        self, host: Host, n: int, hold: str, make: Callable[[], Coroutine[Any, Any, CallResult | None]]
    ) -> None:
        """Deliver something; a host that stops in the handler hangs from there on."""
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
        """Check that no answer contradicts the log, and no outcome changes."""
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
                # A call that hangs while it asks cannot have run, and is not reported as in doubt.
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
        frozen += [task for host in self.everyone for task in host.work.orchestrator._write_tasks]
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
    """Limit the wait for a running call, which here would wait for a hung host."""
    monkeypatch.setattr(ledger, "_wait_seconds", lambda _call: 0.001)


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    machine = Hosts()
    machine.start()
    yield machine
    machine.teardown()


# Sequences that a random search would find late


def test_a_resumed_host_does_not_run_a_call_settled_as_never_run(hosts: Hosts) -> None:
    hosts.approve(0, 0, "before the handler")
    hosts.settle(0)
    hosts.resume(0)
    assert hosts.effects == []
    assert state_of(hosts.final[0]) is CallState.NEVER_RUN


def test_a_resumed_host_answers_with_the_outcome_settled_meanwhile(hosts: Hosts) -> None:
    hosts.write(0, 0, "after the effect")
    hosts.settle(0)
    settled = hosts.final[10]
    hosts.resume(0)
    assert hosts.final[10] == settled
    assert hosts.effects == [10]


def test_a_resumed_host_records_its_result_if_the_call_was_not_settled(hosts: Hosts) -> None:
    hosts.approve(0, 0, "after the effect")
    hosts.look(0, 0, asks=True)
    assert 0 not in hosts.final
    hosts.resume(0)
    hosts.look(0, 0, asks=True)
    assert json.loads(hosts.final[0])["data"] == {"n": 0}


@pytest.mark.parametrize("hold", ASKS)
def test_a_confirmation_decided_while_its_host_hung_keeps_the_decision(hosts: Hosts, hold: str) -> None:
    hosts.ask(0, 0, hold)
    hosts.approve(0, 0, "")
    hosts.ask(1, 0, "")
    hosts.resume(0)
    assert hosts.effects == [0]
    assert state_of(hosts.final[0]) is CallState.DONE


def test_a_call_killed_while_asking_keeps_its_confirmation(hosts: Hosts) -> None:
    hosts.ask(0, 0, "after the card is kept")
    hosts.kill(0)
    host = hosts.live(0)
    kept = hosts.run(Confirmations(host.store).for_session("s"))
    hosts.ask(0, 0, "")
    assert hosts.run(Confirmations(host.store).for_session("s")) == kept
    hosts.approve(0, 0, "")
    assert hosts.effects == [0]


def test_a_host_that_hung_after_asking_reports_the_decision_made_meanwhile(hosts: Hosts) -> None:
    hosts.ask(0, 0, "after the card is kept")
    hosts.approve(0, 0, "")
    hosts.resume(0)
    assert state_of(hosts.final[0]) is CallState.DONE


TestHosts = Hosts.TestCase
TestHosts.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
