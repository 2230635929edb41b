"""A host in its own process, for tests that kill it: one store, one effects file, scripted deliveries.

python chaos_host.py STORE EFFECTS '{"session": ..., "call": ..., "times": ..., "die": ...}'

Prints the answer to each delivery as a line.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import jackfield_policies
from jackfield import ToolResponse, ok
from jackfield.store import Claim
from jackfield_store_sqlite import SqliteStore
from jackfield_testkit.runtime import TestRuntime, make_tool

SLOW_DISK: dict[str, Any] = {"patience": 60.0, "lease": 120.0}
"""A generous timeout: the tests are about the fate of calls, not about the speed of a flush."""

PARAMETERS = {"type": "object", "additionalProperties": False, "properties": {"n": {"type": "integer"}}}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Host:
    """A runtime whose tools leave a trace on disk, and which dies at a given point."""

    def __init__(self, store: Path, effects: Path, die_at: str) -> None:
        self._effects = effects
        self._die_at = die_at
        self.store = _Mortal(store, die_at)
        fields: dict[str, Any] = {
            "sideEffects": "writes",
            "category": "action",
            "parameters": PARAMETERS,
            "timeoutMs": 120_000,
        }
        self.work = TestRuntime(
            make_tool("write", self._write, idempotent=False, **fields),
            make_tool("rewrite", self._write, idempotent=True, **fields),
            make_tool("ask", self._write, idempotent=False, requiresConfirmation=True, **fields),
            policies=jackfield_policies.jackfield_policies(),
            store=self.store,
        )

    async def _write(self, args: dict[str, Any], ctx: Any) -> ToolResponse:
        if self._die_at == "after the claim":
            die()
        await asyncio.sleep(0.001)
        if self._die_at == "in the middle":
            die()
        with self._effects.open("a") as file:
            file.write(f"{args.get('n', 0)}\n")
            file.flush()
            os.fsync(file.fileno())
        if self._die_at == "after the effect":
            die()
        return ok({"n": args.get("n", 0), "by": os.getpid()})


class _Mortal(SqliteStore):
    """A store that dies before it claims or before it records."""

    def __init__(self, path: Path, die_at: str) -> None:
        super().__init__(path, **SLOW_DISK)
        self._die_at = die_at

    async def claim(self, key: str, fingerprint: bytes, **options: Any) -> Claim:
        if self._die_at == "before the claim":
            die()
        return await super().claim(key, fingerprint, **options)

    async def complete(self, key: str, result: bytes, **options: Any) -> bool:
        done = await super().complete(key, result, **options)
        if self._die_at == "after the record":
            die()
        return done


async def main(store: Path, effects: Path, script: dict[str, Any]) -> None:
    host = Host(store, effects, script.get("die", ""))
    work = host.work
    session = work.session(session_id=script["session"], user="ada", secret="known to its client")
    if token := script.get("redeem"):
        answer = await work.resolve(session, token)
        print(answer.wire.decode() if answer else "null", flush=True)
    calls = [
        work.call(session, script.get("tool", "write"), json.dumps({"n": n}), f"call_{n:09}")
        for n in script.get("calls", [])
        for _ in range(script.get("times", 1))
    ]
    # All concurrently; the reader gets each answer as soon as the earlier ones are complete.
    for running in [asyncio.ensure_future(call) for call in calls]:
        print((await running).wire.decode(), flush=True)
    for _, fields in work.events:
        print(json.dumps(fields), flush=True)
    await host.store.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])))
