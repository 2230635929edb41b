"""Jackfield as in `governed`, with a handler that takes its arguments as a pydantic model."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from jackfield import ToolResponse, ok
from pydantic import BaseModel

from bench.implementations.runtime import governed
from bench.implementations.timer import run
from bench.implementations.workload import evidence


class DateRange(BaseModel):
    """A date range."""

    start: datetime | None = None
    end: datetime | None = None


class Filters(BaseModel):
    """Filters of the search."""

    type: Literal["project", "person", "process", "link", "doc"] | None = None
    tags: list[str] | None = None
    date_range: DateRange | None = None


class Search(BaseModel):
    """The arguments of the search."""

    query: str
    namespace: Literal["studio", "personal", "public"] = "studio"
    filters: Filters | None = None
    top_k: int = 5
    return_fields: list[str] | None = None
    include_snippets: bool = True


async def execute(args: Search, ctx: Any) -> ToolResponse:
    """Search the knowledge base."""
    return ok(evidence(args.top_k))


if __name__ == "__main__":
    run(governed(execute=execute))
