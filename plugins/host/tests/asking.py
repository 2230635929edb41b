"""HTTP clients for tests that hold every answer of a host to its published document."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import httpx
import jsonschema_rs
from hosting import PATIENCE, Hosted
from jackfield_console import jackfield_endpoints
from jackfield_host.openapi import document
from jackfield_host.plugin_endpoints import PluginEndpoint

NAMED = "Jackfield-Session"


@cache
def _document() -> dict[str, Any]:
    return document([PluginEndpoint(offer, "jackfield-console", ()) for offer in jackfield_endpoints()])


def _operation(method: str, path: str) -> dict[str, Any] | None:
    for template, described in _document()["paths"].items():
        pattern = re.sub(r"\{\w+\}", "[^/]+", template)
        if re.fullmatch(pattern, path) and method in described:
            found: dict[str, Any] = described[method]
            return found
    return None


async def check(response: httpx.Response) -> None:
    """Fail where an answer is not as published."""
    operation = _operation(response.request.method.lower(), response.url.path)
    if operation is None:
        return
    described = operation["responses"].get(str(response.status_code))
    assert described, f"{response.url.path} does not publish {response.status_code}"
    media = response.headers["content-type"].partition(";")[0]
    assert media in described["content"], f"{response.status_code} as {media} is not published"
    if media == "application/json":
        await response.aread()
        schema = {**described["content"][media]["schema"], "components": _document()["components"]}
        faults = [each.message for each in jsonschema_rs.validator_for(schema).iter_errors(response.json())]
        assert not faults, f"{response.text}: {faults}"
        if response.status_code >= 400 and response.url.path != "/health":
            assert response.json()["error"]["message"]


@asynccontextmanager
async def asking(host: Hosted, **headers: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a host."""
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{host.port}",
        headers=headers,
        timeout=PATIENCE,
        event_hooks={"response": [check]},
        trust_env=False,
    ) as client:
        # A stream need not end by itself.
        async with asyncio.timeout(4 * PATIENCE):
            yield client


class Told:
    """One event of a stream."""

    def __init__(self, block: str) -> None:
        self.comment = block.startswith(":")
        fields = dict(line.partition(": ")[::2] for line in block.splitlines() if not line.startswith(":"))
        self.name = fields.get("event", "")
        self.id = fields.get("id", "")
        self.data: dict[str, Any] = json.loads(fields.get("data", "{}"))


async def told(response: httpx.Response) -> AsyncIterator[Told]:
    """The events of a stream as they come."""
    rest = ""
    async for piece in response.aiter_text():
        *blocks, rest = (rest + piece).split("\n\n")
        for block in blocks:
            yield Told(block)


async def until(condition: Callable[[], object]) -> None:
    """Wait for something to come true that nobody tells of."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - there is nothing to be told by
            await asyncio.sleep(0.01)
