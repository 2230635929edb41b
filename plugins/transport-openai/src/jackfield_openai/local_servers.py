"""Detection of servers on this machine with OpenAI's API and a model that can call tools.

Only loopback addresses are queried, briefly, and responses are untrusted: they are bounded in size and time,
redirects and proxies are not followed, and a model is ignored if its name could control a terminal.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from collections.abc import Awaitable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

from jackfield_openai.settings import is_loopback_address

if TYPE_CHECKING:
    from httpx import AsyncClient

_log = logging.getLogger(__name__)

VARIABLE = "JACKFIELD_LOCAL_SERVERS"
"""The environment variable that replaces the list; `none` disables the search."""

FIRST_SECONDS = 0.3
"""Seconds within which a server has to list its models."""
METADATA_SECONDS = 0.5
"""Seconds within which a server that listed its models has to describe them."""
PROBE_SECONDS = 8.0
"""Seconds within which a model without a description has to call a tool."""

MOST_BYTES = 2_000_000
MOST_MODELS = 32
_PROBE_TOKENS = 256

_MODEL = re.compile(r"[A-Za-z0-9][\w.:/@+-]{0,199}", re.ASCII)

_PING = {
    "type": "function",
    "function": {
        "name": "ping",
        "description": "Answers that it is there.",
        "parameters": {"type": "object", "properties": {}},
    },
}


class LocalServer(NamedTuple):
    """A server that responds, and the model for sessions; empty if none can call tools."""

    product: str
    address: str
    model: str

    @property
    def base_url(self) -> str:
        """The base URL for the SDK."""
        return f"http://{self.address}/v1"


class _ServerModels(NamedTuple):
    """The models of a server; `tools` is None if it does not report which of them can call tools."""

    product: str
    address: str
    models: Sequence[str]
    tools: Sequence[str] | None


def addresses(configured: Sequence[str]) -> tuple[str, ...]:
    """Return the servers to query: from the environment variable if it is set, else from the settings."""
    named = os.environ.get(VARIABLE, "").strip()
    if named:
        listed = () if named == "none" else tuple(each.strip() for each in named.split(","))
        for address in listed:
            if not is_loopback_address(address):
                _log.warning(
                    "%s names %r, which is not a loopback address with a port; ignored", VARIABLE, address
                )
        return tuple(filter(is_loopback_address, listed))
    return tuple(configured)


def find(asked: Sequence[str], wanted: str | None = None) -> list[LocalServer]:
    """Return every server that responds: first those with a model that can call tools, in the order queried.

    The model `wanted` is preferred if a server offers it. Servers that describe their models come before
    those that have to be tested.
    """
    if not asked:
        return []
    # On a separate thread, because the caller may have an event loop.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, _find(asked, wanted)).result()


async def _find(asked: Sequence[str], wanted: str | None) -> list[LocalServer]:
    listening = [each for each in await asyncio.gather(*map(_listens, asked)) if each]
    if not listening:
        return []
    # Imported late, because the import takes longer than checking that no server listens.
    import httpx

    timeout = httpx.Timeout(PROBE_SECONDS, connect=FIRST_SECONDS)
    async with httpx.AsyncClient(trust_env=False, timeout=timeout) as client:
        listed = [each for each in await asyncio.gather(*(_list(client, a) for a in listening)) if each]
        found = [
            LocalServer(each.product, each.address, _chosen(each.tools, wanted))
            for each in listed
            if each.tools is not None
        ]
        capable = [each for each in found if each.model]
        undescribed = [each for each in listed if each.tools is None]
        if not capable:
            tried = await asyncio.gather(*(_try_out(client, each, wanted) for each in undescribed))
            capable = [each for each in tried if each.model]
            found += tried
    return capable + [each for each in found if not each.model]


async def _listens(address: str) -> str | None:
    host, _, port = address.rpartition(":")
    try:
        async with asyncio.timeout(FIRST_SECONDS):
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    except (OSError, TimeoutError):
        return None
    writer.close()
    return address


async def _list(client: AsyncClient, address: str) -> _ServerModels | None:
    """Return the models of the server at an address; None unless it lists models as OpenAI's API does."""
    answer = await _within(FIRST_SECONDS, _json(client, "GET", address, "/v1/models"))
    entries = _objects(answer, "data")
    models = _names(entries, "id")
    if not models:
        return None
    try:
        async with asyncio.timeout(METADATA_SECONDS):
            for describe in (_ollama, _lm_studio, _llama_cpp):
                if (listed := await describe(client, address, models)) is not None:
                    return listed
    except TimeoutError:
        _log.info("%s lists models, but did not describe them in time", address)
    owners = {str(each.get("owned_by")) for each in entries}
    return _ServerModels("vLLM" if owners == {"vllm"} else "a server", address, models, None)


async def _ollama(client: AsyncClient, address: str, models: Sequence[str]) -> _ServerModels | None:
    version = await _json(client, "GET", address, "/api/version")
    if not isinstance(version, Mapping) or not isinstance(version.get("version"), str):
        return None
    running = _names(_objects(await _json(client, "GET", address, "/api/ps"), "models"), "model")
    ordered = [
        *(each for each in models if each in running),
        *(each for each in models if each not in running),
    ]
    shown = await asyncio.gather(
        *(_json(client, "POST", address, "/api/show", {"model": each}) for each in ordered)
    )
    if not any(isinstance(each, Mapping) and "capabilities" in each for each in shown):
        return _ServerModels("Ollama", address, ordered, None)
    tools = [
        name
        for name, about in zip(ordered, shown, strict=True)
        # A model that runs on another machine is not a local model.
        if isinstance(about, Mapping) and _has(about, "tools") and not about.get("remote_host")
    ]
    return _ServerModels("Ollama", address, ordered, tools)


async def _lm_studio(client: AsyncClient, address: str, models: Sequence[str]) -> _ServerModels | None:
    entries = _objects(await _json(client, "GET", address, "/api/v1/models"), "models")
    entries = [
        {"id": each.get("key"), "loaded": bool(each.get("loaded_instances")), **each}
        for each in entries
        if each.get("type") == "llm"
    ]
    if not entries:
        older = _objects(await _json(client, "GET", address, "/api/v0/models"), "data")
        entries = [
            {"loaded": each.get("state") == "loaded", **each}
            for each in older
            if each.get("type") in ("llm", "vlm")
        ]
    if not entries:
        return None
    able = [each for each in entries if _has(each, "tool_use") or _has(each, "trained_for_tool_use")]
    able.sort(key=lambda each: not each["loaded"])
    return _ServerModels("LM Studio", address, models, _names(able, "id"))


async def _llama_cpp(client: AsyncClient, address: str, models: Sequence[str]) -> _ServerModels | None:
    props = await _json(client, "GET", address, "/props")
    if not isinstance(props, Mapping) or "chat_template" not in props:
        return None
    caps = props.get("chat_template_caps")
    if not isinstance(caps, Mapping) or "supports_tools" not in caps:
        return _ServerModels("llama.cpp", address, models, None)
    able = caps["supports_tools"] is True and caps.get("supports_tool_calls", True) is True
    return _ServerModels("llama.cpp", address, models, models if able else ())


_tried: dict[tuple[str, str], bool] = {}
"""For each tested model, by server and model: True if it called a tool."""


async def _try_out(client: AsyncClient, listed: _ServerModels, wanted: str | None) -> LocalServer:
    """Test whether a model calls a tool, as in a conversation."""
    model = _chosen(listed.models, wanted)
    key = (listed.address, model)
    if key not in _tried:
        body = {
            "model": model,
            "messages": [{"role": "user", "content": "Call the function ping."}],
            "tools": [_PING],
            "temperature": 0,
            "max_tokens": _PROBE_TOKENS,
        }
        answer = await _within(
            PROBE_SECONDS, _json(client, "POST", listed.address, "/v1/chat/completions", body)
        )
        _tried[key] = _called(answer)
    return LocalServer(listed.product, listed.address, model if _tried[key] else "")


def _called(answer: Any) -> bool:
    for choice in _objects(answer, "choices"):
        for call in _objects(choice.get("message"), "tool_calls"):
            function = call.get("function")
            if isinstance(function, Mapping) and function.get("name") == "ping":
                return True
    return False


def _chosen(models: Sequence[str], wanted: str | None) -> str:
    return wanted if wanted in models and wanted else next(iter(models), "")


def _has(about: Mapping[str, Any], capability: str) -> bool:
    said = about.get("capabilities")
    return said.get(capability) is True if isinstance(said, Mapping) else capability in _list_of(said)


def _list_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _objects(value: Any, member: str) -> list[Mapping[str, Any]]:
    """Return the objects of a list member of a JSON object; empty for anything else."""
    listed = value.get(member) if isinstance(value, Mapping) else None
    return [each for each in _list_of(listed)[:MOST_MODELS] if isinstance(each, Mapping)]


def _names(entries: Sequence[Mapping[str, Any]], member: str) -> list[str]:
    named = (each.get(member) for each in entries)
    return [each for each in named if isinstance(each, str) and _MODEL.fullmatch(each)]


async def _within(seconds: float, work: Awaitable[Any]) -> Any:
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError:
        return None


async def _json(
    client: AsyncClient, method: str, address: str, path: str, body: Mapping[str, Any] | None = None
) -> Any:
    """Return the JSON of a response with status 200; otherwise None."""
    import httpx

    # Without compression, because a small response could expand to a huge one.
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    url = f"http://{address}{path}"
    content = bytearray()
    try:
        async with client.stream(method, url, headers=headers, json=body) as answer:
            if answer.status_code != httpx.codes.OK:
                return None
            async for piece in answer.aiter_raw():
                content += piece
                if len(content) > MOST_BYTES:
                    _log.info("%s answered with more than %d bytes; ignored", url, MOST_BYTES)
                    return None
        return json.loads(content)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError):
        return None
