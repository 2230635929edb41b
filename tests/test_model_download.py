"""A running host downloads the local model: progress, failures, crashes, and permissions."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import websockets
from jackfield_host.security.api_keys import new_key
from jackfield_testkit.site_packages import SitePackages
from model_index import MODEL, PARTS, ModelIndex, model_index
from websockets.typing import Origin, Subprotocol

pytest.importorskip("xllamacpp", reason="the download is offered only where llama.cpp is installed")

ALLOW = ("jackfield-policies", "jackfield-transport-local", "jackfield-tool-format-datetime")
START = "/downloads/start"
NAME = {"name": "local-model"}
WITHOUT = "no key and no local server was found; it uses no language model"
WITH = "no key and no local server was found; it uses the local language model"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return SitePackages(tmp_path_factory.mktemp("site")).frozen(*ALLOW)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[ModelIndex]:
    with model_index(tmp_path / "index") as served:
        yield served


class Host:
    """A host in its own process, and a client of it."""

    def __init__(self, folder: Path, registry: Path, index: ModelIndex, host: str = "") -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            self.port: int = taken.getsockname()[1]
        (folder / "host.toml").write_text(
            f'store = "memory"\nallow = {json.dumps(ALLOW)}\nregistry = "{registry}"\n'
            f"[host]\nport = {self.port}\n{host}\n"
        )
        self.folder = folder
        self.index = index
        self.client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{self.port}", timeout=30)
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        with (self.folder / "host.log").open("a") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, str(self.index.launcher), "serve", "--config", "host.toml",
                cwd=self.folder, env=self.index.environ, stdout=log, stderr=log,
            )  # fmt: skip
        await self.until(self._listens)

    async def stop(self, sig: signal.Signals) -> int:
        assert self._process
        if self._process.returncode is None:
            self._process.send_signal(sig)
        return await self._process.wait()

    async def until(self, met: Callable[[], Awaitable[bool]]) -> None:
        """Wait for a condition; an incomplete model must never be present."""
        async with asyncio.timeout(60):
            while not await met():
                assert self._process
                assert self._process.returncode is None, (self.folder / "host.log").read_text()
                target = self.index.target
                assert not target.exists() or target.read_bytes() == MODEL
                await asyncio.sleep(0.1)  # A host answers ten requests per second.

    async def progress(self) -> dict[str, Any]:
        (download,) = (await self.client.get("/downloads")).json()["downloads"]
        return dict(download)

    async def begin(self) -> None:
        answer = await self.client.post(START, json=NAME)
        assert (answer.status_code, answer.json()["state"]) == (202, "running")

    async def until_state(self, state: str) -> dict[str, Any]:
        async def is_so() -> bool:
            return bool((await self.progress())["state"] == state)

        await self.until(is_so)
        return await self.progress()

    async def until_asked(self, *parts: int) -> None:
        async def is_so() -> bool:
            return set(parts) <= set(self.index.asked)

        await self.until(is_so)

    async def choice(self) -> dict[str, Any]:
        return dict((await self.client.get("/status")).json()["providerChoice"])

    async def session(self, token: str = "") -> dict[str, Any]:
        """Return the first message to a client that starts or resumes a session."""
        address = f"127.0.0.1:{self.port}"
        async with websockets.connect(
            f"ws://{address}/ws/text",
            origin=Origin(f"http://{address}"),
            subprotocols=[Subprotocol("jackfield.1")],
        ) as line:
            said = {"type": "resume", "token": token} if token else {"type": "start"}
            await line.send(json.dumps(said))
            return dict(json.loads(await line.recv()))

    async def _listens(self) -> bool:
        try:
            return bool((await self.client.get("/health")).is_success)
        except httpx.TransportError:
            return False


Test = Callable[[Host], Awaitable[None]]


def run(folder: Path, registry: Path, index: ModelIndex, test: Test, host: str = "") -> None:
    """Run a test against a host."""

    @asynccontextmanager
    async def running() -> AsyncIterator[Host]:
        held = Host(folder, registry, index, host)
        await held.start()
        try:
            yield held
        finally:
            await held.client.aclose()
            await held.stop(signal.SIGKILL)

    async def main() -> None:
        async with running() as held:
            await test(held)

    asyncio.run(main())


def test_the_model_is_downloaded_while_the_host_serves_and_new_sessions_use_it(
    tmp_path: Path, registry: Path, index: ModelIndex
) -> None:
    index.held[2] = threading.Event()

    async def test(host: Host) -> None:
        before = await host.choice()
        assert before["reason"] == WITHOUT
        offered = await host.progress()
        assert offered == {
            "name": "local-model",
            "label": "the local language model",
            "hint": before["hints"][-1],
            "state": "available",
            "sizeBytes": len(MODEL),
            "receivedBytes": 0,
            "error": None,
            "needsRestart": False,
        }
        old = await host.session()
        assert old["providerReason"] == WITHOUT
        await host.begin()
        await host.until_asked(1, 2)
        began = time.monotonic()
        assert (await host.progress())["receivedBytes"] == len(PARTS[0])
        assert time.monotonic() - began < 5  # The host keeps serving.
        await host.begin()  # Repeating the request is harmless.
        assert (await host.session())["providerReason"] == WITHOUT
        assert not index.target.exists()
        index.held[2].set()
        done = await host.until_state("complete")
        assert done["receivedBytes"] == len(MODEL)
        assert index.target.read_bytes() == MODEL
        assert index.asked.count(2) == 1
        after = await host.choice()
        assert after["reason"] == WITH
        assert after["hints"] == before["hints"][:-1]
        assert (await host.session())["providerReason"] == WITH
        # A session started without the model continues without it, and says so.
        assert (await host.session(old["token"]))["providerReason"] == WITHOUT
        again = await host.client.post(START, json=NAME)
        assert (again.status_code, again.json()["state"]) == (202, "complete")

    run(tmp_path, registry, index, test)


def test_a_failed_download_reports_the_reason_and_a_retry_continues_it(
    tmp_path: Path, registry: Path, index: ModelIndex
) -> None:
    index.lost.add(3)

    async def test(host: Host) -> None:
        await host.begin()
        failed = await host.until_state("failed")
        assert failed["error"].startswith("small-model-part3 cannot be downloaded")
        assert failed["receivedBytes"] == len(PARTS[0]) + len(PARTS[1])
        assert not index.target.exists()
        assert (await host.choice())["reason"] == WITHOUT
        index.lost.clear()
        fetched = list(index.asked)
        await host.begin()
        await host.until_state("complete")
        assert index.target.read_bytes() == MODEL
        assert set(index.asked[len(fetched) :]) == {3}

    run(tmp_path, registry, index, test)


def test_a_killed_host_continues_the_download_on_request(
    tmp_path: Path, registry: Path, index: ModelIndex
) -> None:
    index.held[2] = threading.Event()

    async def test(host: Host) -> None:
        await host.begin()
        await host.until_asked(1, 2)
        await host.stop(signal.SIGKILL)
        index.held[2].set()
        assert not index.target.exists()
        await host.start()
        assert (await host.progress())["state"] == "available"
        fetched = list(index.asked)
        await host.begin()
        await host.until_state("complete")
        assert index.target.read_bytes() == MODEL
        assert 1 not in index.asked[len(fetched) :]
        assert list(index.target.parent.glob(".*.partial")) == []

    run(tmp_path, registry, index, test)


def test_a_stopping_host_stops_the_download(tmp_path: Path, registry: Path, index: ModelIndex) -> None:
    index.held[2] = threading.Event()

    async def test(host: Host) -> None:
        await host.begin()
        await host.until_asked(1, 2)
        async with asyncio.timeout(20):
            assert await host.stop(signal.SIGTERM) == 0
        assert "the download of the local language model was stopped" in (tmp_path / "host.log").read_text()
        assert not index.target.exists()
        (partial,) = index.target.parent.glob(".*.partial")
        assert list(partial.glob("pip-*")) == []
        assert [each.read_bytes() for each in partial.glob("*.part")] == PARTS[:1]

    run(tmp_path, registry, index, test)


def test_only_operators_see_and_start_downloads(tmp_path: Path, registry: Path, index: ModelIndex) -> None:
    keys = {"ada": new_key("ada", "ada"), "ops": new_key("ops", "ops", ["operator"])}
    tables = "\n".join(each.lines for each in keys.values())

    async def test(host: Host) -> None:
        for name, status in (("", 401), ("ada", 403), ("ops", 200)):
            headers = {"Authorization": f"Bearer {keys[name].key}"} if name else {}
            assert (await host.client.get("/downloads", headers=headers)).status_code == status
            answer = await host.client.post(START, json=NAME, headers=headers)
            assert answer.status_code == {200: 202}.get(status, status)
            if name != "ops":
                assert index.asked == []
        wrong = await host.client.post(START, json={"name": "another"}, headers=headers)
        assert (wrong.status_code, wrong.json()["error"]["code"]) == (404, "unknown_download")
        assert (await host.client.post(START, content="{}", headers=headers)).status_code == 415

    run(tmp_path, registry, index, test, tables)
