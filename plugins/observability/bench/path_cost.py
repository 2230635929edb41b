"""What observers cost on the path of a call: `python bench/path_cost.py`, microseconds, best of several."""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
from jackfield import ToolCall
from jackfield.governance import Call
from jackfield_observability.audit import Audit, AuditEncoder, DeferredLine
from jackfield_observability.metrics import Metrics
from jackfield_observability.settings import AuditSettings
from jackfield_observability.traces import Traces
from prometheus_client import CollectorRegistry, Counter, Histogram

CALLS = 5_000
ROUNDS = 15


def exchange() -> Any:
    path = Path(__file__).parents[1] / "tests" / "exchange.py"
    spec = importlib.util.spec_from_file_location("exchange", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Collects:
    """An observer that keeps one call, to be told of again and again."""

    def __init__(self) -> None:
        self.finished: tuple[Call, Any] | None = None

    def call_finished(self, call: Call, response: Any) -> None:
        self.finished = call, response


class Client:
    """The same figures kept by prometheus-client itself, for comparison."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        calls = Counter("calls", "", ["tool"], registry=registry)
        durations = Histogram("durations", "", ["tool"], registry=registry)
        sizes = Histogram("sizes", "", ["tool"], registry=registry)
        self._children = {"echo": (calls.labels("echo"), durations.labels("echo"), sizes.labels("echo"))}

    def call_finished(self, call: Call, response: Any) -> None:  # noqa: ARG002
        calls, durations, sizes = self._children[call.tool.id]
        calls.inc()
        durations.observe(time.perf_counter() - call.started_at)
        sizes.observe(len(call.wire or b""))


def best(work: Callable[[], Any], after: Callable[[], Any] = lambda: None) -> float:
    """Microseconds for one of `CALLS` runs, in the best round."""
    taken = []
    for _ in range(ROUNDS):
        gc.collect()
        gc.disable()
        began = time.perf_counter()
        for _ in range(CALLS):
            work()
        taken.append((time.perf_counter() - began) / CALLS)
        gc.enable()
        after()
    return min(taken) * 1e6


def main() -> None:
    module = exchange()
    collects = Collects()
    arguments = {"query": "opening hours", "top_k": 3, "filters": {"type": "doc", "tags": ["a", "b"]}}
    module.Exchange(observers=[collects]).call(**arguments)
    assert collects.finished is not None
    call, response = collects.finished

    with tempfile.TemporaryDirectory() as folder:
        audit = Audit(AuditSettings(Path(folder) / "audit.jsonl"))
        traces = Traces()
        for observer in (audit, traces):
            # Without their threads, which would be measured too.
            asyncio.run(observer.close())
        records = AuditEncoder(arguments=True)
        line = records.encode(call, response)
        assert isinstance(line, DeferredLine)
        record = orjson.loads(records.complete(line))
        metrics, client = Metrics(), Client()
        for name, work, after in [
            ("orjson.dumps of the record", lambda: orjson.dumps(record), lambda: None),
            ("audit, on the path", lambda: audit.call_finished(call, response), audit.waiting.clear),
            ("metrics, on the path", lambda: metrics.call_finished(call, response), lambda: None),
            ("  the same by prometheus-client", lambda: client.call_finished(call, response), lambda: None),
            ("traces, on the path", lambda: traces.call_finished(call, response), traces.waiting.clear),
            ("an empty call, for the loop's own cost", lambda: None, lambda: None),
            ("audit, arguments added by the thread", lambda: records.complete(line), lambda: None),
        ]:
            print(f"{best(work, after):8.2f}  {name}")
        audit = Audit(AuditSettings(Path(folder) / "audit.jsonl"))
        for name, observers in [("no observer", []), ("audit and metrics", [audit, metrics])]:
            print(f"{governed(module, observers):8.2f}  a whole call through the orchestrator with {name}")
        asyncio.run(audit.close())
        print(f"{audit.dropped:8d}  of {CALLS * ROUNDS} lines dropped in that flood")


def governed(module: Any, observers: list[Any]) -> float:
    talk = module.Exchange(observers=observers)
    calls = [ToolCall("echo", b'{"query": "opening hours", "top_k": 3}')]

    async def many() -> float:
        taken = []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            for _ in range(CALLS):
                await talk.orchestrator.handle(talk.session, calls)
            taken.append((time.perf_counter() - began) / CALLS)
        return min(taken) * 1e6

    return float(talk.run(many()))


if __name__ == "__main__":
    main()
