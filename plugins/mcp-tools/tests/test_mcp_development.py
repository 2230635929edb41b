"""An operator of a development host accepts what a server changed; nobody else can."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from jackfield_host.security.api_keys import digest, new_key
from jackfield_testkit.command_server import StartedCommand, start_command
from shop_deployment import ALLOW, Shop
from shop_forks import forked_command

HOST = "jackfield-host"
KEYS = {name: new_key(name, name).key for name in ("ada", "ops")}


def settings(folder: Path, port: int) -> str:
    command = json.dumps(forked_command(folder, "new"))
    keys = [
        f'[host.keys.{name}]\ndigest = "{digest(key)}"\nuser = "{name}"\nroles = {roles}'
        for (name, key), roles in zip(KEYS.items(), ("[]", '["operator"]'), strict=True)
    ]
    lines = (
        'store = "memory"', 'provider = "none"', f"allow = {json.dumps([*ALLOW, HOST])}",
        f"[host]\nport = {port}",
        *keys,
        f'[capabilities.mcp.servers.shop]\ncommand = {command}\nallow = ["get_price"]\nrefresh = 0.2',
    )  # fmt: skip
    return "\n".join(lines)


@asynccontextmanager
async def developing(folder: Path) -> AsyncIterator[httpx.Client]:
    """Run `jackfield dev`; yield a client of the operator."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "jackfield.toml").write_text(settings(folder, port))
    with (folder / "host.log").open("wb") as log:
        host = await start_command(["dev"], cwd=folder, stdout=log, stderr=log)
    try:
        bearer = {"Authorization": f"Bearer {KEYS['ops']}"}
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=bearer, timeout=40) as http:
            await until(lambda: answers(http, host), folder)
            yield http
    finally:
        if host.returncode is None:
            host.terminate()
        await host.wait()


def answers(http: httpx.Client, host: StartedCommand) -> bool:
    assert host.returncode is None, "the host ended; see host.log"
    try:
        return http.get("/health").status_code == 200
    except httpx.TransportError:
        return False


async def until(condition: Any, folder: Path) -> None:
    try:
        async with asyncio.timeout(60):
            while not condition():  # noqa: ASYNC110 - the condition is in another process
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError((folder / "host.log").read_text()) from None


def withheld(http: httpx.Client) -> str | None:
    (tool,) = http.get("/mcp-servers").json()["servers"]["shop"]["tools"]
    reason: str | None = tool["withheld"]
    return reason


async def test_only_an_operator_accepts_a_change_on_a_development_host(tmp_path: Path) -> None:
    async with developing(tmp_path) as http:
        assert withheld(http) is None
        Shop(tmp_path).redefine(get_price={"description": "Changed."})
        await until(lambda: withheld(http), tmp_path)
        before = http.get("/registry").json()
        assert "shop__get_price" in before["withheld"]

        path = "/development/listings"
        as_user = http.post(path, headers={"Authorization": f"Bearer {KEYS['ada']}"})
        assert (as_user.status_code, as_user.json()["error"]["code"]) == (403, "not_operator")
        assert http.post(path, headers={"Authorization": ""}).status_code == 401
        assert http.post(path, headers={"Origin": "https://other.example"}).status_code == 403
        assert http.get("/registry").json()["version"] == before["version"]

        accepted = http.post(path)
        assert accepted.status_code == 202
        number = accepted.json()["number"]
        status = http.get("/development", params={"after": number}).json()
        assert (status["number"], status["ok"]) == (number + 1, True), status
        assert status["tools"] == ["shop__get_price"]
        after = http.get("/registry").json()
        assert after["withheld"] == {}
        assert after["version"] != before["version"]
        assert withheld(http) is None
    frozen = json.loads((tmp_path / "tool_registry.json").read_text())
    assert "Changed." in json.dumps(frozen)
