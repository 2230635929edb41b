"""The console in Chromium, served by a host in its own process with a scripted model.

async def test() -> None:
    async with open_console(deployment, script) as console:
        await console.open()
        await console.send("hello")
        await expect(console.page.get_by_text("Hello.")).to_be_visible()

run_with_chromium(test())
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, Any

import pytest
from jackfield.protocol.codec import members, message_type
from jackfield.protocol.messages import CLIENT_MESSAGES, HOST_MESSAGES
from jackfield_scripted import Script
from jackfield_scripted.openai import OpenAIServer
from jackfield_testkit.command_server import StartedCommand, start_command
from jackfield_testkit.site_packages import SitePackages
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

TIMEOUT_MS = 60_000
"""How long a test waits for an element before it fails."""

expect.set_options(timeout=TIMEOUT_MS)

ALLOW = (
    "con-*",
    "jackfield-console",
    "jackfield-experiments",
    "jackfield-mcp-server",
    "jackfield-policies",
    "jackfield-observability",
    "jackfield-store-sqlite",
    "jackfield-transport-openai",
    "jackfield-capability-kb",
    "jackfield-tool-kb-*",
    "jackfield-tool-format-datetime",
    "jackfield-tool-ignore-user",
    "jackfield-tool-start-voice-session",
    "jackfield-tool-end-voice-session",
)

BOOKING = """\
import asyncio
import os
from pathlib import Path

from jackfield import ok


async def execute(args, ctx):
    with (Path(os.environ["CON_FOLDER"]) / "booked.txt").open("a") as file:
        file.write(f"{args['room']}\\n")
    while (Path(os.environ["CON_FOLDER"]) / "held").exists():
        await asyncio.sleep(0.02)
    return ok({"room": args["room"], "reference": "R-17"})
"""

COUNTING = """\
import asyncio
import os
from pathlib import Path

from jackfield import ok, partial


async def execute(args, ctx):
    yield partial("5 on shelf 1, ", "Shelf 1 of 4", fraction=0.25)
    yield partial("7 on shelf 2", "Shelf 2 of 4", fraction=0.5)
    while not (Path(os.environ["CON_FOLDER"]) / "counted").exists():
        await asyncio.sleep(0.02)
    yield ok({"lamps": 12})
"""

TOOLS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "book_room": (
        BOOKING,
        {
            "category": "action",
            "sideEffects": "writes",
            "idempotent": False,
            "requiresConfirmation": True,
            "preview": "Book the {room} on {day}?\nThe key is at the desk.",
        },
        {
            "room": {"type": "string", "description": "Which room.", "minLength": 3, "maxLength": 60},
            "day": {"type": "string", "description": "Which day.", "format": "date"},
        },
    ),
    "count_stock": (
        COUNTING,
        {"category": "utility", "sideEffects": "read_only", "latencyBudgetMs": 800},
        {"item": {"type": "string", "description": "What to count.", "maxLength": 60}},
    ),
}
"""The tools of these tests: handler, manifest and parameters."""


def create_site(folder: Path) -> SitePackages:
    """Create the tools of these tests, and a registry with them and the repository's own tools."""
    site = SitePackages(folder)
    for tool, (handler, fields, parameters) in TOOLS.items():
        summary = {"book_room": "Books a room of the studio.", "count_stock": "Counts what is in stock."}[
            tool
        ]
        closed = {"type": "object", "additionalProperties": False}
        site.tool(
            tool,
            distribution=f"con-{tool}",
            schema={
                "description": f"Does what {tool} does.",
                "latencyBudgetMs": 2000,
                "parameters": {**closed, "required": list(parameters), "properties": parameters},
                **fields,
            },
            guide=f"# {tool}\n\n{summary}\n\n## Watch out\n\n- Ask for the **day**.\n",
            handler=handler,
        )
    site.frozen(*ALLOW)
    return site


@dataclass
class Deployment:
    """A folder with settings, registry and knowledge, and the host that serves it."""

    folder: Path
    site: Path
    port: int = 0
    uses: str = "openai"
    """The provider of the host."""
    launcher: Path | None = None
    """A Python program that runs `jackfield` in another way."""
    command: str = "serve"
    """The command that serves the host."""
    allow: Sequence[str] = ALLOW
    _process: StartedCommand | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environ(self) -> dict[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": str(self.site),
            "CON_FOLDER": str(self.folder),
            "CON_KEY": "k",
        }

    def configure(self, server: OpenAIServer, host: str = "", provider: str = "", more: str = "") -> None:
        """Write the settings; `host` and `provider` are added to those tables, `more` at the end."""
        self.port = self.port or free_port()
        # Not jackfield.toml, so that its `allow` does not apply to other commands.
        (self.folder / "console.toml").write_text(
            f'provider = "{self.uses}"\nallow = {json.dumps(list(self.allow))}\n'
            f'registry = "{self.site / "tool_registry.json"}"\n'
            f'[transports.openai]\nbase_url = "{server.base_url}"\n'
            f'api_key_env = "CON_KEY"\nretries = 0\n{provider}\n'
            f'[observers.audit]\npath = "audit.jsonl"\n'
            f"[host]\nport = {self.port}\n{host}\n{more}\n"
        )

    async def start(self) -> None:
        """Start the host and wait until it listens."""
        with (self.folder / "host.log").open("a") as log:
            self._process = await self._run(self.command, "--config", "console.toml", output=log)
        async with asyncio.timeout(90):
            while not await self._listens():
                assert self._process.returncode is None, (self.folder / "host.log").read_text()
                await asyncio.sleep(0.05)

    async def _run(self, *arguments: str, output: IO[Any]) -> StartedCommand:
        """Start `jackfield`."""
        if self.launcher is None:
            return await start_command(
                arguments, cwd=self.folder, env=self.environ, stdout=output, stderr=output
            )
        return await asyncio.create_subprocess_exec(
            sys.executable, str(self.launcher), *arguments,
            cwd=self.folder, env=self.environ, stdout=output, stderr=output,
        )  # fmt: skip

    async def stop(self, sig: signal.Signals = signal.SIGTERM) -> None:
        """Stop the host with a signal."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(sig)
            await self._process.wait()

    async def _listens(self) -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return False
        writer.close()
        await writer.wait_closed()
        return True


@dataclass
class Console:
    """A browser window with the console."""

    page: Page
    context: BrowserContext
    deployment: Deployment
    server: OpenAIServer
    problems: list[str] = field(default_factory=list)
    """Script errors, violations of the content security policy, and requests for what does not exist."""

    async def open(self, view: str = "chat") -> None:
        await self.page.goto(f"{self.deployment.address}/#/{view}")

    async def send(self, text: str) -> None:
        """Type a message and send it."""
        await self.page.get_by_label("Message").fill(text)
        # A form in the conversation also has a Send button.
        await self.page.locator(".composer").get_by_role("button", name="Send").click()

    async def state(self) -> str:
        """Return the state label of the page."""
        return await self.page.get_by_test_id("state").inner_text()

    async def check_accessibility(self) -> None:
        """Check the page with axe; every violation fails the test, whatever its impact."""
        from axe_playwright_python.async_playwright import Axe  # type: ignore[import-untyped]

        violations = [
            f"{each['id']}: {each['help']} {[node['html'][:160] for node in each['nodes']]}"
            for each in (await Axe().run(self.page)).response["violations"]
        ]
        assert not violations, "\n".join(violations)


class Chromium:
    """Playwright and a Chromium that the tests of this process share; each test has a context of its own.

    Both belong to an event loop, on which all these tests run one after the other.
    """

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._playwright = self._runner.run(async_playwright().start())
        self._shared: Browser | None = None

    def run(self, test: Coroutine[Any, Any, None]) -> None:
        """Run a test and cancel the tasks that it leaves behind, as `asyncio.run` does."""
        own = asyncio.all_tasks(self._runner.get_loop())
        try:
            self._runner.run(test)
        finally:
            self._runner.run(_cancel_all_but(own))

    @asynccontextmanager
    async def browser(self, args: Sequence[str]) -> AsyncIterator[Browser]:
        """Return the shared browser, or a new one if it needs further arguments."""
        if args:
            browser = await self._launch(args)
            try:
                yield browser
            finally:
                await browser.close()
            return
        if self._shared is None or not self._shared.is_connected():
            self._shared = await self._launch(())
        yield self._shared

    def close(self) -> None:
        """End Chromium and Playwright."""
        self._runner.run(self._playwright.stop())
        self._runner.close()

    async def _launch(self, args: Sequence[str]) -> Browser:
        flags = ["--no-sandbox", "--autoplay-policy=no-user-gesture-required", *args]
        return await self._playwright.chromium.launch(executable_path=chromium(), args=flags)


async def _cancel_all_but(own: set[asyncio.Task[Any]]) -> None:
    left = asyncio.all_tasks() - own - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


@cache
def shared_chromium() -> Chromium:
    """Return what the tests of this process share; it starts with the first test."""
    return Chromium()


def run_with_chromium(test: Coroutine[Any, Any, None]) -> None:
    """Run a test that opens a console."""
    shared_chromium().run(test)


def chromium() -> str:
    """Return the path of Chromium; skip the test if it is not installed."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if not found:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    return found


STRICT = """
(() => {
  const [client, host] = TABLES;
  const known = (type, name) => ["type", "id", "at"].includes(name) || host[type].includes(name);
  const strict = (message) => new Proxy(message, {
    get(target, name, receiver) {
      if (typeof name === "string" && !known(target.type, name)) {
        throw new Error(`the console reads ${name} of ${target.type}, which the protocol does not define`);
      }
      return Reflect.get(target, name, receiver);
    },
  });
  const parse = JSON.parse;
  JSON.parse = (...given) => {
    const value = parse(...given);
    const isMessage = value && typeof value === "object" && Object.hasOwn(host, value.type ?? "");
    return isMessage ? strict(value) : value;
  };
  const send = WebSocket.prototype.send;
  WebSocket.prototype.send = function (data) {
    if (typeof data === "string") {
      const { type, ...members } = parse(data);
      const unknown = Object.keys(members).filter((name) => !client[type]?.includes(name));
      if (!client[type] || unknown.length) throw new Error(`the console sends ${type} with ${unknown}`);
    }
    return send.call(this, data);
  };
})();
"""
"""Fails when the page uses a type or member that the protocol does not define."""


def strict_protocol() -> str:
    """Return the script that checks the page against the protocol."""
    tables = [
        {
            message_type(kind): [member.wire for member in members(kind) if member.name != "type"]
            for kind in kinds
        }
        for kinds in (CLIENT_MESSAGES, HOST_MESSAGES)
    ]
    return STRICT.replace("TABLES", json.dumps(tables))


@asynccontextmanager
async def open_console(
    deployment: Deployment,
    *scripts: Script,
    host: str = "",
    provider: str = "",
    more: str = "",
    args: Sequence[str] = (),
    answer: Callable[[str], Awaitable[str]] | None = None,
    **context: Any,
) -> AsyncIterator[Console]:
    """Open the console of a running host; `answer` accepts WebRTC calls, `context` is for Playwright."""
    options = {"locale": "en-GB", "timezone_id": "Europe/Berlin", "viewport": {"width": 1280, "height": 800}}
    async with (
        OpenAIServer(*scripts, answer=answer) as server,
        shared_chromium().browser(args) as browser,
    ):
        deployment.configure(server, host, provider, more)
        await deployment.start()
        try:
            async with await browser.new_context(**{**options, **context}) as made:
                made.set_default_timeout(TIMEOUT_MS)
                await made.add_init_script(strict_protocol())
                page = await made.new_page()
                console = Console(page, made, deployment, server)
                page.on("pageerror", lambda error: console.problems.append(str(error)))
                page.on("console", lambda message: _note(console, message.type, message.text))
                yield console
                assert not console.problems, console.problems
        finally:
            await deployment.stop(signal.SIGKILL)


def _note(console: Console, kind: str, text: str) -> None:
    if kind == "error" and re.search("Content Security Policy|status of 404", text):
        console.problems.append(text)


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
