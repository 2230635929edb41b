"""What of a conversation outlives the process that carries it: what was said, and what was under way."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

import orjson
from jackfield.contract.call import ToolCall
from jackfield.session.session import RECOVERY_SECONDS, Session
from jackfield.store import Store, StoreUnavailableError
from jackfield.transport.events import Speaker
from jackfield.transport.protocol import Utterance

from jackfield_conversation.memory import Memory

_log = logging.getLogger(__name__)

TRANSCRIPT_SECONDS = 7 * 24 * 3600

UNWRITTEN = 1000
"""How many lines of a transcript wait for a store that is away."""

MARKS = 64
"""How many names of messages are remembered."""


def transcript(session_id: str) -> str:
    """The stream that holds what was said in a session."""
    return f"transcript/{session_id}"


class Journal:
    """Writes down a conversation as it goes, so that another process can go on with it."""

    def __init__(
        self, session: Session, store: Store, memory: Memory | None = None, answers: int = 0
    ) -> None:
        self.memory = memory or Memory()
        self.answers = answers
        """How many answers the assistant has given."""
        self.under_way: list[tuple[ToolCall, ...]] = []
        """The calls of each message that are not answered yet."""
        self.told: set[str] = set()
        """The ids of calls under way whose outcome a client was told before a process had to leave them."""
        self.owed = False
        """Whether the user waits for an answer."""
        self.marks: deque[str] = deque(maxlen=MARKS)
        """Under which names a client has sent what was said last."""
        self._session = session
        self._store = store
        self._unwritten: deque[bytes] = deque(maxlen=UNWRITTEN)
        self._writing = asyncio.Lock()
        self._abandoned = False

    @classmethod
    async def resumed(cls, session: Session, store: Store) -> Journal:
        """The journal of a session that was carried on before, here or elsewhere."""
        kept = await store.get(_key(session.id))
        if kept is None:
            return cls(session, store)
        wire = orjson.loads(kept)
        said = [Utterance(*each) for each in wire["said"]]
        journal = cls(session, store, Memory(wire["summary"], said), wire["answers"])
        journal.under_way = [tuple(ToolCall(*call) for call in message) for message in wire["underWay"]]
        journal.owed = wire["owed"]
        journal.marks.extend(wire["marks"])
        return journal

    def takes(self, mark: str | None) -> bool:
        """Whether something under this name was not said before."""
        if mark is None:
            return True
        if mark in self.marks:
            return False
        self.marks.append(mark)
        return True

    async def said(
        self,
        speaker: Speaker,
        text: str,
        *,
        interrupted: bool = False,
        again: bool = False,
        mark: str | None = None,
    ) -> None:
        """Somebody has said something; `again` where it takes the place of the last answer."""
        text = text.strip()
        if not text:
            return
        self.memory.add(speaker, f"{text} [interrupted]" if interrupted else text)
        fields: dict[str, Any] = {"speaker": speaker, "text": text, "turn": self._session.turn.number}
        if speaker == "assistant":
            self.answers += not again
            fields |= {"answer": self.answers, "interrupted": interrupted}
        else:
            # A client that is told so takes it as arrived, and will not say it again.
            await self.keep()
        if mark is not None:
            fields["clientId"] = mark
        if speaker == "user" or not self._session.changes.get("suppress_transcript"):
            self._session.publish("message", fields)
            # A transcript outlives its session by days, and has to say whose it is by itself.
            whose = {"user": self._session.user, "mode": self._session.mode}
            await self._write({**fields, **whose, "at": self._store.now()})

    async def began(self, calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
        """The calls of a message are about to be run; whoever takes over has to know of them."""
        message = tuple(calls)
        self.under_way.append(message)
        await self.keep()
        return message

    async def ended(self, message: tuple[ToolCall, ...]) -> None:
        """The calls of a message are answered, and the model has been told."""
        self.under_way = [each for each in self.under_way if each is not message]
        await self.keep(counters=True)

    def abandon(self) -> None:
        """Another process carries the conversation on: from here on nothing is kept by this one."""
        self._abandoned = True

    async def keep(self, *, counters: bool = False) -> None:
        """Keep what it takes to go on, with the session's counters and changes where they may have changed.

        A store that is away is no reason to stop talking.
        """
        if self._abandoned:
            return
        wire = {
            "summary": self.memory.summary,
            "said": [list(each) for each in self.memory.said],
            "answers": self.answers,
            "underWay": [[_told(call) for call in message] for message in self.under_way],
            "owed": self.owed,
            "marks": list(self.marks),
        }
        try:
            if counters:
                await self._session.save(self._store)
            await self._store.put(_key(self._session.id), orjson.dumps(wire), ttl=RECOVERY_SECONDS)
        except StoreUnavailableError as error:
            _log.error("session %s could not be kept: %s", self._session.id, error)

    async def _write(self, line: dict[str, Any]) -> None:
        self._unwritten.append(orjson.dumps(line))
        # One at a time: both sides may have said something, and each line is written once and in its place.
        async with self._writing:
            try:
                while self._unwritten:
                    await self._store.append(
                        transcript(self._session.id), self._unwritten[0], ttl=TRANSCRIPT_SECONDS
                    )
                    self._unwritten.popleft()
            except StoreUnavailableError as error:
                _log.error("session %s: %d lines wait: %s", self._session.id, len(self._unwritten), error)


def _told(call: ToolCall) -> Iterable[Any]:
    arguments = call.arguments if isinstance(call.arguments, str) else call.arguments.decode()
    return call.tool_id, arguments, call.call_id


def _key(session_id: str) -> str:
    return f"conversation/{session_id}"
