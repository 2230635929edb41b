"""Records of started agents, from which another host continues a task whose host died.

The record says that policies let the task run, which host ran its agent, and how often the task has changed
hosts. An agent that may change something is recorded separately, and its task is never continued.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

import orjson
from jackfield.store import Store

MAX_TAKEOVERS = 3
"""How often a task changes hosts; a task that kills its hosts must not kill all of them."""

CERTAIN_SECONDS = 86400.0
"""How long after an agent's start the records certainly show whether it could change something."""

WRITERS = "agent-writes/"
"""Prefix of the keys of agents that may change something: the session of the task, then of the agent."""

STARTS = "agent-starts/"
"""Prefix of the keys of agents that can only read: the session of the task, then a hash of the task."""


class AgentStart(NamedTuple):
    """The latest start of a task's agent."""

    task: str
    """The task's key in the store."""
    host: str
    """The id of the host."""
    agent: str
    """The agent's session."""
    takeovers: int


_taken_over: ContextVar[AgentStart | None] = ContextVar("taken_over", default=None)
"""The task that the current call continues, as it was started on a host that died."""


class AgentStarts:
    """The starts of agents on all hosts."""

    def __init__(self, store: Store, host: str) -> None:
        """`host` is the id of this host."""
        self._store = store
        self._host = host

    async def record(
        self, parent: str, agent: str, instructions: str, tools: Sequence[str], *, writes: bool
    ) -> None:
        """Record that an agent starts for a task of the session `parent`, before it can do anything."""
        if writes:
            await self._store.put(f"{WRITERS}{parent}/{agent}", b"", ttl=2 * CERTAIN_SECONDS)
            return
        task, before = _task_key(parent, instructions, tools), taken_over(parent, instructions, tools)
        start = AgentStart(task, self._host, agent, before.takeovers + 1 if before else 0)
        await self._store.put(task, orjson.dumps(start[1:]), ttl=CERTAIN_SECONDS)

    async def may_write(self, parent: str) -> bool:
        """Return whether an agent of this session could have changed something."""
        return bool(await self._store.keys(f"{WRITERS}{parent}/"))

    async def take_over(self, parent: str, args: Mapping[str, Any]) -> bool:
        """Return whether this host may continue a task: its agent could only read, and few hosts ran it."""
        instructions, tools = task_terms(args)
        task = _task_key(parent, instructions, tools)
        record = await self._store.get(task)
        start = AgentStart(task, *orjson.loads(record)) if record else None
        if start is None or start.takeovers >= MAX_TAKEOVERS or await self.may_write(parent):
            return False
        _taken_over.set(start)
        return True


def task_terms(args: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return the instructions and the tools in the arguments of a task, as its handler passes them on."""
    return str(args.get("instructions", "")).strip(), [str(each) for each in args.get("tools") or ()]


def taken_over(parent: str, instructions: str, tools: Sequence[str]) -> AgentStart | None:
    """Return the task's start on the host that died, if the current call continues the task."""
    start = _taken_over.get()
    return start if start is not None and start.task == _task_key(parent, instructions, tools) else None


def _task_key(parent: str, instructions: str, tools: Sequence[str]) -> str:
    terms = orjson.dumps([instructions, *sorted(tools)])
    return f"{STARTS}{parent}/{hashlib.sha256(terms).hexdigest()}"
