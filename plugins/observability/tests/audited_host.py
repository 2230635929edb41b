"""Ad hoc tools and an orchestrator for them; run as a program, a host that audits its calls."""

from __future__ import annotations

import asyncio
import logging
import resource
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
from jackfield import ToolCall, ok
from jackfield.contract.manifest import ToolManifest
from jackfield.contract.snapshot import FrozenTool, Snapshot
from jackfield.offers import Stage
from jackfield.orchestrator import CallResult, Observer, Orchestrator
from jackfield.registry.registry import RegisteredTool, Registry
from jackfield.session.session import Session

VERSION = "1.0.5eed5eed"


async def echo(args: dict[str, Any], ctx: Any) -> Any:
    return ok(args)


def tool(
    handler: Any = echo,
    tool_id: str = "echo",
    parameters: Mapping[str, Any] | None = None,
    **manifest: Any,
) -> RegisteredTool:
    """Return a tool that accepts anything, unless it is given parameters."""
    facts: dict[str, Any] = {
        "tool_id": tool_id,
        "version": "2.3.4",
        "description": "Says it again.",
        "category": "utility",
        "side_effects": "none",
        "idempotent": True,
        "requires_confirmation": False,
        "allowed_modes": ("text", "voice"),
        "latency_budget_ms": 1000,
        "parameters": parameters or {"type": "object"},
    }
    frozen = FrozenTool(ToolManifest(**{**facts, **manifest}), {}, "", "", "", "fab-echo", "2.3.4", "", "")
    return RegisteredTool(frozen, handler, VERSION)


class AuditedHost:
    """Calls tools as a model would, with observers."""

    def __init__(
        self,
        *tools: RegisteredTool,
        observers: Sequence[Observer] = (),
        policies: Sequence[tuple[str, Stage, Any]] = (),
    ) -> None:
        snapshot = Snapshot(VERSION, "", {}, {"capabilities": []})
        registry = Registry(snapshot, {each.id: each for each in tools or [tool()]})
        self.orchestrator = Orchestrator(registry, policies, observers=observers)
        self.session = Session("text", VERSION, session_id="session-1", user="ada")
        self._runner = asyncio.Runner()

    def call(self, tool_id: str = "echo", call_id: str | None = None, **arguments: Any) -> CallResult:
        return self.send(tool_id, orjson.dumps(arguments), call_id)

    def send(self, tool_id: str, arguments: str | bytes, call_id: str | None = None) -> CallResult:
        asked = [ToolCall(tool_id, arguments, call_id)]
        answers: list[CallResult] = self.run(self.orchestrator.handle(self.session, asked))
        return answers[0]

    def run(self, coroutine: Any) -> Any:
        return self._runner.run(coroutine)

    def close(self) -> None:
        self._runner.close()


def _host(path: str, how: str) -> None:
    from jackfield_observability.audit import Audit
    from jackfield_observability.settings import AuditSettings

    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    if how == "narrow":
        resource.setrlimit(resource.RLIMIT_FSIZE, (6000, resource.RLIM_INFINITY))
    limits = {"max_bytes": 20_000, "backups": 200} if how == "rotating" else {}
    audit = Audit(AuditSettings(Path(path), arguments=True, **limits))
    audited_host = AuditedHost(observers=[audit])
    if how in ("brief", "rotating"):
        for number in range(1000):
            audited_host.call(number=number)
        return
    if how == "narrow":
        for number in range(40):
            audited_host.call(number=number, padding="x" * 400)
        print(audit.drain(), Path(path).stat().st_size, flush=True)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        return
    for number in range(10**9):
        audited_host.call(number=number)
        print(number, time.time(), flush=True)
        time.sleep(0.001)


if __name__ == "__main__":
    _host(*sys.argv[1:])
