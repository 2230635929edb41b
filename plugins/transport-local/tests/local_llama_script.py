"""A language model that writes what a test has laid down, in the shape of the real one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from jackfield import Mode
from jackfield.transport.protocol import TransportError
from jackfield_local.llama.briefing import choosing
from jackfield_local.llama.dialogue import LlamaDialogue
from jackfield_local.llama.engine import Brief, Message, Piece
from jackfield_local.text import TextConnection
from local_session import Session, opening, planner


class Asked(NamedTuple):
    """One request as the model gets it."""

    brief: Brief
    messages: tuple[Message, ...]
    schema: Mapping[str, Any] | None


class Scripted:
    """Writes one line of its script at each request; a failure is raised."""

    def __init__(self, *lines: str | Sequence[Piece] | Exception) -> None:
        self.lines = list(lines)
        self.asked: list[Asked] = []
        self.held = asyncio.Event()
        self.held.set()
        """Cleared, it holds the model up before its second piece."""
        self.stopped = 0
        """How many times it was stopped before it had written all."""

    async def write(
        self, brief: Brief, asked: Sequence[Message], *, most: int, schema: Mapping[str, Any] | None = None
    ) -> AsyncGenerator[Piece, None]:
        """The next line, word by word."""
        assert most > 0
        self.asked.append(Asked(brief, tuple(asked), schema))
        line = self.lines.pop(0)
        if isinstance(line, Exception):
            raise line
        pieces = [Piece(f"{word} ") for word in line.split(" ")] if isinstance(line, str) else line
        done = False
        try:
            for place, piece in enumerate(pieces):
                if place:
                    await self.held.wait()
                yield piece
            done = True
        finally:
            self.stopped += not done


def chosen(tool: str) -> str:
    """A choice as the model writes it."""
    return json.dumps({"tool": tool})


FAILED = TransportError("server_error", "the local model failed: no room")


@asynccontextmanager
async def talking(
    model: Scripted, mode: Mode = "text", *, briefed: bool = True, **changes: Any
) -> AsyncIterator[Session]:
    """A conversation on a scripted model and the real planner."""
    begun = opening(mode, **changes)
    grounds = await planner().grounds(begun)
    brief = choosing(grounds.judgement.tools) if briefed else None
    connection = TextConnection(LlamaDialogue(begun, grounds, model, brief))
    try:
        yield Session(connection, connection.events(), mode)
    finally:
        await connection.close()
