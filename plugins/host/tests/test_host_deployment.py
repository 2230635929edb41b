"""The pages on running a host and the files in deploy/: nginx, systemd, the container, every setting."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import httpx
import pytest
import websockets
from host_harness import HostFolder, HostProcess, free_port, scripted_provider
from jackfield.protocol.close_codes import CLOSE_REASONS
from jackfield.settings import KEYS
from jackfield_cli import main
from jackfield_host.commands.serve import serve
from jackfield_host.security.api_keys import new_key
from jackfield_host.settings import HostSettings, variable
from jackfield_scripted import ScriptedCall, ScriptedModel
from websockets.exceptions import InvalidStatus

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
if not DEPLOY.is_dir():
    pytest.skip("deploy is in the repository only", allow_module_level=True)
PAGE = "\n".join(
    (ROOT / "docs" / f"{name}.md").read_text("utf-8") for name in ("host", "deployment", "lifecycle")
)
NAME = "agent.example"

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
needs_nginx = pytest.mark.skipif(NGINX is None, reason="nginx is not installed (Debian: nginx-light)")


def test_every_flag_of_serve_is_documented() -> None:
    for parameter in serve.params:
        assert parameter.opts[0] in PAGE + (ROOT / "docs" / "cli.md").read_text("utf-8")


def test_the_close_codes_on_the_pages_are_those_of_the_host() -> None:
    codes = {int(code) for code in re.findall(r"\b(40\d\d|101\d)\b", PAGE)}
    assert codes <= {closing.code for closing in CLOSE_REASONS}


def test_links_and_headings_on_the_pages_exist() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", PAGE):
        path, _, heading = target.partition("#")
        text = (ROOT / "docs" / path).read_text("utf-8") if path else PAGE
        slugs = {
            re.sub(r"[^\w -]", "", line.lstrip("# ").lower()).replace(" ", "-")
            for line in text.splitlines()
            if line.startswith("#")
        }
        assert not heading or heading in slugs, target


def test_settings_on_the_pages_are_accepted() -> None:
    (shown_table,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    # The page says to add what `jackfield key` prints; without a token these settings are refused.
    key = {"digest": f"sha256:{'0' * 64}", "user": "ada"}
    HostSettings.load({**tomllib.loads(shown_table)["host"], "keys": {"ada": key}})


# nginx


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a key and a self-signed certificate in one file."""
    folder = tmp_path_factory.mktemp("tls")
    made = folder / "both.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-days", "2", "-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}",
         "-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")],
        check=True, capture_output=True,
    )  # fmt: skip
    made.write_text((folder / "key.pem").read_text() + (folder / "cert.pem").read_text())
    return made


def nginx_main(folder: Path, site: str) -> Path:
    """Return an nginx configuration that keeps everything in one folder."""
    folder.mkdir(exist_ok=True)
    (folder / "site.conf").write_text(site)
    temporary = "\n".join(
        f"    {kind}_temp_path {folder}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    main_file = folder / "nginx.conf"
    user = "user root;\n" if os.geteuid() == 0 else ""
    main_file.write_text(
        f"{user}daemon off;\nworker_processes 1;\n"
        f"pid {folder}/nginx.pid;\nerror_log {folder}/error.log info;\n"
        f"events {{ worker_connections 256; }}\nhttp {{\n{temporary}\n    include {folder}/site.conf;\n}}\n"
    )
    return main_file


def nginx_files(folder: Path, certificate: Path, upstreams: list[int]) -> tuple[Path, int]:
    """Write the shipped configuration for this machine; return the main file and the TLS port."""
    plain, secure = free_port(), free_port()
    servers = "\n".join(f"    server 127.0.0.1:{port} max_fails=1 fail_timeout=2s;" for port in upstreams)
    changes = {
        "    server 127.0.0.1:8765 max_fails=1 fail_timeout=2s;": servers,
        "    listen 80;\n    listen [::]:80;": f"    listen 127.0.0.1:{plain};",
        "    listen 443 ssl;\n    listen [::]:443 ssl;": f"    listen 127.0.0.1:{secure} ssl;",
        f"/etc/ssl/certs/{NAME}.pem": str(certificate),
        f"/etc/ssl/private/{NAME}.key": str(certificate),
        "/var/log/nginx/jackfield.log": str(folder / "access.log"),
    }
    text = (DEPLOY / "nginx.conf").read_text("utf-8")
    for before, after in changes.items():
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    return nginx_main(folder, text), secure


class Proxy:
    """A real nginx with the shipped configuration, and clients for it."""

    def __init__(self, port: int, certificate: Path, key: str) -> None:
        self.port = port
        self.trusted = ssl.create_default_context(cafile=certificate)
        self.origin = f"https://{NAME}:{port}"
        self.headers = {"Authorization": f"Bearer {key}"}

    def socket(self, **headers: str) -> dict[str, Any]:
        """Return the options for a WebSocket through the proxy."""
        return {
            "uri": f"wss://{NAME}:{self.port}/ws/text",
            "host": "127.0.0.1",
            "port": self.port,
            "ssl": self.trusted,
            "origin": self.origin,
            "additional_headers": {**self.headers, **headers},
        }

    def http(self) -> httpx.AsyncClient:
        """Return an HTTP client for the proxy."""
        # The example name does not resolve: connect to the address, and verify the certificate by name.
        return httpx.AsyncClient(
            base_url=f"https://127.0.0.1:{self.port}",
            headers={**self.headers, "Host": f"{NAME}:{self.port}"},
            verify=self.trusted,
            timeout=60,
        )


@asynccontextmanager
async def proxied(
    folder: Path, certificate: Path, hosts: list[HostProcess], key: str
) -> AsyncIterator[Proxy]:
    """Run nginx in front of hosts."""
    file, port = nginx_files(folder, certificate, [host.port for host in hosts])
    async with nginx(file):
        yield Proxy(port, certificate, key)


@asynccontextmanager
async def nginx(file: Path) -> AsyncIterator[None]:
    """Run a real nginx, and wait until it accepts connections."""
    assert NGINX
    folder = file.parent
    process = await asyncio.create_subprocess_exec(NGINX, "-e", str(folder / "early.log"), "-c", str(file))
    try:
        async with asyncio.timeout(60):
            while not (folder / "nginx.pid").exists():
                assert process.returncode is None, (folder / "error.log").read_text()
                await asyncio.sleep(0.02)
        yield
    finally:
        process.terminate()
        await process.wait()


async def model(model: ScriptedModel) -> None:
    while True:
        heard = (await model.hears()).text
        if heard == "look":
            await model.calls(ScriptedCall("hst_look", {"text": "one two"}))
        await model.says("Two words.")


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a key that the hosts of this test accept."""
    made = new_key("phone", "ada")
    said = tomllib.loads(made.lines)["host"]["keys"]["phone"]
    monkeypatch.setenv("JACKFIELD_HOST_KEYS__phone__digest", said["digest"])
    monkeypatch.setenv("JACKFIELD_HOST_KEYS__phone__user", said["user"])
    return made.key


@needs_nginx
def test_nginx_accepts_the_configuration(tmp_path: Path, certificate: Path) -> None:
    assert NGINX
    file, _ = nginx_files(tmp_path, certificate, [9])
    done = subprocess.run(
        [NGINX, "-t", "-e", str(tmp_path / "early.log"), "-c", str(file)],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "warn" not in done.stderr


@needs_nginx
def test_sessions_run_through_nginx_and_move_between_hosts(
    host_folder: HostFolder, certificate: Path, key: str
) -> None:
    async def drive() -> None:
        async with AsyncExitStack() as stack:
            served = await stack.enter_async_context(scripted_provider(model))
            hosts = [
                await stack.enter_async_context(
                    HostProcess(host_folder, served, hosts=[NAME], proxies=["127.0.0.1"])
                )
                for _ in range(2)
            ]
            proxy = await stack.enter_async_context(
                proxied(host_folder.path / "nginx", certificate, hosts, key)
            )
            http = await stack.enter_async_context(proxy.http())
            health = await http.get("/health", extensions={"sni_hostname": NAME})
            assert health.status_code == 200
            assert health.headers.get_list("Strict-Transport-Security") == ["max-age=31536000"]
            await refuses_strangers(proxy, http)
            await streams_a_chat(http)
            await follows_a_session_through_a_restart(proxy, hosts)
        written = (host_folder.path / "nginx" / "access.log").read_text()
        assert '"GET /ws/text" 101' in written
        assert key not in written

    asyncio.run(drive())


KEPT_OPEN = 'proxy_http_version 1.1; proxy_set_header Connection "";'
"""How nginx speaks HTTP/1.1 to what is behind it."""


async def asked_through_nginx(host_folder: HostFolder, *directives: str) -> list[httpx.Response]:
    """Request a host without tokens through each of these nginx configurations, and then directly."""
    async with scripted_provider(model) as served, HostProcess(host_folder, served) as host:
        ports = [free_port() for _ in directives]
        site = "\n".join(
            f"server {{ listen 127.0.0.1:{port}; location / {{\n"
            f"    proxy_pass http://127.0.0.1:{host.port}; {directive}\n}} }}"
            for port, directive in zip(ports, directives, strict=True)
        )
        async with nginx(nginx_main(host_folder.path / "nginx", site)), httpx.AsyncClient(timeout=60) as http:
            urls = [f"http://127.0.0.1:{port}/status" for port in (*ports, host.port)]
            return [await http.get(url, headers={"Host": NAME} if url != urls[-1] else {}) for url in urls]


@needs_nginx
def test_a_host_without_tokens_refuses_requests_from_a_recognisable_proxy(
    host_folder: HostFolder,
) -> None:
    *through, direct = asyncio.run(
        asked_through_nginx(
            host_folder,
            # The default of nginx before 1.30.
            "proxy_http_version 1.0;",
            f"{KEPT_OPEN} proxy_set_header X-Real-IP $remote_addr;",
            f'{KEPT_OPEN} proxy_set_header Via "1.1 edge";',
            f"{KEPT_OPEN} proxy_set_header X-Forwarded-Proto $scheme;",
            f"{KEPT_OPEN} proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;",
        )
    )
    assert direct.status_code == 200
    for answer in through:
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "not_local")
        assert "jackfield key" in answer.json()["error"]["message"]


@needs_nginx
def test_a_proxy_that_adds_no_header_and_speaks_http_1_1_is_not_recognised(
    host_folder: HostFolder,
) -> None:
    """The docs and the startup summary state this limit; update them if it can be lifted."""
    through, _ = asyncio.run(asked_through_nginx(host_folder, KEPT_OPEN))
    assert through.status_code == 200


async def refuses_strangers(proxy: Proxy, http: httpx.AsyncClient) -> None:
    """Check that the proxy does not admit pages of other sites and users without a key."""
    for stranger, status in (
        ({"origin": "https://evil.example"}, 403),
        ({"additional_headers": {}}, 401),
    ):
        with pytest.raises(InvalidStatus) as refused:
            async with talking(proxy, **stranger):
                pass
        assert refused.value.response.status_code == status
    misnamed = await http.get("/status", headers={"Host": "evil.example"}, extensions={"sni_hostname": NAME})
    assert misnamed.status_code == 403


async def streams_a_chat(http: httpx.AsyncClient) -> None:
    """Check that the events of `POST /chat` arrive one by one."""
    asked = {"message": "look"}
    async with http.stream("POST", "/chat", json=asked, extensions={"sni_hostname": NAME}) as answer:
        assert answer.status_code == 200, await answer.aread()
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = [line async for line in answer.aiter_lines()]
    assert any("tool_complete" in line for line in lines)
    assert any("Two words." in line for line in lines)


async def follows_a_session_through_a_restart(proxy: Proxy, hosts: list[HostProcess]) -> None:
    """Drain a host, and check that the proxy connects its client to the other one."""
    async with talking(proxy) as socket:
        await socket.send(json.dumps({"type": "start"}))
        session = await until(socket, "session")
        await socket.send(json.dumps({"type": "text", "text": "look"}))
        await until(socket, "tool_complete")
        last = (await until(socket, "message"))["id"]
        first = the_one_with_a_session(hosts, session["session"])
        assert await first.kill(signal.SIGTERM) == 0
        assert (await until(socket, "going_away"))["reason"] == "the host is restarting"
        await socket.wait_closed()
        assert socket.close_code == 1012
    async with talking(proxy) as socket:
        await socket.send(json.dumps({"type": "resume", "token": session["token"], "lastEvent": last}))
        again = await until(socket, "session")
        assert (again["resumed"], again["session"]) == (True, session["session"])
        await socket.send(json.dumps({"type": "text", "text": "look"}))
        await until(socket, "tool_complete")
        await until(socket, "turn_complete")


def the_one_with_a_session(hosts: list[HostProcess], session: str) -> HostProcess:
    """Return the host that logged that it opened a session."""
    (held,) = [host for host in hosts if f"session {session} (text) opened" in host.output.read_text()]
    return held


@asynccontextmanager
async def talking(proxy: Proxy, **changed: Any) -> AsyncIterator[Any]:
    """Open a WebSocket through the proxy."""
    given = {**proxy.socket(), **changed}
    async with websockets.connect(given.pop("uri"), subprotocols=["jackfield.1"], **given) as socket:  # type: ignore[list-item]
        yield socket


async def until(socket: Any, kind: str) -> dict[str, Any]:
    """Return the next message of a type."""
    async with asyncio.timeout(60):
        async for frame in socket:
            message: dict[str, Any] = json.loads(frame)
            if message["type"] == kind:
                return message
    raise AssertionError(f"closed before {kind}")


# systemd and containers


def unit(text: str) -> dict[str, list[str]]:
    """Return the settings of a unit file, all sections together."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        name, separator, value = line.partition("=")
        if separator and not line.startswith(("#", ";")):
            found.setdefault(name, []).append(value)
    return found


UNITS = ("jackfield.service", "jackfield-store.service")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("name", UNITS)
def test_systemd_accepts_the_unit(tmp_path: Path, name: str) -> None:
    text = (DEPLOY / name).read_text("utf-8")
    program = shutil.which("jackfield", path=str(Path(sys.executable).parent))
    assert program
    file = tmp_path / name
    file.write_text(text.replace("/opt/jackfield/bin/jackfield", program))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(file)], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_unit_allows_time_to_drain_and_names_existing_files() -> None:
    said = unit((DEPLOY / "jackfield.service").read_text("utf-8"))
    assert said["Type"] == ["notify"]
    assert float(said["TimeoutStopSec"][0]) > HostSettings().drain_seconds + 10
    assert said["ExecStart"][0].split()[1:] == ["serve"]
    check_variables(each.partition("=")[0] for each in said["Environment"])


def test_the_store_is_created_at_the_configured_path_and_belongs_to_its_user() -> None:
    host, store = (unit((DEPLOY / name).read_text("utf-8")) for name in UNITS)
    assert store["Type"] == ["oneshot"]
    program, *command = store["ExecStart"][0].split()
    assert (program, command) == (host["ExecStart"][0].split()[0], ["store", "create"])
    for name in ("Environment", "EnvironmentFile", "StateDirectory", "StateDirectoryMode", "WorkingDirectory",
                 "User", "DynamicUser", "UMask", "RestrictAddressFamilies"):  # fmt: skip
        assert store[name] == host[name], name
    # It must not start automatically: that would replace a lost store with an empty one.
    assert "WantedBy" not in store
    assert not {"Wants", "Requires", "ExecStartPre"} & {
        name for name, values in host.items() if any("store" in value for value in values)
    }


def check_variables(names: Any) -> None:
    """Check that every JACKFIELD_* variable in a file exists."""
    known = {f"JACKFIELD_{key.upper()}" for key in KEYS} | {"JACKFIELD_CONFIG"}
    known |= {variable(each.name) for each in fields(HostSettings)}
    assert {name for name in names if name.startswith("JACKFIELD_")} <= known


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the container file, with continued lines joined."""
    text = (DEPLOY / "Containerfile").read_text("utf-8")
    joined = re.sub(r"\\\n\s*", "", "\n".join(line for line in text.splitlines() if not line.startswith("#")))
    return [(word, rest) for line in joined.splitlines() if line for word, _, rest in [line.partition(" ")]]


def test_the_container_runs_the_host_as_an_unprivileged_user() -> None:
    last = dict(instructions())
    assert last["USER"] == "jackfield"
    assert json.loads(last["CMD"]) == ["jackfield", "serve"]
    assert last["STOPSIGNAL"] == "SIGTERM"
    assert last["EXPOSE"] == str(HostSettings().port)
    check_variables(re.findall(r"(\w+)=", last["ENV"]))
    assert "/health" in last["HEALTHCHECK"]
    assert main.get_command(click.Context(main), "serve")


def test_the_container_image_copies_everything_it_needs(tmp_path: Path) -> None:
    copied = [
        rest.split() for word, rest in instructions() if word == "COPY" and not rest.startswith("--from")
    ]
    sources = {source for source, _ in copied}
    for source in sources:
        assert (ROOT / source).exists(), source
    # A link to a file that is not copied would be broken in the container.
    for source in sources:
        for path in (ROOT / source).rglob("*"):
            if path.is_symlink() and ".venv" not in path.parts:
                target = path.resolve().relative_to(ROOT)
                assert target.parts[0] in sources, path


@pytest.mark.parametrize("file", ["nginx.conf", *UNITS, "Containerfile"])
def test_every_deployment_file_is_documented(file: str) -> None:
    assert f"[`deploy/{file}`](../deploy/{file})" in PAGE
