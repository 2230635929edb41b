"""Hosts on one store: a registry with tools that leave a trace, and processes to be killed or paused.

Every signal goes to a process that was started here, by its handle.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import httpx
from jackfield_testkit.command_server import StartedCommand, start_command
from jackfield_testkit.site_packages import SitePackages

ALLOW = (
    "fault-*",
    "jackfield-policies",
    "jackfield-observability",
    "jackfield-store-*",
    "jackfield-transport-local",
)

LOOK, NOTE, BOOK = "fault_look", "fault_note", "fault_book"
"""A tool that only reads, one that writes, and one that writes once its user has approved."""

START_SECONDS = 120.0
"""Startup timeout on a busy machine."""

ANSWER_SECONDS = 90.0
"""Answer timeout: longer than any pause, any tool and any wait for another delivery."""

HANDLER = """\
import asyncio
import os
import secrets
import time

from jackfield import ok


def append(name, line):
    # One write to a file that is opened for appending: lines of several processes do not mix.
    path = os.path.join(os.environ["FAULTS_FOLDER"], name)
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


async def execute(args, ctx):
    if not WRITES:
        return ok({"call": args["call"]})
    append("begun.log", args["call"] + "\\n")
    await asyncio.sleep(args["before"])
    effect = secrets.token_hex(6)
    append("effects.log", f"{args['call']} {effect} {time.monotonic()}\\n")
    await asyncio.sleep(args["after"])
    return ok({"call": args["call"], "effect": effect})
"""

_SECONDS = {"type": "number", "description": "Seconds to sleep.", "default": 0}
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["call"],
    "properties": {
        "call": {"type": "string", "description": "Names the call in the effect log.", "maxLength": 100},
        "before": _SECONDS,
        "after": _SECONDS,
    },
}
_WRITES: dict[str, Any] = {"category": "action", "sideEffects": "writes", "idempotent": False}
TOOLS: dict[str, dict[str, Any]] = {
    LOOK: {},
    NOTE: _WRITES,
    BOOK: {**_WRITES, "requiresConfirmation": True, "preview": "Book {call}?"},
}


class Store(NamedTuple):
    """The store that the hosts share."""

    name: str
    settings: Mapping[str, Any]


class Deployment:
    """A folder with the registry, the store, the settings and the effect log."""

    allow: tuple[str, ...] = ALLOW
    """The distributions and tools that the hosts load."""
    tables: Mapping[str, Mapping[str, Any]] = {}
    """Further tables of the settings."""
    headers: Mapping[str, str] = {}
    """The headers of every request to the hosts."""

    def __init__(self, folder: Path, *, expiry: float, store: Store | None = None) -> None:
        """Create the folder; `expiry` is how long a call waits for its user, in seconds.

        Without `store`, the hosts share a SQLite file in the folder.
        """
        self.folder = folder
        self.expiry = expiry
        self.store = store or Store("sqlite", {"path": str(folder / "jackfield.db")})
        self.registry = self.freeze()
        self._operator = self.write_settings("operator", lease=None)

    def freeze(self) -> Path:
        """Install the tools and freeze them; return the registry's path."""
        site = SitePackages(self.folder / "site")
        for tool, fields in TOOLS.items():
            schema = {"description": f"Does what {tool} does.", "latencyBudgetMs": 60000, **fields}
            site.tool(
                tool,
                distribution=tool.replace("_", "-"),
                schema={**schema, "parameters": PARAMETERS},
                guide=f"# {tool}\n\nSummary of {tool}.\n\n## Watch out\n\nGuide of {tool}.\n",
                handler=HANDLER.replace("WRITES", str(fields != {})),
            )
        return site.frozen(*self.allow)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of every process of this deployment."""
        return {
            **os.environ,
            "PYTHONPATH": str(self.folder / "site"),
            "FAULTS_FOLDER": str(self.folder),
        }

    def write_settings(self, name: str, *, lease: float | None, **host: Any) -> Path:
        """Write a settings file; without `lease` the store has its own default."""
        store = {**self.store.settings, **({} if lease is None else {"lease": lease})}
        tables: dict[str, Mapping[str, Any]] = {
            **({f"stores.{self.store.name}": store} if store else {}),
            "observers.audit": {"path": str(self.folder / "audit.jsonl")},
            "policies.confirmation": {"expiry_seconds": self.expiry},
            "host": {"requests_per_minute": 1_000_000, "sessions_per_user": 1000, "grace_seconds": 2, **host},
            **self.tables,
        }
        top = {
            "provider": "local",
            "store": self.store.name,
            "registry": str(self.registry),
            "allow": list(self.allow),
        }
        path = self.folder / f"{name}.toml"
        text = _lines(top) + "".join(f"[{table}]\n{_lines(values)}" for table, values in tables.items())
        path.write_text(text, "utf-8")
        return path

    async def command(self, *arguments: str) -> Any:
        """Run a `jackfield` command while the hosts run; return its JSON output."""
        process = await start_command(
            [*arguments, "--json", "--config", str(self._operator)],
            cwd=self.folder, env=self.environment,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, err = await process.communicate()
        if process.returncode:
            raise RuntimeError(f"jackfield {' '.join(arguments)} failed: {err.decode()}")
        return json.loads(out)


def _lines(values: Mapping[str, Any]) -> str:
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())


class Host:
    """A host process of this campaign."""

    def __init__(
        self,
        deployment: Deployment,
        number: int,
        *,
        address: str = "127.0.0.1",
        prefix: tuple[str, ...] = (),
    ) -> None:
        """`address` is where it listens; `prefix` is a command that runs it, for example elsewhere."""
        self.number = number
        self.address = address
        self._prefix = prefix
        self.port = _free_port()
        self.lease: float | None = None
        """The lease for the next start; None keeps the default."""
        self._deployment = deployment
        self._process: StartedCommand | None = None
        self._answers_requests = False
        self.http = httpx.AsyncClient(
            base_url=f"http://{address}:{self.port}",
            timeout=httpx.Timeout(ANSWER_SECONDS, connect=5.0),
            limits=httpx.Limits(max_keepalive_connections=0),
            headers=dict(deployment.headers),
            trust_env=False,
        )

    @property
    def pid(self) -> int:
        """The process id of the running host."""
        if self._process is None:
            raise RuntimeError("the host is not running")
        return self._process.pid

    @property
    def headers(self) -> dict[str, str]:
        """The headers of every request to it."""
        return dict(self._deployment.headers)

    @property
    def is_up(self) -> bool:
        """Whether it is started and neither killed nor paused."""
        return self._answers_requests

    @property
    def log(self) -> Path:
        """The output of the process."""
        return self._deployment.folder / f"host-{self.number}.log"

    async def start(self) -> None:
        """Start it, and wait until it accepts connections."""
        config = self._deployment.write_settings(
            f"host-{self.number}", lease=self.lease, port=self.port, address=self.address
        )
        with self.log.open("ab") as output:
            self._process = await self._run("serve", "--config", str(config), output=output)
        async with asyncio.timeout(START_SECONDS):
            while True:
                with contextlib.suppress(OSError):
                    _, writer = await asyncio.open_connection(self.address, self.port)
                    writer.close()
                    break
                if self._process.returncode is not None:
                    raise RuntimeError(f"a host did not start:\n{self.log.read_text('utf-8')[-3000:]}")
                await asyncio.sleep(0.02)
        self._answers_requests = True

    async def _run(self, *arguments: str, output: IO[bytes]) -> StartedCommand:
        """Start `jackfield`."""
        folder, environment = self._deployment.folder, self._deployment.environment
        if not self._prefix:
            return await start_command(arguments, cwd=folder, env=environment, stdout=output, stderr=output)
        return await asyncio.create_subprocess_exec(
            *self._prefix, sys.executable, "-m", "jackfield_cli", *arguments,
            cwd=folder, env=environment, stdout=output, stderr=output,
        )  # fmt: skip

    async def kill(self) -> None:
        """Kill it, like a power cut."""
        self._answers_requests = False
        self._signal(signal.SIGKILL)
        if self._process is not None:
            await self._process.wait()

    def pause(self) -> None:
        """Pause it."""
        self._answers_requests = False
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume it."""
        self._signal(signal.SIGCONT)
        self._answers_requests = True

    async def close(self) -> None:
        """Stop it for good."""
        await self.kill()
        await self.http.aclose()

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
