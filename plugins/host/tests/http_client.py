"""HTTP clients for tests that check every response of a host against its OpenAPI document."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import httpx
import jsonschema_rs
from host_harness import PATIENCE, RunningHost
from jackfield_console import jackfield_endpoints
from jackfield_host.endpoints.docs import openapi_document
from jackfield_host.plugin_endpoints import PluginEndpoint

SESSION = "Jackfield-Session"


@cache
def _document() -> dict[str, Any]:
    return openapi_document(
        [PluginEndpoint(offer, "jackfield-console", ()) for offer in jackfield_endpoints()]
    )


def _operation(method: str, path: str) -> dict[str, Any] | None:
    for template, described in _document()["paths"].items():
        pattern = re.sub(r"\{\w+\}", "[^/]+", template)
        if re.fullmatch(pattern, path) and method in described:
            found: dict[str, Any] = described[method]
            return found
    return None


async def check(response: httpx.Response) -> None:
    """Fail if a response does not match the OpenAPI document."""
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
        if response.status_code >= 400 and not response.url.path.startswith("/health"):
            assert response.json()["error"]["message"]


@asynccontextmanager
async def http_client(host: RunningHost, **headers: str) -> AsyncIterator[httpx.AsyncClient]:
    """Connect an HTTP client to a host."""
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{host.port}",
        headers=headers,
        timeout=PATIENCE,
        event_hooks={"response": [check]},
        trust_env=False,
        # There is no TLS here, and reading all certificates takes longer than many requests.
        verify=False,
    ) as client:
        # A stream may never end by itself.
        async with asyncio.timeout(4 * PATIENCE):
            yield client


class StreamEvent:
    """One server-sent event."""

    def __init__(self, block: str) -> None:
        self.comment = block.startswith(":")
        fields = dict(line.partition(": ")[::2] for line in block.splitlines() if not line.startswith(":"))
        self.name = fields.get("event", "")
        self.id = fields.get("id", "")
        self.data: dict[str, Any] = json.loads(fields.get("data", "{}"))


async def stream_events(response: httpx.Response) -> AsyncIterator[StreamEvent]:
    """Yield the events of a stream as they arrive."""
    rest = ""
    async for piece in response.aiter_text():
        *blocks, rest = (rest + piece).split("\n\n")
        for block in blocks:
            yield StreamEvent(block)
