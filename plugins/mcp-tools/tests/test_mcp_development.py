"""An operator of a development host accepts what a server changed; nobody else can."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from jackfield_host.security.api_keys import digest, new_key
from shop_deployment import ALLOW, SERVER, Shop

HOST = "jackfield-host"
KEYS = {name: new_key(name, name).key for name in ("ada", "ops")}


def settings(folder: Path, port: int) -> str:
    command = json.dumps([sys.executable, str(SERVER), str(folder), "new"])
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


@contextmanager
def developing(folder: Path) -> Iterator[httpx.Client]:
    """Run `jackfield dev`; yield a client of the operator."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "jackfield.toml").write_text(settings(folder, port))
    with (folder / "host.log").open("wb") as log:
        command = [sys.executable, "-m", "jackfield_cli", "dev"]
        host = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    try:
        bearer = {"Authorization": f"Bearer {KEYS['ops']}"}
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=bearer, timeout=40) as http:
            until(lambda: answers(http, host), folder / "host.log")
            yield http
    finally:
        host.terminate()
        host.wait()


def answers(http: httpx.Client, host: subprocess.Popen[bytes]) -> bool:
    assert host.poll() is None, "the host ended; see host.log"
    try:
        return http.get("/health").status_code == 200
    except httpx.TransportError:
        return False


def until(condition: Any, log: Path) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)


def withheld(http: httpx.Client) -> str | None:
    (tool,) = http.get("/mcp-servers").json()["servers"]["shop"]["tools"]
    reason: str | None = tool["withheld"]
    return reason


def test_only_an_operator_accepts_a_change_on_a_development_host(tmp_path: Path) -> None:
    with developing(tmp_path) as http:
        assert withheld(http) is None
        Shop(tmp_path).redefine(get_price={"description": "Changed."})
        until(lambda: withheld(http), tmp_path / "host.log")
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
