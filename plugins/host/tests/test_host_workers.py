"""`jackfield serve --workers`: several processes on one port, and sessions that move between them."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result
from host_harness import PATIENCE, Client, HostFolder, HostProcess, free_port, scripted_provider, wait_until
from jackfield_cli import main
from jackfield_scripted import ScriptedCall, ScriptedModel

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers share their port on Linux")


async def model(model: ScriptedModel) -> None:
    """Answer every message, and call the tool that it names."""
    while True:
        heard = (await model.hears()).text
        if heard.startswith("hst_"):
            await model.calls(ScriptedCall(heard.split()[0], {"text": heard.partition(" ")[2]}))
        await model.says(f"You said {heard}.")


class Workers(HostProcess):
    """A parent with its workers."""

    @property
    def said(self) -> str:
        """What the parent and the workers have printed."""
        return self.output.read_text()

    async def start(self) -> None:
        """Start it, and wait until all workers serve."""
        await super().start()
        await wait_until(lambda: "Open http" in self.said)

    def pids(self) -> dict[int, int]:
        """Return the process of each worker that has served, by number."""
        return {
            int(number): int(pid)
            for number, pid in re.findall(r"worker (\d+) is serving \(process (\d+)", self.said)
        }

    def worker_of(self, client_port: int) -> int:
        """Return the number of the worker that serves the connection from this port."""
        ends = f"{self.port:04X}", f"{client_port:04X}"
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            fields = line.split()
            if (fields[1].partition(":")[2], fields[2].partition(":")[2]) == ends:
                for number, pid in self.pids().items():
                    if f"socket:[{fields[9]}]" in open_files(pid):
                        return number
        raise AssertionError(f"no worker serves port {client_port}")

    @asynccontextmanager
    async def client_at(self, number: int) -> AsyncIterator[httpx.AsyncClient]:
        """Return an HTTP client whose only connection leads to this worker."""
        while True:
            connection = httpx.AsyncHTTPTransport(limits=httpx.Limits(max_connections=1))
            url = f"http://127.0.0.1:{self.port}"
            async with httpx.AsyncClient(base_url=url, transport=connection, timeout=PATIENCE) as client:
                answer = await client.get("/health")
                port = answer.extensions["network_stream"].get_extra_info("client_addr")[1]
                if self.worker_of(port) == number:
                    yield client
                    return


def open_files(pid: int) -> set[str]:
    """Return the open files of a process; none if it has ended."""
    found = set()
    with suppress(OSError):
        for each in Path(f"/proc/{pid}/fd").iterdir():
            found.add(str(each.readlink()))
    return found


def children(pid: int) -> list[str]:
    """Return the child processes of a process."""
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def is_running(pid: int) -> bool:
    """Return whether a process runs; an ended one may wait for the init process of a container."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def is_free(port: int) -> bool:
    """Return whether a host can listen on a port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def client_port(client: Client) -> int:
    port: int = client.raw.local_address[1]
    return port


@asynccontextmanager
async def workers(host_folder: HostFolder, count: int = 2, **options: Any) -> AsyncIterator[Workers]:
    async with (
        scripted_provider(model) as served,
        Workers(host_folder, served, workers=count, **options) as host,
    ):
        yield host


def has_ended(pid: int) -> bool:
    """Whether a killed process has closed its files: all its threads have ended."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        stat = Path(f"/proc/{pid}/stat").read_text("ascii")
    except (FileNotFoundError, ProcessLookupError):
        return True
    # The first thread stays as a zombie until the parent has noticed.
    return len(threads) == 1 and stat.rpartition(")")[2].split()[0] == "Z"


def test_a_session_resumes_on_another_worker_after_its_worker_was_killed(host_folder: HostFolder) -> None:
    async def drive() -> None:
        async with workers(host_folder) as host:
            first = dict(host.pids())
            assert sorted(first) == [1, 2]
            assert "  workers   2 processes" in host.said
            async with host.client("text") as ada:
                await ada.say("text", text="hst_note once")
                await ada.until_type("turn_complete")
                token, last = ada.session["token"], ada.events[-1]["id"]  # type: ignore[index]
                killed = host.worker_of(client_port(ada))
                os.kill(first[killed], signal.SIGKILL)
                await ada.until_closed()
            # Until then, its listening socket may still accept a connection and reset it.
            await wait_until(lambda: has_ended(first[killed]))
            async with host.client("text", token=token, lastEvent=last) as ada:
                assert ada.session
                assert ada.session["resumed"]
                await ada.say("text", text="still there")
                answer = await ada.until_type("message")
                await ada.until_type("turn_complete")
                numbers = [each["id"] for each in ada.events]
                assert numbers == sorted(set(numbers))
                assert numbers[0] > last
            assert "still there" in json.dumps(answer)
            assert host_folder.effects("done once") == 1
            # The parent replaces the worker, and the new one serves too.
            await wait_until(lambda: host.pids()[killed] != first[killed])
            assert f"worker {killed} was killed by SIGKILL; restarting it" in host.said
            async with host.client_at(killed) as http:
                assert (await http.get("/health")).status_code == 200

    asyncio.run(drive())


def test_calls_events_and_confirmations_of_a_session_work_on_different_workers(
    host_folder: HostFolder,
) -> None:
    async def drive() -> None:
        async with (
            workers(host_folder) as host,
            host.client_at(1) as one,
            host.client_at(2) as two,
        ):
            asked = await one.post("/execute/hst_book", json={"arguments": {"text": "a table"}})
            waiting = asked.json()
            session = {"Jackfield-Session": waiting["token"]}
            events = host_events(two, session)
            seen = [await anext(events)]
            confirm, approval = f"/confirmations/{waiting['confirmation']['token']}", {"approve": True}
            approved = await one.post(confirm, json=approval, headers=session)
            assert approved.status_code == 200, approved.text
            while seen[-1]["type"] != "tool_complete":
                seen.append(await anext(events))
            await events.aclose()
            assert host_folder.effects("done a table") == 1
            again = await two.post(confirm, json=approval, headers=session)
            assert again.json()["envelope"] == approved.json()["envelope"]
            assert host_folder.effects("done a table") == 1

    asyncio.run(drive())


async def host_events(
    client: httpx.AsyncClient, headers: dict[str, str]
) -> AsyncGenerator[dict[str, Any], None]:
    async with client.stream("GET", "/events", headers=headers) as answer:
        assert answer.status_code == 200
        async for line in answer.aiter_lines():
            if line.startswith("data: "):
                yield json.loads(line.removeprefix("data: "))


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_every_worker_even_if_it_reaches_all_processes(
    host_folder: HostFolder, sig: signal.Signals
) -> None:
    """As Ctrl-C in a terminal does."""

    async def drive() -> None:
        async with workers(host_folder) as host:
            pids = list(host.pids().values())
            async with host.client("text") as ada:
                for pid in pids:
                    os.kill(pid, sig)
                assert await host.kill(sig) == 0
                assert await ada.until_closed() == (1012, "the host is restarting")
                assert ada.of("going_away")
            assert not any(map(is_running, pids))
            assert "second signal" not in host.said
            assert host.said.count(": drained") == 2
            assert "Traceback" not in host.said

    asyncio.run(drive())


def test_a_second_signal_stops_every_worker_at_once(host_folder: HostFolder) -> None:
    async def drive() -> None:
        async with workers(host_folder, drain_seconds=600) as host:
            pids = list(host.pids().values())
            async with host.client_at(1) as http:
                never = {"arguments": {"text": "never", "before": "no such gate"}}
                call = asyncio.create_task(http.post("/execute/hst_note", json=never))
                await wait_until(lambda: host_folder.effects("begun never"))
                os.kill(host.pid, signal.SIGTERM)
                await wait_until(lambda: "worker 1: draining" in host.said)
                assert await host.kill(signal.SIGTERM) == 128 + signal.SIGTERM
                await asyncio.gather(call, return_exceptions=True)
            assert not any(map(is_running, pids))

    asyncio.run(drive())


def test_the_workers_end_when_their_parent_is_killed(host_folder: HostFolder) -> None:
    async def drive() -> None:
        async with workers(host_folder) as host:
            pids = list(host.pids().values())
            await host.kill(signal.SIGKILL)
            await wait_until(lambda: not any(map(is_running, pids)))
            # The port is free for the next start.
            await wait_until(lambda: is_free(host.port))

    asyncio.run(drive())


def test_one_worker_is_one_process(host_folder: HostFolder) -> None:
    async def drive() -> None:
        async with workers(host_folder, 1) as host:
            assert children(host.pid) == []
            assert "  workers " not in host.said
            assert "worker 1" not in host.said
            assert await host.kill(signal.SIGTERM) == 0

    asyncio.run(drive())


def test_the_service_manager_hears_once_that_all_workers_are_ready(
    host_folder: HostFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"jackfield-test-{os.getpid()}-{free_port()}"
    monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}")
    monkeypatch.setenv("WATCHDOG_USEC", "30000000")

    async def drive() -> list[str]:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(f"\0{name}")
            manager.setblocking(False)
            async with workers(host_folder) as host:
                assert await host.kill(signal.SIGTERM) == 0
                told = []
                while True:
                    try:
                        told.append(manager.recv(4096).decode())
                    except BlockingIOError:
                        return told

    told = [each.splitlines()[0] for each in asyncio.run(drive())]
    assert told.count("READY=1") == 1
    assert told.count("STOPPING=1") == 1
    assert "WATCHDOG=1" in told
    assert told.index("READY=1") < told.index("STOPPING=1")


# Refused settings


def serve(host_folder: HostFolder, *arguments: str, top: str = "") -> Result:
    config = host_folder.path / "jackfield.toml"
    config.write_text(f'registry = {json.dumps(str(host_folder.registry))}\nprovider = "none"\n{top}\n')
    return CliRunner().invoke(main, ["serve", "--config", str(config), *arguments])


def test_no_workers_are_refused(host_folder: HostFolder) -> None:
    done = serve(host_folder, "--workers", "0")
    assert done.exit_code == 1
    assert "[host] workers (--workers): 0" in done.stderr or "--workers" in done.stderr
    assert "1 to 256" in done.stderr


def run_serve(host_folder: HostFolder, *arguments: str, top: str = "") -> subprocess.CompletedProcess[str]:
    """Run `serve`, which must not start, in a process of its own."""
    config = host_folder.path / "jackfield.toml"
    config.write_text(f'registry = {json.dumps(str(host_folder.registry))}\nprovider = "none"\n{top}\n')
    return subprocess.run(
        [sys.executable, "-m", "jackfield_cli", "serve", "--config", str(config), *arguments],
        capture_output=True, text=True, check=False, timeout=PATIENCE, cwd=host_folder.path,
        env={**os.environ, "PYTHONPATH": str(host_folder.site)},
    )  # fmt: skip


def test_several_workers_refuse_a_store_that_they_cannot_share(host_folder: HostFolder) -> None:
    done = run_serve(host_folder, "--workers", "2", "--port", "0", top='store = "memory"')
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("cannot share the `memory` store") == 1
    assert 'store = "sqlite"' in done.stderr
    assert "Traceback" not in done.stderr


def test_a_second_host_does_not_share_the_port_of_workers(host_folder: HostFolder) -> None:
    async def drive() -> None:
        async with workers(host_folder) as host:
            for count in ("1", "2"):
                arguments = ("--workers", count, "--port", str(host.port))
                done = await asyncio.to_thread(run_serve, host_folder, *arguments)
                assert done.returncode == 1
                assert "the port is in use" in done.stderr

    asyncio.run(drive())


# The parent alone, with workers that fail


PARENT = """
import logging, os, signal, sys, time
from pathlib import Path
from jackfield_host import supervisor
from jackfield_host.settings import HostSettings

logging.basicConfig(level="INFO", stream=sys.stderr, format="%(message)s")
supervisor.FIRST_DELAY = 0.01
folder = Path(sys.argv[1])

def starts(number):
    with (folder / f"starts-{number}").open("a") as file:
        file.write(f"{os.getpid()}\\n")
    return len((folder / f"starts-{number}").read_text().splitlines())

notifier = supervisor.SystemdNotifier()
notifier.watchdog_seconds = float(sys.argv[2])

def work(worker):
    number, parent = worker.parent.number, worker.parent
    count = starts(number)
    ready = lambda: parent.report_ready({"n": number})
    def serve_forever():
        parent.on_stop(lambda at_once: os._exit(0))
        ready()
        while True:
            parent.alive()
            time.sleep(0.02)
    exec(sys.argv[3])

options, ready = HostSettings(port=0, workers=2), lambda summary: print("ready", flush=True)
sys.exit(supervisor.Supervisor(options, work, ready, notifier).run())
"""


@contextmanager
def parent(tmp_path: Path, work: str, watchdog: float = 0.0) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path), str(watchdog), work],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def starts(tmp_path: Path, number: int) -> list[int]:
    path = tmp_path / f"starts-{number}"
    return [int(pid) for pid in path.read_text().split()] if path.exists() else []


def stopped(process: subprocess.Popen[str], condition: Callable[[], object]) -> str:
    """Wait for a condition, stop the parent, and return what it logged."""
    asyncio.run(wait_until(condition))
    process.terminate()
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said
    return said


def test_the_host_gives_up_if_a_worker_dies_while_all_are_started(tmp_path: Path) -> None:
    with parent(tmp_path, "if number == 2: sys.exit(7)\nserve_forever()") as process:
        out, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "worker 2 ended with status 7 before all 2 workers were serving; stopping the host" in said
    assert "ready" not in out
    assert len(starts(tmp_path, 2)) == 1


FAILS_AT_RESTART = """
if number == 2 and 1 < count < 5:
    os.kill(os.getpid(), signal.SIGKILL)
if number == 2 and count == 1:
    ready()
    time.sleep(0.2)
    sys.exit(1)
serve_forever()
"""

FAILS_AFTER_ALL_SERVED = """
if count > 1:
    sys.exit(1)
ready()
while not Path(folder, "starts-2").exists():
    time.sleep(0.01)
time.sleep(0.5)
sys.exit(1)
"""

HANGS_ONCE = """
if number == 2 and count == 1:
    ready()
    time.sleep(600)
serve_forever()
"""


def test_a_worker_that_cannot_restart_is_tried_again_while_the_other_serves(tmp_path: Path) -> None:
    with parent(tmp_path, FAILS_AT_RESTART) as process:
        said = stopped(process, lambda: len(starts(tmp_path, 2)) == 5)
    delays = [float(each) for each in re.findall(r"worker 2 .*restarting it in ([\d.]+) s", said)]
    assert delays == [0.01, 0.02, 0.04, 0.08]
    assert len(starts(tmp_path, 1)) == 1


def test_the_host_gives_up_if_no_worker_is_left_and_none_can_start(tmp_path: Path) -> None:
    with parent(tmp_path, FAILS_AFTER_ALL_SERVED) as process:
        _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "before it was ready, and no other worker is serving; stopping the host" in said


def test_a_worker_that_hangs_is_killed_and_replaced(tmp_path: Path) -> None:
    with parent(tmp_path, HANGS_ONCE, watchdog=1.0) as process:
        said = stopped(process, lambda: len(starts(tmp_path, 2)) == 2)
    assert "worker 2 was silent for 1 s; killing it" in said
    assert not is_running(starts(tmp_path, 2)[0])
