"""Minimal code: parse, await, encode. It checks nothing; some wrong arguments make it crash."""

from __future__ import annotations

import json
from typing import Any

from bench.implementations.timer import measure, run
from bench.implementations.workload import evidence


async def search(arguments: dict[str, Any]) -> dict[str, Any]:
    return evidence(arguments.get("top_k", 5))


async def answer(arguments: str, _: int, __: str) -> str:
    return json.dumps(await search(json.loads(arguments)))


if __name__ == "__main__":
    run(measure(answer))
