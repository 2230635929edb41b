"""What anybody would write: parse, await, write. It checks nothing; some wrong arguments make it crash."""

from __future__ import annotations

import json
from typing import Any

from bench.contestants.job import evidence
from bench.contestants.stopwatch import measure, run


async def search(arguments: dict[str, Any]) -> dict[str, Any]:
    return evidence(arguments.get("top_k", 5))


async def answer(arguments: str, _: int, __: str) -> str:
    return json.dumps(await search(json.loads(arguments)))


if __name__ == "__main__":
    run(measure(answer))
