"""Endpoints of plugins: authentication, limits and the OpenAPI document of the host."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from host_harness import PATIENCE, HostFolder, RunningHost, make_site, running_host, scripted_provider
from jackfield.settings import SettingsError
from jackfield_host.security.api_keys import digest, new_key
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

DOCS = Path(__file__).parents[3] / "docs"

SECTIONS = """\
from jackfield import hookimpl
from jackfield.offers import EndpointOffer


def create(settings, services):
    from starlette.responses import JSONResponse
    from starlette.routing import Mount, Route, WebSocketRoute

    async def item(request):
        return JSONResponse({"item": request.path_params["name"], "body": (await request.body()).decode()})

    async def broken(request):
        raise RuntimeError("the secret inside")

    async def echo(websocket):
        await websocket.accept()
        user = websocket.state.identity.user
        await websocket.send_text(f"{user}: {await websocket.receive_text()}")
        await websocket.close()

    async def deep(request):
        return JSONResponse({"deep": True})

    return [
        Route("/parts/items/{name}", item, methods=["GET", "PUT"]),
        Route("/parts/broken", broken),
        WebSocketRoute("/parts/echo", echo),
        Mount("/parts/mounted", routes=[Route("/deep", deep)]),
    ]


def create_public(settings, services):
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    async def hello(request):
        return JSONResponse({"identity": request.state.identity})

    return [Route("/open/hello", hello)]


def create_operators(settings, services):
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    async def figures(request):
        tools = services.runtime.registry.tools
        return JSONResponse({"sessions": len(services.sessions.live), "tools": len(tools)})

    return [Route("/figures", figures)]


def describe():
    reference = {"$ref": "#/components/schemas/Figures"}
    content = {"application/json": {"schema": reference}}
    operation = {"summary": "Figures.", "responses": {"200": {"description": "Figures.", "content": content}}}
    return {
        "paths": {"/figures": {"get": operation}},
        "components": {"schemas": {"Figures": {"type": "object"}, "ErrorResponse": {"type": "null"}}},
    }


@hookimpl
def jackfield_endpoints():
    return [
        EndpointOffer("parts", "/parts", create),
        EndpointOffer("open", "/open", create_public, auth="public"),
        EndpointOffer("figures", "/figures", create_operators, auth="operator", openapi=describe),
    ]
"""

FAULTY = """\
from jackfield import hookimpl
from jackfield.offers import EndpointOffer
from starlette.responses import Response
from starlette.routing import Host, Route


async def nothing(request):
    return Response()


@hookimpl
def jackfield_endpoints():
    return [
        EndpointOffer("stray", "/stray", lambda settings, services: [Route("/elsewhere", nothing)]),
        EndpointOffer("chatty", "/chat/more", lambda settings, services: [Route("/chat/more", nothing)]),
        EndpointOffer("first", "/shared", lambda settings, services: [Route("/shared/a", nothing)]),
        EndpointOffer("second", "/shared/b", lambda settings, services: [Route("/shared/b", nothing)]),
        EndpointOffer("page", "/", lambda settings, services: [Route("/", nothing)], auth="public"),
        EndpointOffer("typed", "/typed", lambda settings, services: [Host("a.example", nothing)]),
    ]
"""

Work = Callable[[RunningHost, httpx.AsyncClient], Awaitable[None]]


def example() -> str:
    """Return the plugin in the documentation."""
    if not DOCS.is_dir():
        pytest.skip("the pages are in the repository only")
    text = (DOCS / "hooks.md").read_text("utf-8")
    _, _, section = text.partition("### jackfield_endpoints()")
    found = re.search(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


@pytest.fixture
def extended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., HostFolder]:
    """Return a function that creates a working folder whose registry has further plugins."""

    def make(**plugins: str) -> HostFolder:
        site = make_site(tmp_path / "site", {f"hst-{name}": source for name, source in plugins.items()})
        monkeypatch.syspath_prepend(str(site))
        monkeypatch.setenv("HST_FOLDER", str(tmp_path))
        monkeypatch.setenv("HST_KEY", "k")
        monkeypatch.chdir(tmp_path)
        return HostFolder(tmp_path, site / "tool_registry.json", site)

    return make


def run(host_folder: HostFolder, work: Work, tables: Any = None, **options: Any) -> None:
    async def main() -> None:
        async with (
            scripted_provider() as served,
            running_host(host_folder, served, tables=tables, **options) as host,
        ):
            url = f"http://127.0.0.1:{host.port}"
            async with httpx.AsyncClient(base_url=url, timeout=PATIENCE) as client:
                await work(host, client)

    asyncio.run(main())


def keys(*users: str, roles: tuple[str, ...] = ()) -> tuple[dict[str, Any], dict[str, dict[str, str]]]:
    """Return the setting `keys` for some users, and the headers of each."""
    made = {user: new_key(user, user, list(roles)).key for user in users}
    table = {user: {"digest": digest(key), "user": user, "roles": list(roles)} for user, key in made.items()}
    return table, {user: {"Authorization": f"Bearer {key}"} for user, key in made.items()}


def test_the_documented_plugin_is_served_described_and_configured(
    extended: Callable[..., HostFolder],
) -> None:
    async def work(_: RunningHost, client: httpx.AsyncClient) -> None:
        answer = await client.get("/overview")
        assert answer.json() == {"title": "Ours", "user": "local", "live": 0}
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        described = (await client.get("/openapi.json")).json()["paths"]["/overview"]["get"]
        assert described["summary"] == "Count the live sessions of the user."
        assert described["security"] == [{}, {"bearer": []}]
        assert {"200", "401", "403", "429"} <= set(described["responses"])

    run(extended(overview=example()), work, {"endpoints": {"overview": {"title": "Ours"}}})


def test_an_endpoint_requires_a_token_if_the_host_does(extended: Callable[..., HostFolder]) -> None:
    table, headers = keys("ada")

    async def work(_: RunningHost, client: httpx.AsyncClient) -> None:
        refused = await client.get("/overview")
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "missing_token")
        assert refused.headers["www-authenticate"].startswith("Bearer")
        assert (await client.get("/overview", headers=headers["ada"])).json()["user"] == "ada"
        foreign = await client.get("/overview", headers={**headers["ada"], "Origin": "https://evil.example"})
        assert (foreign.status_code, foreign.json()["error"]["code"]) == (403, "foreign_origin")

    run(extended(overview=example()), work, keys=table)


def test_an_endpoint_has_the_rate_limit_and_the_bans_of_the_host(extended: Callable[..., HostFolder]) -> None:
    async def limited(_: RunningHost, client: httpx.AsyncClient) -> None:
        assert (await client.get("/overview")).status_code == 200
        limited = await client.get("/overview")
        assert (limited.status_code, limited.json()["error"]["code"]) == (429, "too_many_requests")
        assert int(limited.headers["retry-after"]) > 0

    async def banned(host: RunningHost, client: httpx.AsyncClient) -> None:
        await host.sessions.runtime.capabilities["bans"].add("local", 60)
        answer = await client.get("/overview")
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "banned")

    host_folder = extended(overview=example())
    run(host_folder, limited, requests_per_minute=1)
    run(host_folder, banned)


def test_methods_paths_mounts_and_errors(extended: Callable[..., HostFolder]) -> None:
    async def work(_: RunningHost, client: httpx.AsyncClient) -> None:
        put = await client.put("/parts/items/lamp", content=b"bright")
        assert put.json() == {"item": "lamp", "body": "bright"}
        assert (await client.get("/parts/mounted/deep")).json() == {"deep": True}
        wrong = await client.delete("/parts/items/lamp")
        assert (wrong.status_code, wrong.json()["error"]["code"]) == (405, "wrong_method")
        missing = await client.get("/parts/nowhere")
        assert (missing.status_code, missing.json()["error"]["code"]) == (404, "no_such_path")
        broken = await client.get("/parts/broken")
        assert (broken.status_code, broken.json()["error"]["code"]) == (500, "internal")
        assert "secret" not in broken.text
        large = await client.put("/parts/items/lamp", content=b"x" * 3000)
        assert (large.status_code, large.json()["error"]["code"]) == (413, "body_too_large")

    run(extended(parts=SECTIONS), work, request_bytes=2048)


def test_a_public_endpoint_requires_no_token_and_refuses_other_sites(
    extended: Callable[..., HostFolder],
) -> None:
    table, _ = keys("ada")

    async def work(_: RunningHost, client: httpx.AsyncClient) -> None:
        assert (await client.get("/open/hello")).json() == {"identity": None}
        for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}):
            answer = await client.get("/open/hello", headers=headers)
            assert answer.status_code == 403, headers
        paths = (await client.get("/openapi.json")).json()["paths"]
        assert "security" not in paths["/open/hello"]["get"]

    run(extended(parts=SECTIONS), work, keys=table)


def test_an_operator_endpoint_refuses_other_users(extended: Callable[..., HostFolder]) -> None:
    users, ada = keys("ada")
    operators, grace = keys("grace", roles=("operator",))

    async def work(_: RunningHost, client: httpx.AsyncClient) -> None:
        refused = await client.get("/figures", headers=ada["ada"])
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "not_operator")
        figures = (await client.get("/figures", headers=grace["grace"])).json()
        assert figures["sessions"] == 0
        assert figures["tools"] > 10
        document = (await client.get("/openapi.json")).json()
        assert document["paths"]["/figures"]["get"]["summary"] == "Figures."
        schemas = document["components"]["schemas"]
        assert schemas["Figures"] == {"type": "object"}
        assert schemas["ErrorResponse"]["type"] == "object", "a plugin replaced a schema of the host"

    run(extended(parts=SECTIONS), work, keys={**users, **operators})


@asynccontextmanager
async def socket(host: RunningHost, path: str, **headers: str) -> AsyncIterator[Any]:
    own: Any = f"http://127.0.0.1:{host.port}"
    async with connect(f"ws://127.0.0.1:{host.port}{path}", origin=own, additional_headers=headers) as line:
        yield line


def test_a_websocket_of_a_plugin_is_authenticated_before_it_is_accepted(
    extended: Callable[..., HostFolder],
) -> None:
    table, headers = keys("ada")

    async def work(host: RunningHost, _: httpx.AsyncClient) -> None:
        async with socket(host, "/parts/echo", **headers["ada"]) as line:
            await line.send("hello")
            assert await line.recv() == "ada: hello"
        with pytest.raises(InvalidStatus) as refused:
            async with socket(host, "/parts/echo"):
                pass
        assert refused.value.response.status_code == 401

    run(extended(parts=SECTIONS), work, keys=table)


def test_an_endpoint_can_be_disabled(extended: Callable[..., HostFolder]) -> None:
    async def work(_: RunningHost, client: httpx.AsyncClient) -> None:
        assert (await client.get("/overview")).status_code == 404
        assert "/overview" not in (await client.get("/openapi.json")).json()["paths"]

    run(extended(overview=example()), work, {"endpoints": {"overview": {"enabled": False}}})


def test_every_fault_of_the_endpoints_stops_the_start_at_once(extended: Callable[..., HostFolder]) -> None:
    async def work(_: RunningHost, __: httpx.AsyncClient) -> None:
        raise AssertionError("it started")

    with pytest.raises(SettingsError) as refused:
        run(extended(faulty=FAULTY), work)
    told = str(refused.value)
    for fault in (
        "endpoint stray: the path /elsewhere is not below its prefix /stray",
        "endpoint chatty: /chat/more overlaps /chat of the host",
        "endpoint second: /shared/b overlaps /shared of plugin hst-faulty 1.0.0, endpoint first",
        "endpoint page: / overlaps / of plugin jackfield-console",
        "endpoint typed: Host is not a Route, a WebSocketRoute or a Mount",
    ):
        assert fault in told, told


def test_without_the_console_the_host_serves_everything_else(extended: Callable[..., HostFolder]) -> None:
    async def work(_: RunningHost, client: httpx.AsyncClient) -> None:
        page = await client.get("/")
        assert page.status_code == 200
        assert page.headers["content-type"].startswith("text/plain")
        assert "jackfield-console" in page.text
        assert (await client.get("/console/js/app.js")).status_code == 404
        assert (await client.get("/health")).status_code == 200
        foreign = await client.get("/", headers={"Host": "evil.example"})
        assert foreign.status_code == 403

    off = {"enabled": False}
    run(extended(), work, {"endpoints": {"console": off, "render": off}})
