"""Hosts for tests: real servers on free ports, scripted providers, and clients that check every message.

    async with scripted_provider(script) as served, running_host(host_folder, served) as host:
        async with host.client("text") as ada:
            await ada.say("text", text="hello")
            await ada.until_type("turn_complete")

A `HostFolder` holds a registry, a store and settings. `running_host` serves it in this process, `HostProcess`
in a process of its own that a test can kill. A `Client` checks the messages of both sides against the
published schemas.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import jsonschema_rs
import served_hosts
import websockets
from jackfield.protocol.codec import Message, message_type
from jackfield.protocol.messages import CLIENT_MESSAGES, HOST_MESSAGES
from jackfield.settings import Settings
from jackfield.store import Store
from jackfield_host.client_messages import message_schemas
from jackfield_host.host import Host
from jackfield_scripted import Script, ScriptedModel
from jackfield_scripted.audio import tone
from jackfield_scripted.gemini import GeminiServer
from jackfield_scripted.openai import OpenAIServer
from jackfield_sessions.manager import SessionManager
from jackfield_store_sqlite.creation import initialise
from jackfield_testkit import postgres
from jackfield_testkit.site_packages import SitePackages
from websockets.asyncio.client import ClientConnection
from websockets.typing import Origin, Subprotocol

PATIENCE = served_hosts.PATIENCE
wait_until = served_hosts.wait_until
free_port = postgres.free_port

ALLOW = (
    "hst-*",
    "jackfield-console",
    "jackfield-policies",
    "jackfield-observability",
    "jackfield-store-*",
    "jackfield-transport-openai",
    "jackfield-transport-gemini",
    "jackfield-tool-ignore-user",
    "jackfield-tool-start-voice-session",
    "jackfield-tool-end-voice-session",
)

HANDLER = """\
import asyncio
import gc
import inspect
import os
from pathlib import Path

from jackfield import fail, ok, partial
from jackfield.contract.tool import ErrorType
from jackfield.contract.tool import Intent

def folder():
    return Path(os.environ["HST_FOLDER"])


LONG = "One sentence follows another. "


def trace(word, args):
    with (folder() / "effects.txt").open("a") as file:
        file.write(f"{word} {args['text']}\\n")


async def passes(gate):
    while gate and not (folder() / gate).exists():
        await asyncio.sleep(0.01)


async def execute(args, ctx):
    trace("begun", args)
    await asyncio.sleep(args["seconds"])
    await passes(args["before"])
    trace("done", args)
    await passes(args["after"])
    return await KIND(args, ctx)


async def plain(args, ctx):
    return ok({"words": len(args["text"].split()), "text": args["text"]})


async def facts(args, ctx):
    session = ctx.session
    return ok({
        "id": session.id, "user": session.user, "mode": session.mode, "turn": session.turn,
        "registry": session.registry_version, "active": session.active,
    })


async def heap(args, ctx):
    found = {"watched": len(gc.get_objects()), "set_aside": gc.get_freeze_count()}
    return ok({**found, "collecting": gc.isenabled()})


async def hush(args, ctx):
    return ok({}, Intent(args["text"], {"value": True}))


async def much(args, ctx):
    return ok({"results": [{"id": n, "text": LONG * 5} for n in range(100)]})


async def odd(args, ctx):
    await ctx.messaging.send("odd", half="\\ud800", big=2**80, nothing=float("nan"))
    await ctx.progress("half \\udc80 way", fraction=0.5)
    return ok({"told": True})


async def refuse(args, ctx):
    return fail(ErrorType.PERMANENT, "Not today.", suggestion="Ask tomorrow.")


async def fails(args, ctx):
    return fail(ErrorType(args["text"]), "As asked.")


async def tells(args, ctx):
    await ctx.progress("Half way.", fraction=0.5)
    await passes("told")
    return ok({"told": True})


async def streams(args, ctx):
    trace("begun", args)
    try:
        for number in range(5):
            yield partial(f"{number} ", fraction=number / 10)
        await passes(args["before"])
        for number in range(5, 10):
            yield partial(f"{number} ")
        trace("done", args)
        await passes(args["after"])
        yield ok({"counted": list(range(10))})
    finally:
        trace("closed", args)


async def floods(args, ctx):
    for number in range(3000):
        yield partial({"number": number, "text": LONG})
    yield ok({"sent": 3000})


KIND = {kind}

if inspect.isasyncgenfunction(KIND):
    execute = KIND
"""

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["text"],
    "properties": {
        "text": {"type": "string", "description": "What it is about.", "maxLength": 100},
        "seconds": {"type": "number", "description": "How long it takes.", "default": 0},
        "before": {"type": "string", "description": "What it waits for before it acts.", "default": ""},
        "after": {"type": "string", "description": "What it waits for after it acted.", "default": ""},
    },
}

WRITES: dict[str, Any] = {"category": "action", "sideEffects": "writes", "idempotent": False}

TOOLS: dict[str, tuple[str, dict[str, Any]]] = {
    "hst_look": ("plain", {}),
    "hst_note": ("plain", WRITES),
    "hst_book": (
        "plain",
        {**WRITES, "requiresConfirmation": True, "preview": "Book {text}?", "says": ["booked"]},
    ),
    "hst_facts": ("facts", {}),
    "hst_heap": ("heap", {}),
    "hst_hush": ("hush", {}),
    "hst_much": ("much", {}),
    "hst_odd": ("odd", {}),
    "hst_refuse": ("refuse", {}),
    "hst_fails": ("fails", {}),
    "hst_tells": ("tells", {}),
    "hst_streams": ("streams", {}),
    "hst_stream_note": ("streams", WRITES),
    "hst_stream_brief": ("streams", {"timeoutMs": 500, "latencyBudgetMs": 400}),
    "hst_stream_long": ("streams", {"timeoutMs": 120000, "latencyBudgetMs": 60001}),
    "hst_floods": ("floods", {}),
    "hst_brief": ("plain", {"timeoutMs": 150, "latencyBudgetMs": 100}),
    "hst_rationed": ("plain", {"rateLimit": {"calls": 1, "windowMs": 60000}}),
    "hst_written": ("plain", {"allowedModes": ["text"]}),
    "hst_spoken": ("plain", {"allowedModes": ["voice"]}),
}
"""The tools that models call here: the function that answers, and further fields of the manifest."""

_T = TypeVar("_T")


def make_site(folder: Path, plugins: Mapping[str, str] | None = None) -> Path:
    """Create a folder with the tools of these tests, and a registry of them and of the repository's tools.

    `plugins` are the sources of further plugins, by the name of their distribution.
    """
    site = SitePackages(folder)
    for name, source in (plugins or {}).items():
        site.plugin(name, source)
    for tool, (kind, fields) in TOOLS.items():
        site.tool(
            tool,
            distribution=f"hst-{tool}",
            version="1.2.3",
            schema={
                "version": "1.2.3",
                "description": f"Does what {tool} does.",
                "latencyBudgetMs": 60000,
                "parameters": PARAMETERS,
                **fields,
            },
            guide=f"# {tool}\n\nSummary of {tool}.\n\n## Watch out\n\nGuide of {tool}.\n",
            handler=HANDLER.replace("{kind}", kind),
        )
    site.frozen(*ALLOW)
    return folder


@dataclass(frozen=True)
class HostFolder:
    """The working folder of a host, with its registry and its store."""

    path: Path
    registry: Path
    site: Path
    store_settings: dict[str, Any] = field(default_factory=dict)
    """Further store settings of hosts in processes of their own."""
    database: str = ""
    """The URL of a PostgreSQL database; without it, the store is a SQLite file."""

    def settings(self, served: Provider, tables: Mapping[str, Any] | None = None) -> Settings:
        """Return the settings of a host in this folder with this provider."""
        given = {
            "transports": {served.provider: served.table},
            "stores": {self.store_name: self.store_table},
            "observers": {"audit": {"path": str(self.path / "audit.jsonl")}},
        }
        return Settings(
            allow=ALLOW,
            registry=self.registry,
            provider=served.provider,
            store=self.store_name,
            tables={**given, **(tables or {})},
        )

    @property
    def store_name(self) -> str:
        """The name of the store."""
        return "postgres" if self.database else "sqlite"

    @property
    def store_table(self) -> dict[str, Any]:
        """The settings of the store; on PostgreSQL, each folder has a schema of its own."""
        if not self.database:
            return {"path": str(self.store)}
        return {"url": self.database, "schema": f"t{sha256(str(self.path).encode()).hexdigest()[:16]}"}

    @property
    def store(self) -> Path:
        """The file of the store."""
        return self.path / "jackfield.db"

    def create_store(self) -> str:
        """Create the store, as a host in production needs it; return its id."""
        return initialise(self.store).id

    def effects(self, line: str) -> int:
        """Count how often a tool wrote this line."""
        path = self.path / "effects.txt"
        return path.read_text().splitlines().count(line) if path.exists() else 0

    def open_gate(self, name: str) -> None:
        """Let tools continue that wait for this gate."""
        (self.path / name).touch()

    async def audited(self, count: int) -> list[dict[str, Any]]:
        """Wait for this many calls in the audit log, and return them."""
        path = self.path / "audit.jsonl"
        async with asyncio.timeout(PATIENCE):
            while True:
                lines = path.read_text().splitlines() if path.exists() else []
                calls = [json.loads(line) for line in lines if '"tool"' in line]
                if len(calls) >= count:
                    return calls
                await asyncio.sleep(0.02)


@dataclass
class Provider:
    """A scripted provider that is running."""

    provider: str
    server: Any
    failures: list[Exception] = field(default_factory=list)
    """The exceptions of scripts, so that a test that waits for the next message fails at once."""

    @property
    def table(self) -> dict[str, Any]:
        """The settings of the provider."""
        table = {"api_key_env": "HST_KEY", "base_url": self.server.base_url}
        if getattr(self.server, "ca_file", None):
            table["ca_file"] = str(self.server.ca_file)
        return table


@asynccontextmanager
async def scripted_provider(
    *scripts: Script, provider: str = "openai", **server: Any
) -> AsyncIterator[Provider]:
    """Run a scripted provider; failed assertions of a script are raised at the end."""
    made: Provider

    def reporting(script: Script) -> Script:
        async def play(model: ScriptedModel) -> None:
            try:
                await script(model)
            except Exception as error:
                made.failures.append(error)
                raise

        return play

    serve: Any = OpenAIServer if provider == "openai" else GeminiServer
    async with serve(*map(reporting, scripts), **server) as served:
        made = Provider(provider, served)
        yield made


@dataclass
class RunningHost:
    """A host that accepts connections."""

    port: int
    inner: Host | None = None
    served: Provider | None = None

    @property
    def host(self) -> Host:
        """The host, if it runs in this process."""
        assert self.inner
        return self.inner

    @property
    def sessions(self) -> SessionManager:
        """The sessions of a host in this process."""
        return self.host.sessions

    @asynccontextmanager
    async def client(self, mode: str, **options: Any) -> AsyncIterator[Client]:
        """Connect a client that has sent `start`, or `resume` if a token is given."""
        async with self.connected(mode) as client:
            client.plays = options.pop("plays", True)
            await client.say("resume" if "token" in options else "start", **options)
            await client.until(lambda: client.session)
            yield client

    @asynccontextmanager
    async def connected(self, mode: str, **options: Any) -> AsyncIterator[Client]:
        """Connect a client that has not sent a message."""
        given: dict[str, Any] = {
            "origin": Origin(f"http://127.0.0.1:{self.port}"),
            "subprotocols": [Subprotocol("jackfield.1")],
            "max_size": 2**24,
            "compression": None,
            "open_timeout": PATIENCE,
        }
        url = f"ws://127.0.0.1:{self.port}/ws/{mode}"
        async with websockets.connect(url, **{**given, **options}) as raw:
            client = Client(raw, mode, self.served)
            try:
                yield client
            finally:
                await client.stop()


@asynccontextmanager
async def running_host(
    host_folder: HostFolder,
    served: Provider,
    *,
    tables: Mapping[str, Any] | None = None,
    send_buffer: int = 0,
    **options: Any,
) -> AsyncIterator[RunningHost]:
    """Run a host in this process, on a free port; `send_buffer` limits the system's buffer for a client."""
    settings = host_folder.settings(served, tables)
    async with served_hosts.served_host(settings, send_buffer=send_buffer, **options) as (port, host):
        yield RunningHost(port, host, served)


class HostProcess(RunningHost, served_hosts.ServingProcess):
    """A host in a process of its own, which a test can kill."""

    def __init__(
        self, host_folder: HostFolder, served: Provider, *, command: str = "serve", **options: Any
    ) -> None:
        RunningHost.__init__(self, free_port(), None, served)
        self.config = host_folder.path / f"host-{self.port}.toml"
        """The settings file."""
        environ = {**os.environ, "PYTHONPATH": str(host_folder.site), "HST_FOLDER": str(host_folder.path)}
        served_hosts.ServingProcess.__init__(
            self, self.port, host_folder.path, self.config, environ, command=command
        )
        self._host_folder = host_folder
        self._options = options

    async def start(self) -> None:
        """Write the settings and start it, then wait until it accepts connections."""
        assert self.served
        text = _toml(self._host_folder, self.served, {"port": self.port, **self._options})
        self.config.write_text(text)
        await served_hosts.ServingProcess.start(self)


async def make_doubt(store: Store, key: str, **note: Any) -> None:
    """Leave a call in doubt, as a host that is killed while the call runs."""
    known = {
        "callId": key.rpartition("/")[2],
        "session": "0" * 32,
        "user": "ada",
        "arguments": "{}",
        "at": store.now(),
        "meta": {"toolId": "hst_note", "toolVersion": "1.2.3", "registryVersion": "1", "duration": 0.0},
    }
    await store.claim(key, b"arguments", ttl=3600, note=json.dumps({**known, **note}).encode())
    await store.abandon(key)


def _toml(host_folder: HostFolder, served: Provider, options: Mapping[str, Any]) -> str:
    def table(name: str, values: Mapping[str, Any]) -> str:
        return f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())

    top = {
        "provider": served.provider,
        "store": host_folder.store_name,
        "registry": str(host_folder.registry),
        "allow": list(ALLOW),
    }
    return "".join(
        [
            "".join(f"{key} = {json.dumps(value)}\n" for key, value in top.items()),
            table(f"transports.{served.provider}", served.table),
            table(
                f"stores.{host_folder.store_name}", {**host_folder.store_table, **host_folder.store_settings}
            ),
            table("observers.audit", {"path": str(host_folder.path / "audit.jsonl")}),
            table("host", options),
        ]
    )


@cache
def _validators() -> tuple[dict[str, Any], dict[str, Any]]:
    return _of(CLIENT_MESSAGES), _of(HOST_MESSAGES)


def _of(messages: tuple[type[Message], ...]) -> dict[str, Any]:
    # Clients ignore members they do not know, but the host may only send published members.
    closed = {name: {**schema, "additionalProperties": False} for name, schema in message_schemas().items()}
    return {
        message_type(message): jsonschema_rs.validator_for(
            {"$ref": f"#/components/schemas/{message.__name__}", "components": {"schemas": closed}}
        )
        for message in messages
    }


def check(message: Mapping[str, Any], *, by_host: bool) -> None:
    """Fail if a message does not match the published schema."""
    known = _validators()[by_host]
    assert message.get("type") in known, f"not published: {message}"
    faults = [f"{each.instance_path}: {each.message}" for each in known[message["type"]].iter_errors(message)]
    assert not faults, f"{message}: {faults}"


class Client:
    """A client that checks the messages of both sides, and reports what it plays."""

    def __init__(self, raw: ClientConnection, mode: str, served: Provider | None = None) -> None:
        self.raw = raw
        self.mode = mode
        self.got: list[dict[str, Any]] = []
        """Every message in order; an audio frame is `{"type": "audio_frame", ...}`."""
        self.plays = True
        """Whether it reports all audio as played at once."""
        self.session: dict[str, Any] | None = None
        self.closed: tuple[int, str] | None = None
        self._served = served
        self._item = ""
        self._played: dict[str, int] = {}
        self._fault: Exception | None = None
        self._news = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    async def say(self, kind: str, **fields: Any) -> None:
        """Send a message."""
        message = {"type": kind, **fields}
        check(message, by_host=False)
        await self.raw.send(json.dumps(message))

    async def speak(self, ms: int = 400) -> None:
        """Send this much audio, in frames of 20 ms."""
        for start in range(0, ms, 20):
            await self.raw.send(tone(20, start_ms=start))

    async def until(self, condition: Callable[[], _T | None]) -> _T:
        """Wait until a condition returns a true value, and return it."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not (found := condition()):
                    if self._fault:
                        raise self._fault
                    if self._served and self._served.failures:
                        raise self._served.failures[0]
                    assert not self.closed, f"closed {self.closed} after {self.got[-5:]}"
                    self._news.clear()
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(0.25):
                            await self._news.wait()
        except TimeoutError:
            raise AssertionError(f"timed out; the last messages were {self.got[-12:]}") from None
        if self._fault:
            raise self._fault
        return found

    async def until_type(self, kind: str, count: int = 1) -> dict[str, Any]:
        """Wait for the n-th message of a type."""
        return await self.until(lambda: self.of(kind)[count - 1] if len(self.of(kind)) >= count else None)

    async def until_closed(self) -> tuple[int, str]:
        """Wait until the connection is closed; return the code and the reason."""
        async with asyncio.timeout(PATIENCE * 2):
            await asyncio.wait({self._reading})
        if self._fault:
            raise self._fault
        assert self.closed
        return self.closed

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the messages of one type."""
        return [message for message in self.got if message["type"] == kind]

    @property
    def events(self) -> list[dict[str, Any]]:
        """The messages that have an id."""
        return [message for message in self.got if "id" in message]

    @property
    def last_event(self) -> int:
        """The largest id so far."""
        return max((message["id"] for message in self.events), default=0)

    @property
    def token(self) -> str:
        """The token that resumes the session."""
        assert self.session
        return str(self.session["token"])

    @property
    def states(self) -> list[str]:
        """The states that the session has reported."""
        return [message["state"] for message in self.of("session_status")]

    def said(self, speaker: str) -> list[str]:
        """Return the complete messages of one speaker."""
        return [message["text"] for message in self.of("message") if message["speaker"] == speaker]

    def audio_ms(self, item: str | None = None) -> int:
        """Return how many milliseconds of audio have arrived."""
        return sum(each["ms"] for each in self.of("audio_frame") if item in (None, each["item"]))

    async def stop(self) -> None:
        """Stop reading; raise what was wrong with a message."""
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        if self._fault:
            raise self._fault

    async def _read(self) -> None:
        try:
            async for frame in self.raw:
                if isinstance(frame, bytes):
                    await self._hear(frame)
                else:
                    self._take(json.loads(frame))
                self._news.set()
        except websockets.ConnectionClosed:
            pass
        except Exception as error:  # noqa: BLE001 - raised again in the test that waits
            self._fault = error
        self.closed = (self.raw.close_code or 1006, self.raw.close_reason or "")
        self._news.set()

    def _take(self, message: dict[str, Any]) -> None:
        check(message, by_host=True)
        if message["type"] == "session":
            self.session = message
        elif message["type"] == "audio":
            self._item = message["item"]
        if "id" in message:
            assert message["id"] > self.last_event, f"{message} after event {self.last_event}"
        self.got.append(message)

    async def _hear(self, frame: bytes) -> None:
        assert self.mode == "voice"
        assert self._item, "an audio frame came before the message that names its item"
        assert len(frame) % 2 == 0
        self.got.append({"type": "audio_frame", "item": self._item, "ms": len(frame) / 48})
        if self.plays:
            await self.say("playback", item=self._item, ms=int(self.audio_ms(self._item)) + 1)


def token_protocol(token: str) -> str:
    """Return the WebSocket subprotocol that carries a token, as docs/protocol.md describes it."""
    return "jackfield.token." + base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")
