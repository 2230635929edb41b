"""The HTTP pages document every endpoint with its parameters and statuses, and their examples work."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import host_harness
import httpx
import jackfield_host
import pytest
from host_harness import WRITES, HostFolder, make_doubt, running_host, scripted_provider
from http_client import http_client, stream_events
from jackfield.components import ProviderDownload
from jackfield.offers import Download
from jackfield_console.markdown import OPENAPI
from jackfield_host import request_models
from jackfield_host.endpoint import EVENT_STREAM, Endpoint
from jackfield_host.endpoints.docs import ENDPOINTS
from jackfield_host.host import Host
from jackfield_host.security.auth_errors import AUTH_ERRORS
from jackfield_scripted import ScriptedCall, ScriptedModel

DOCS = Path(__file__).parents[3] / "docs"
if not DOCS.is_dir():
    pytest.skip("the pages are in the repository only", allow_module_level=True)
PAGE = "\n".join((DOCS / name).read_text("utf-8") for name in ("http.md", "http-operations.md"))

TOOLS = {
    "count_words": ("plain", {}),
    "book_table": ("plain", {**WRITES, "requiresConfirmation": True, "preview": "Book {text}?"}),
}


def section(operation: Endpoint) -> str:
    """Return the text under an endpoint's heading."""
    _, _, rest = PAGE.partition(f"\n### {operation.method} {operation.path}\n")
    return re.split(r"^##", rest, maxsplit=1, flags=re.MULTILINE)[0]


class Example(NamedTuple):
    """A request, and the documented response."""

    request: str
    media: str
    status: int
    answer: str


def examples(text: str = PAGE) -> list[Example]:
    """Return the examples of a text, in order."""
    pairs = re.findall(r"```http\n(.*?)```\n\n```(\w+) (\d+)\n(.*?)```", text, re.DOTALL)
    return [Example(request, media, int(status), answer) for request, media, status, answer in pairs]


def test_exactly_the_existing_endpoints_are_documented() -> None:
    documented = re.findall(r"^### (.+)$", PAGE, re.MULTILINE)
    of_the_console = {f"{method} /render" for method in ("POST",) if "/render" in OPENAPI["paths"]}
    assert sorted(documented) == sorted({f"{each.method} {each.path}" for each in ENDPOINTS} | of_the_console)


@pytest.mark.parametrize("operation", ENDPOINTS, ids=lambda each: each.name)
def test_each_section_has_the_parameters_the_statuses_and_an_example(operation: Endpoint) -> None:
    text = section(operation)
    rows = set(re.findall(r"^\| `?([\w-]+)`? \|", text, re.MULTILINE))
    body = getattr(request_models, operation.body) if operation.body else None
    fields = body.model_fields.values() if body else ()
    assert {each.name for each in operation.parameters} | {str(each.alias) for each in fields} <= rows
    assert {str(status) for status in (*operation.responses, *operation.errors)} <= rows
    assert examples(text)


def test_every_refusal_code_is_in_the_table_with_its_status() -> None:
    _, _, rest = PAGE.partition("\n## Rejections\n")
    table = re.findall(r"^\| (\d{3}) \| `(\w+)` \| \S", rest.partition("\n## ")[0], re.MULTILINE)
    source = Path(jackfield_host.__file__).parent
    code = "".join(each.read_text("utf-8") for each in source.rglob("*.py"))
    raised = set(re.findall(r'HttpError\(\s*(401|403|429), "(\w+)"', code))
    codes = {(str(status), name) for name, (status, _) in AUTH_ERRORS.items()}
    assert len(table) == len(set(table))
    assert codes | raised - {("401", "session_expired"), ("429", "too_many_streams")} <= set(table)
    assert {
        ("403", "banned"),
        ("403", "not_operator"),
        ("429", "too_many_sessions"),
        ("503", "restarting"),
    } <= set(table)


@pytest.fixture
def page_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HostFolder:
    """Return a folder with the two tools of the page."""
    site = tmp_path / "site"
    monkeypatch.setattr(host_harness, "TOOLS", TOOLS)
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("HST_FOLDER", str(tmp_path))
    monkeypatch.setenv("HST_KEY", "k")
    monkeypatch.chdir(tmp_path)
    host_harness.make_site(site)
    return HostFolder(tmp_path, site / "tool_registry.json", site)


def test_the_examples_run(page_folder: HostFolder) -> None:
    async def script(model: ScriptedModel) -> None:
        await model.hears()
        await model.calls(ScriptedCall("count_words", {"text": "one two"}))
        await model.says("Two.")

    async def main() -> None:
        async with scripted_provider(script) as served:
            tables = {"transports": {"openai": {**served.table, "voice": "webrtc"}}}
            async with (
                running_host(page_folder, served, tables=tables, name="north") as host,
                http_client(host) as ada,
            ):
                await make_doubt(
                    host.sessions.runtime.store,
                    "call/5e8f2c/order-7731",
                    session="5e8f2c",
                    arguments='{"lamps": 3}',
                    meta={"toolId": "order_lamps", "toolVersion": "1.0.0", "registryVersion": "1"},
                )
                offer_download(host.host)
                known: dict[str, str] = {}
                for each in examples():
                    await play(ada, each, known)

    asyncio.run(main())
    for name in [name for name in sys.modules if name.startswith("jackfield_tool_count_words")]:
        del sys.modules[name]


def offer_download(host: Host) -> None:
    """Offer a download like that of the local model, which waits until the host stops."""

    def wait(progress: Callable[[int], None]) -> None:
        while True:
            progress(0)
            time.sleep(0.01)

    label, size = "the local language model", 1_117_320_768
    download = Download("local-model", label, size, wait, lambda: False)
    hint = "run `jackfield model get` to download it"
    host.downloads._offered["local-model"] = ProviderDownload("openai", hint, download)


async def play(ada: httpx.AsyncClient, example: Example, known: dict[str, str]) -> None:
    """Send a request of the page, and compare the response with the documented one."""
    text = re.sub(r"<(\w+)>", lambda match: known[match[1]], example.request)
    head, _, body = text.partition("\n\n")
    (method, target), *lines = [line.split(" ", 1) for line in head.strip().splitlines()]
    headers = {name.rstrip(":"): value for name, value in lines}
    async with ada.stream(method, target, headers=headers, content=body.encode() or None) as response:
        assert response.status_code == example.status, (example.request, await response.aread())
        if EVENT_STREAM in response.headers["content-type"]:
            names = re.findall("^event: (.+)$", example.answer, re.MULTILINE)
            assert [name async for name in _first(response, names)] == names
            return
        await response.aread()
    if example.media == "text":
        assert example.answer.strip() in response.text
        return
    answer = response.json()
    fits(json.loads(example.answer), answer, example.request)
    known |= dict(_learnt(answer))


async def _first(response: httpx.Response, names: list[str]) -> Any:
    """Return the documented events in order, without those between them."""
    waiting = list(names)
    async for each in stream_events(response):
        if each.name == waiting[0]:
            yield waiting.pop(0)
        if not waiting:
            return


def _learnt(answer: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Return the values that later examples use."""
    if answer.get("token"):
        yield "token", answer["token"]
    if answer.get("session_id"):
        yield "session", answer["session_id"]
    if answer.get("confirmation"):
        yield "confirmation", answer["confirmation"]["token"]


def fits(shown: Any, real: Any, where: str) -> None:
    """Return whether a response contains what is documented; any number matches a number."""
    where = f"{where}: {shown} and not {real}"
    match shown:
        case dict():
            for name, value in shown.items():
                assert name in real, where
                fits(value, real[name], f"{where}, {name}")
        case list():
            for value in shown:
                assert any(_is_fit(value, each) for each in real), where
        case bool() | None:
            assert real is shown, where
        case int() | float():
            assert isinstance(real, int | float), where
        case "…":
            assert isinstance(real, str), where
            assert real, where
        case _:
            assert real == shown, where


def _is_fit(shown: Any, real: Any) -> bool:
    try:
        fits(shown, real, "")
    except AssertionError:
        return False
    return True
