"""A client that reconnects, changes hosts and survives crashes sees every event once."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from host_harness import Client, HostFolder, RunningHost, running_host, scripted_provider
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from jackfield_scripted import ScriptedCall, ScriptedModel
from jackfield_scripted.openai import ProtocolViolationError

HOSTS = st.integers(0, 1)


async def script(model: ScriptedModel) -> None:
    while True:
        # After the result of a call that another host started, there is no user message to answer.
        asked = ((await model.hears()).text or "that").splitlines()[-1]
        if asked.startswith("note"):
            call = ScriptedCall("hst_note", {"text": asked}, id=f"call_{asked[-8:]}")
            # The scripted provider takes a repeated request for the same client. Each host that crashes
            # before it has recorded the call causes one.
            accepted = False
            while not accepted:
                with suppress(ProtocolViolationError):
                    await model.calls(call)
                    accepted = True
            # What the user said while the tool ran came with its result, and needs an answer.
            asked = [each["content"] for each in model.received if each["role"] == "user"][-1].splitlines()[
                -1
            ]
        await model.says(f"Answer to {asked}", pieces=4)


class TwoHosts:
    """Two hosts on one store, and one user."""

    def __init__(self, host_folder: HostFolder) -> None:
        self.host_folder = host_folder
        self.hosts: list[RunningHost] = []
        self.client: Client | None = None
        self.token = ""
        self.seen: list[dict[str, Any]] = []
        self.said = 0
        self._stack = AsyncExitStack()
        self._stacks: list[AsyncExitStack] = []
        self._line = AsyncExitStack()

    async def begin(self) -> None:
        served = await self._stack.enter_async_context(scripted_provider(script))
        self.served = served
        for _ in range(2):
            await self.start_host()
        await self.connect(0)

    async def start_host(self, place: int | None = None) -> None:
        stack = AsyncExitStack()
        host = await stack.enter_async_context(running_host(self.host_folder, self.served))
        if place is None:
            self.hosts.append(host)
            self._stacks.append(stack)
        else:
            self.hosts[place], self._stacks[place] = host, stack

    async def connect(self, place: int) -> None:
        """Connect, or resume after the last event."""
        await self.drop()
        options = {"token": self.token, "lastEvent": self.last} if self.token else {}
        self._line = AsyncExitStack()
        self.client = await self._line.enter_async_context(self.hosts[place].client("text", **options))
        self.token = self.client.token

    @property
    def last(self) -> int:
        return max((event["id"] for event in self.seen), default=0)

    async def drop(self) -> None:
        """Break the connection without a close frame."""
        if self.client is None:
            return
        self.client.raw.transport.abort()
        await self.client.until_closed()
        # An event that arrived twice would have a number that was already seen.
        assert not self.client.events or self.client.events[0]["id"] > self.last
        self.seen += self.client.events
        self.client = None
        await self._line.aclose()

    async def crash(self, place: int) -> None:
        """Crash a host: it writes and sends nothing more."""
        host = self.hosts[place].host
        for live in list(host.sessions.live.values()):
            live.checkpoint.disable()
            live.hub.log._lost = True
        await self._stacks[place].aclose()
        if self.client is not None and self.client.closed:
            await self.drop()
        await self.start_host(place)

    async def end(self) -> None:
        try:
            if self.token:
                await self.connect(0)
                assert self.client
                client = self.client
                await client.say("text", text="the last words")
                await client.until(lambda: "Answer to the last words" in client.said("assistant"))
                await self.drop()
                async with self.hosts[1].client("text", token=self.token) as fresh:
                    await fresh.until(lambda: fresh.last_event >= self.last)
                    assert [each for each in fresh.events if each["id"] <= self.last] == self.seen
                    notes = [
                        e["callId"] for e in fresh.events if e["type"] in ("tool_complete", "tool_error")
                    ]
                    assert len(notes) == len(set(notes)), notes
        finally:
            for stack in (self._line, *self._stacks, self._stack):
                await stack.aclose()


class RoamingClient(RuleBasedStateMachine):
    """A state machine of a client that reconnects and changes hosts."""

    host_folder: HostFolder

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        folder = Path(tempfile.mkdtemp(dir=self.host_folder.path))
        self.hosts_and_client = TwoHosts(replace(self.host_folder, path=folder))

    def run(self, work: Any) -> None:
        self.runner.run(work)

    @initialize()
    def begin(self) -> None:
        self.run(self.hosts_and_client.begin())

    @precondition(lambda self: self.hosts_and_client.client is not None)
    @rule(wait=st.booleans(), note=st.booleans())
    def say(self, wait: bool, note: bool) -> None:
        async def work() -> None:
            world = self.hosts_and_client
            client = world.client
            assert client
            world.said += 1
            words = f"{'note' if note else 'word'} {world.said:08}"
            await client.say("text", text=words)
            if wait:
                await client.until(lambda: client.said("assistant")[-1:] == [f"Answer to {words}"])

        self.run(work())

    @rule()
    def drop(self) -> None:
        self.run(self.hosts_and_client.drop())

    @rule(seconds=st.sampled_from([0.0, 0.01, 0.05]))
    def while_something_happens(self, seconds: float) -> None:
        self.run(asyncio.sleep(seconds))

    @rule(place=HOSTS)
    def come_back(self, place: int) -> None:
        self.run(self.hosts_and_client.connect(place))

    @rule(place=HOSTS)
    def crash(self, place: int) -> None:
        self.run(self.hosts_and_client.crash(place))

    @invariant()
    def every_event_once_and_in_order(self) -> None:
        ids = [event["id"] for event in self.hosts_and_client.seen]
        assert ids == sorted(set(ids))

    def teardown(self) -> None:
        try:
            self.run(self.hosts_and_client.end())
        finally:
            self.runner.close()


def test_no_event_is_lost_or_duplicated_across_reconnects_and_hosts(any_store_folder: HostFolder) -> None:
    run_state_machine_as_test(
        type("RoamingClient", (RoamingClient,), {"host_folder": any_store_folder}),
        settings=settings(
            max_examples=6,
            stateful_step_count=10,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
            phases=[Phase.explicit, Phase.generate],
        ),
    )
