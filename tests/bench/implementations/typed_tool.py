"""The tool for the peers: an async function with a typed signature that pydantic checks."""

from __future__ import annotations

import datetime as dt
from importlib import import_module
from typing import Annotated, Any, Literal

from bench.implementations.workload import evidence

# The peers may be missing during type checks.
pydantic: Any = import_module("pydantic")
pydantic_core: Any = import_module("pydantic_core")

_Strict = pydantic.ConfigDict(extra="forbid")


class DateRange(pydantic.BaseModel):  # type: ignore[misc] # whatever it is there
    """A date range."""

    model_config = _Strict
    start: dt.datetime | None = None
    end: dt.datetime | None = None


class Filters(pydantic.BaseModel):  # type: ignore[misc] # whatever it is there
    """Filters of the search."""

    model_config = _Strict
    type: Literal["project", "person", "process", "link", "doc"] | None = None
    tags: Annotated[
        list[Annotated[str, pydantic.Field(min_length=1, max_length=100)]] | None,
        pydantic.Field(max_length=5),
    ] = None
    date_range: DateRange | None = None


async def kb_search(
    query: Annotated[str, pydantic.Field(min_length=1, max_length=200)],
    namespace: Literal["studio", "personal", "public"] = "studio",
    filters: Filters | None = None,
    top_k: Annotated[int, pydantic.Field(ge=1, le=10)] = 5,
    return_fields: list[Literal["snippet", "full_text", "metadata", "sources", "url"]] | None = None,
    include_snippets: bool = True,
) -> dict[str, Any]:
    """Search the knowledge base."""
    return evidence(top_k)


def read(arguments: str) -> dict[str, Any]:
    """Parse JSON with the fastest parser that a peer installs."""
    value: dict[str, Any] = pydantic_core.from_json(arguments)
    return value


def written(result: Any) -> str:
    """Encode JSON with the fastest encoder that a peer installs."""
    text: str = pydantic_core.to_json(result).decode()
    return text
