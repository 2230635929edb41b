"""Jackfield as in `governed`, with a handler that takes its arguments as a dataclass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jackfield import ToolResponse, ok

from bench.implementations.runtime import governed
from bench.implementations.timer import run
from bench.implementations.workload import evidence


@dataclass(slots=True)
class Search:
    """The arguments of the search."""

    query: str
    namespace: str = "studio"
    filters: dict[str, Any] | None = None
    top_k: int = 5
    return_fields: list[str] | None = None
    include_snippets: bool = True


async def execute(args: Search, ctx: Any) -> ToolResponse:
    """Search the knowledge base."""
    return ok(evidence(args.top_k))


if __name__ == "__main__":
    run(governed(execute=execute))
