"""A client in the terminal: lines in, the model's words out, a question where the user has to decide."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

import click

from jackfield.cli.report import echo
from jackfield.conversation.conversation import Conversation
from jackfield.conversation.notices import Notice
from jackfield.prompt import compose, estimated_tokens, folders
from jackfield.runtime import Runtime
from jackfield.settings import Settings
from jackfield.transport.events import Interrupted, TextDelta, TurnComplete
from jackfield.transport.protocol import Transport


async def converse(settings: Settings, user: str | None, *, approve: bool) -> None:
    """Hold one conversation with the provider that is set up, until the lines end."""
    runtime = await Runtime.start(settings)
    try:
        transport = runtime.transport()
        try:
            await _talk(runtime, transport, settings, user, approve=approve)
        finally:
            await transport.close()
    finally:
        await runtime.close()


async def _talk(
    runtime: Runtime, transport: Transport, settings: Settings, user: str | None, *, approve: bool
) -> None:
    if "text" not in transport.modes:
        raise click.ClickException(f"{settings.provider} carries no text; choose another provider")
    prompt = compose(runtime.registry, "text", folders(settings.prompts), _now(user))
    declared = runtime.registry.provider_schemas(transport.adapter("text"), "text")
    terminal = _Terminal()
    session = await runtime.open_session(
        "text",
        user=user,
        publish=terminal.publish,
        prompt_tokens=prompt.tokens,
        declaration_tokens=estimated_tokens(str(declared)),
    )
    conversation = Conversation(runtime, session, transport, terminal.deliver, instructions=prompt.text)
    await conversation.open()
    carrying = asyncio.create_task(conversation.run())
    try:
        with _interruptible(conversation, terminal):
            await _take_turns(conversation, terminal, carrying, approve=approve)
    finally:
        await conversation.close()
        await carrying
        await runtime.end_session(session)


def _now(user: str | None) -> dict[str, str]:
    now = datetime.now().astimezone()
    facts = {"now": f"{now:%A, %d %B %Y, %H:%M} ({now:%Z}, UTC{now:%z})"}
    return {**facts, "user": user} if user else facts


async def _take_turns(
    conversation: Conversation, terminal: _Terminal, carrying: asyncio.Task[Any], *, approve: bool
) -> None:
    while not carrying.done() and (line := await _next_line()) is not None:
        if not line.strip():
            continue
        terminal.turn_over.clear()
        await conversation.say(line.strip())
        await _until_over(terminal, carrying)
        while terminal.asked and not carrying.done():
            card = terminal.asked.pop(0)
            echo(click.style(card["preview"], bold=True))
            terminal.turn_over.clear()
            await conversation.answer_confirmation(card["token"], approve=approve or await _agreed())
            await _until_over(terminal, carrying)


async def _until_over(terminal: _Terminal, carrying: asyncio.Task[Any]) -> None:
    """Wait for the end of the answer, or of everything."""
    waiting = asyncio.create_task(terminal.turn_over.wait())
    try:
        await asyncio.wait({waiting, carrying}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()


@contextmanager
def _interruptible(conversation: Conversation, terminal: _Terminal) -> Iterator[None]:
    """Let Ctrl-C end an answer; where none is being given, it says how to leave."""
    loop = asyncio.get_running_loop()
    interrupts: set[asyncio.Task[None]] = set()

    def interrupt() -> None:
        if terminal.turn_over.is_set():
            # The line is read in a thread that nothing but a line can end.
            echo("(Ctrl-D ends the conversation)", err=True)
        else:
            interrupts.add(loop.create_task(conversation.interrupt()))

    with suppress(NotImplementedError):
        loop.add_signal_handler(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        with suppress(NotImplementedError):
            loop.remove_signal_handler(signal.SIGINT)


async def _next_line() -> str | None:
    if sys.stdin.isatty():
        click.echo(click.style("> ", fg="cyan"), nl=False, err=True)
    line = await asyncio.to_thread(sys.stdin.readline)
    return line or None


async def _agreed() -> bool:
    if not sys.stdin.isatty():
        echo("Declined: this needs a person's word at a terminal, or --yes.", err=True)
        return False
    return await asyncio.to_thread(click.confirm, "Run it?", default=False)


class _Terminal:
    """What the client of this conversation is: text as it comes, and a dim line for everything else."""

    def __init__(self) -> None:
        self.turn_over = asyncio.Event()
        self.turn_over.set()
        self.asked: list[Mapping[str, Any]] = []

    async def deliver(self, event: Any) -> None:
        if isinstance(event, TextDelta):
            click.echo(event.text, nl=False)
        elif isinstance(event, Notice):
            echo(click.style(f"{event.text} {event.suggestion}".strip(), fg="yellow"), err=True)
        elif isinstance(event, TurnComplete | Interrupted):
            click.echo()
            self.turn_over.set()

    def publish(self, event: str, fields: Mapping[str, Any]) -> None:
        if event == "confirmation_required":
            self.asked.append(fields)
        elif event == "tool_progress":
            _dim(f"  {fields['message']}")
        elif event in {"tool_start", "tool_complete"}:
            _dim(f"· {fields['tool']}{' done' if event == 'tool_complete' else ''}")
        elif event == "tool_error":
            _dim(f"· {fields['tool']}: {fields['message']}")


def _dim(line: str) -> None:
    echo(click.style(line, dim=True), err=True)
