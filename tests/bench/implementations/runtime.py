"""Jackfield as a host starts it, for implementations that differ in what is enabled."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from jackfield import ToolCall
from jackfield.experiments.assignment import CONTROL, Assignment
from jackfield.invocation import as_handler
from jackfield.runtime import Runtime
from jackfield.session.session import Session
from jackfield.settings import Settings
from jackfield.toolsets import Toolset
from jackfield_experiments.collector import CallCollector

from bench.implementations.timer import Answer, measure
from bench.implementations.workload import TOOL

OBSERVERS = ("audit", "metrics", "traces")


@asynccontextmanager
async def started_runtime(
    store: str = "memory", *, observed: bool = True, arguments: bool = False, without: tuple[str, ...] = ()
) -> AsyncIterator[Runtime]:
    """Start a runtime on the registry of this process, without some policies; its files are temporary."""
    with tempfile.TemporaryDirectory() as folder:
        observers: dict[str, Any] = {name: {"enabled": False} for name in OBSERVERS}
        if observed:
            audit = {"path": str(Path(folder) / "audit.jsonl"), "arguments": arguments}
            observers |= {"audit": audit, "metrics": {}}
        settings = Settings(
            registry=Path(os.environ["JACKFIELD_REGISTRY"]),
            store=store,
            tables={
                "observers": observers,
                # A turn has two calls, and the second empty result of a turn would become a failure.
                "policies": {"loops": {"empty_results": 3}} | {name: {"enabled": False} for name in without},
                "stores": {"sqlite": {"path": str(Path(folder) / "store.db")}},
            },
        )
        runtime = await Runtime.start(settings)
        try:
            yield runtime
        finally:
            await runtime.close()


def flush_observers(runtime: Runtime) -> None:
    """Flush the observers, whose threads would do so within a fraction of a second."""
    for observer in runtime.orchestrator.observers:
        if drain := getattr(observer, "drain", None):
            drain()


def session_caller(runtime: Runtime, session: Session, tools: tuple[str, ...] = (TOOL,)) -> Answer:
    """Return a function that answers calls of a session, two per turn, each with the next tool."""
    handle = runtime.orchestrator.handle
    several = len(tools)

    async def answer(arguments: str, number: int, call_id: str) -> str:
        if number % 2 == 0:
            session.begin_turn()
        call = ToolCall(tools[number % several], arguments, call_id)
        return (await handle(session, (call,)))[0].text

    return answer


async def governed(
    store: str = "memory",
    *,
    observed: bool = True,
    arguments: bool = False,
    execute: Callable[..., Any] | None = None,
    assigned: bool = False,
) -> None:
    """Measure calls of one session; `execute` replaces the handler, as if it had been loaded.

    If it is `assigned`, the session takes part in an experiment with the tool.
    """
    async with started_runtime(store, observed=observed, arguments=arguments) as runtime:
        if execute is not None:
            runtime.registry.tools[TOOL].handler = as_handler(execute)
        toolset = None
        if assigned:
            toolset = Toolset("", None, {}, {TOOL: Assignment("speed", CONTROL, "speed.1", 1, 7)})
            runtime.orchestrator.observers.add(CallCollector())
        session = await runtime.open_session("text", user="ada", toolset=toolset)
        await measure(session_caller(runtime, session), lambda: flush_observers(runtime))
        if lost := sum(getattr(each, "dropped", 0) for each in runtime.orchestrator.observers):
            raise SystemExit(f"the audit was spared the work of {lost} lines")
