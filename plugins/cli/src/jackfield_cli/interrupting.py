"""Ctrl-C and SIGTERM while a call runs: what reads is stopped, what writes comes to its end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from jackfield.invocation import cancel_call

from jackfield_cli.report import echo

if TYPE_CHECKING:
    from jackfield.orchestrator import Orchestrator
    from jackfield.session.session import Session

SIGNALS = (signal.SIGINT, signal.SIGTERM)
MOST = 2
"""How many of them are heard; whoever sends more wants to be gone, whatever is left behind."""


@contextmanager
def interruptible(orchestrator: Orchestrator, session: Session) -> Iterator[None]:
    """A first signal interrupts as a user's voice does, a second gives a write up, a third ends all."""
    told = 0
    loop = asyncio.get_running_loop()
    waiting = asyncio.current_task()

    def heard(*_: object) -> None:
        nonlocal told
        told += 1
        if told > MOST:
            # A handler that blocks the loop, or swallows its cancellation, hears nothing else.
            raise KeyboardInterrupt
        loop.call_soon_threadsafe(_interrupt, orchestrator, session, waiting, told)

    before = {each: signal.getsignal(each) for each in SIGNALS}
    # What runs in the background of a script is told not to listen to Ctrl-C.
    changed = [each for each, handler in before.items() if handler is not signal.SIG_IGN]
    for each in changed:
        signal.signal(each, heard)
    try:
        yield
    finally:
        for each in changed:
            signal.signal(each, before[each])


def _interrupt(
    orchestrator: Orchestrator, session: Session, waiting: asyncio.Task[None] | None, told: int
) -> None:
    running = orchestrator.running(session)
    writes = [call for call in running if not call.tool.reads]
    orchestrator.interrupt(session)
    if told == 1 and writes:
        echo(f"{writes[0].tool.id} writes, and is left to finish; Ctrl-C again gives it up.", err=True)
    elif told == 1 and not running:
        # A policy is at work: another process may run this very call, or an answer is being kept.
        echo("There is no answer yet; Ctrl-C again gives it up.", err=True)
    elif told > 1 and running:
        for call in writes:
            cancel_call(call, "interrupted")
    elif told > 1 and waiting is not None:
        waiting.cancel()
