"""A deployment with agents: a real runtime, ad hoc tools, a scripted model behind the real SDK."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jackfield import ToolCall, ToolResponse
from jackfield.governance import Call
from jackfield.protocol.messages import UnbackedClaim
from jackfield.runtime import Runtime
from jackfield.session.session import Session
from jackfield.settings import Settings
from jackfield_builder.pipeline import build
from jackfield_builder.snapshot import write_snapshot
from jackfield_scripted import Script
from jackfield_scripted.openai import OpenAIServer
from jackfield_testkit.site_packages import SitePackages

ASKED = "Please look into the rooms and report back."
WRITES = {"category": "action", "sideEffects": "writes", "idempotent": False}
READS = {"category": "retrieval", "sideEffects": "read_only"}
ALLOW = (
    "fab-*",
    "jackfield-policies",
    "jackfield-capability-agents",
    "jackfield-tool-task",
    "jackfield-transport-openai",
)

_HEAD = """\
import asyncio
from pathlib import Path

from jackfield import ok


async def execute(args, ctx):
"""
_LOOK = f"""{_HEAD}
    text = args["text"]
    return ok({{"results": [{{"id": "doc:" + text, "title": "About " + text, "type": "doc", "score": 0.9}}]}})
"""
_SLOW = f"""{_HEAD}
    await asyncio.sleep(60)
    return ok({{"said": "late"}})
"""
_THROUGH = f"""{_HEAD}
    return await ctx.call_tool("fab_note", {{"text": args["text"], "times": 1}})
"""
_NOTE = f"""{_HEAD}
    with Path(LOG).open("a") as log:
        log.write(args["text"] + "\\n")
    return ok({{"noted": 1}})
"""


def install_tools(site: SitePackages, log: Path) -> None:
    """Install the tools that an agent may use, and those that it may not."""
    site.tool("fab_look", schema=READS, handler=_LOOK)
    site.tool("fab_slow", schema={**READS, "timeoutMs": 120_000}, handler=_SLOW)
    site.tool("fab_through", handler=_THROUGH)
    note = _NOTE.replace("LOG", repr(str(log)))
    site.tool("fab_note", schema=WRITES, handler=note)
    site.tool("fab_book", schema={**WRITES, "requiresConfirmation": True}, handler=note)
    site.tool("fab_staff", schema={**READS, "availability": {"user": {"roles": ["staff"]}}}, handler=_LOOK)


class Watcher:
    """Records every call and every session, as the audit does."""

    def __init__(self) -> None:
        self.calls: list[tuple[Call, ToolResponse]] = []
        self.opened: list[Session] = []
        self.ended: list[Session] = []
        self.news = asyncio.Event()

    def call_finished(self, call: Call, response: ToolResponse) -> None:
        self.calls.append((call, response))
        self.news.set()

    def session_opened(self, session: Session, *, prompt_tokens: int, declaration_tokens: int) -> None:
        self.opened.append(session)
        self.news.set()

    def turn_began(self, session: Session) -> None: ...

    def claim_unbacked(self, session: Session, claim: UnbackedClaim) -> None: ...

    def session_ended(self, session: Session) -> None:
        self.ended.append(session)

    async def close(self) -> None: ...

    async def until(self, condition: Callable[[], Any]) -> None:
        while not condition():
            self.news.clear()
            await self.news.wait()


@dataclass
class AgentSession:
    """A session whose model delegates tasks."""

    runtime: Runtime
    session: Session
    watcher: Watcher
    server: OpenAIServer
    log: Path
    told: list[tuple[str, Any]] = field(default_factory=list)

    async def call_task(
        self,
        instructions: str = "Find out about rooms.",
        *,
        said: str = ASKED,
        call_id: str | None = None,
        session: Session | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Make one call to `task`; return its envelope."""
        session = session or self.session
        await self.runtime.begin_turn(session, said)
        arguments = json.dumps({"title": "Rooms", "instructions": instructions, **more})
        (answer,) = await self.runtime.orchestrator.handle(session, [ToolCall("task", arguments, call_id)])
        envelope: dict[str, Any] = json.loads(answer.wire)
        return envelope

    def inner(self) -> list[tuple[Call, ToolResponse]]:
        """The calls of agents."""
        return [each for each in self.watcher.calls if each[0].tool.id != "task"]

    @property
    def noted(self) -> list[str]:
        """The notes that were really written."""
        return self.log.read_text().splitlines() if self.log.exists() else []


@asynccontextmanager
async def agent_deployment(
    site: SitePackages,
    folder: Path,
    *scripts: Script,
    agents: dict[str, Any] | None = None,
    policies: dict[str, Any] | None = None,
    provider: str = "openai",
    roles: frozenset[str] = frozenset(),
    **server: Any,
) -> AsyncIterator[AgentSession]:
    """Start the deployment; exceptions of a script are raised at the end."""
    log = folder / "notes.txt"
    install_tools(site, log)
    async with OpenAIServer(*scripts, **server) as served:
        settings = Settings(
            allow=ALLOW,
            store="memory",
            provider=provider,
            registry=folder / "tool_registry.json",
            tables={
                "transports": {
                    "openai": {"base_url": served.base_url, "api_key_env": "FAB_KEY", "retries": 0}
                },
                "capabilities": {"agents": agents or {}},
                "policies": policies or {},
            },
        )
        built = build(settings, import_handlers=False)
        assert built.snapshot, built.findings
        write_snapshot(built.snapshot, settings.registry)
        watcher = Watcher()
        runtime = await Runtime.start(settings, [watcher])
        told: list[tuple[str, Any]] = []

        def publish(event: str, fields: Any, *, once: bool = False) -> None:
            told.append((event, dict(fields)))

        session = await runtime.open_session("text", user="ada", roles=roles, publish=publish)
        try:
            async with asyncio.timeout(30):
                yield AgentSession(runtime, session, watcher, served, log, told)
        finally:
            await runtime.close()


def run(act: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(act())  # type: ignore[arg-type]
