"""What of a conversation outlives the process that carries it: what was said, and what was under way.

What was said is kept first and told then, in one record with what is still owed: whoever takes over in
between finds an answer that was given, and does not give it again. What was kept and not told by then is in
the record as well, and is told by whoever takes over. Only the end of an answer waits for that; its words and
its sound went out before. Each holder of a session keeps a record of its own (`jackfield.session.record`),
and only what was told is in the transcript: a process that has lost the session tells nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import orjson
from jackfield.contract.call import ToolCall
from jackfield.session import record
from jackfield.session.session import RECOVERY_SECONDS, Session
from jackfield.store import Store, StoreUnavailableError
from jackfield.transport.events import Speaker
from jackfield.transport.protocol import Utterance

from jackfield_sessions.forms import Forms, Submission
from jackfield_sessions.memory import Memory

_log = logging.getLogger(__name__)

TRANSCRIPT_SECONDS = 7 * 24 * 3600

UNWRITTEN = 1000
"""How many lines of a transcript wait for a store that is away."""

MARKS = 64
"""How many names of messages are remembered."""

UNTOLD = 32
"""How many messages may be kept and not told yet."""


def transcript(session_id: str) -> str:
    """The stream that holds what was said in a session."""
    return f"transcript/{session_id}"


class Journal:
    """Writes down a conversation as it goes, so that another process can go on with it."""

    def __init__(self, session: Session, store: Store) -> None:
        self.memory = Memory()
        self.answers = 0
        """How many answers the assistant has given."""
        self.under_way: list[tuple[ToolCall, ...]] = []
        """The calls of each message that are not answered yet."""
        self.told: set[str] = set()
        """The ids of calls under way whose outcome a client was told before a process had to leave them."""
        self.owed = False
        """Whether the user waits for an answer."""
        self.outcomes: dict[str, str] = {}
        """What the model was last told about calls whose outcome came late, by the key of their claim."""
        self.doubts: dict[str, tuple[str, str | None]] = {}
        """The tools and ids of calls without an outcome, by the key of their claim."""
        self.forms = Forms()
        self.submission: Submission | None = None
        """The completed form that the user waits for an answer to, if it was a form and no text."""
        self.marks: deque[str] = deque(maxlen=MARKS)
        """Under which names a client has sent what was said last."""
        self.confirmed = False
        """Whether whoever publishes says of each message when it was told; else that is so at once."""
        self._untold: deque[dict[str, Any]] = deque(maxlen=UNTOLD)
        self._session = session
        self._store = store
        self._unwritten: deque[bytes] = deque(maxlen=UNWRITTEN)
        self._writing = asyncio.Lock()
        self._keeping = asyncio.Lock()
        self._kept_owed = False
        self._abandoned = False

    @classmethod
    async def resumed(cls, session: Session, store: Store) -> Journal:
        """The journal of a session that was carried on before, here or elsewhere."""
        kept = await record.latest(store, name(session.id))
        journal = cls(session, store)
        if kept is not None:
            journal._restore(orjson.loads(kept.value))
        return journal

    def _restore(self, wire: Mapping[str, Any]) -> None:
        self.memory = Memory(wire["summary"], [Utterance(*each) for each in wire["said"]])
        self.answers = wire["answers"]
        self.under_way = [tuple(ToolCall(*call) for call in message) for message in wire["underWay"]]
        self.owed = wire["owed"]
        self.marks.extend(wire["marks"])
        self._untold.extend(wire.get("untold", ()))
        forms, submission = wire.get("forms"), wire.get("submission")
        self.forms = Forms(forms["open"], forms["closed"]) if forms else Forms()
        self.submission = Submission(*submission) if submission else None
        self.outcomes = wire["outcomes"]
        self.doubts = {key: (tool_id, call_id) for key, (tool_id, call_id) in wire["doubts"].items()}

    async def take_up(self, told: Collection[Mapping[str, Any]]) -> None:
        """Go on in place of another process, given the messages that it has told."""
        given = list(self._untold)
        self._untold = deque((message for message in given if message not in told), maxlen=UNTOLD)
        await self.keep(counters=True)
        for message in given:
            if message not in told:
                await self._tell(message)
            elif not await self._is_written(message):
                await self.was_told(message, self._store.now())

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
        message: dict[str, Any] = {"speaker": speaker, "text": text, "turn": self._session.turn.number}
        if speaker == "assistant":
            self.answers += not again
            message |= {"answer": self.answers, "interrupted": interrupted}
        if mark is not None:
            message["clientId"] = mark
        if speaker == "assistant" and self._session.changes.get("suppress_transcript"):
            await self.keep()
            return
        self._untold.append(message)
        # A client that is told so takes it as arrived, and will not say it again.
        await self.keep()
        await self._tell(message)

    async def _tell(self, message: dict[str, Any]) -> None:
        self._session.publish("message", message)
        if not self.confirmed:
            await self.was_told(message, self._store.now())

    async def was_told(self, message: Mapping[str, Any], at: float) -> None:
        """A message has been told, and belongs into the transcript."""
        if message in self._untold:
            self._untold.remove(dict(message))
        # A transcript outlives its session by days, and has to say whose it is by itself.
        await self._write({**message, "user": self._session.user, "mode": self._session.mode, "at": at})

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
        async with self._keeping:
            if self._abandoned:
                return
            # Put together in here: of two who keep at a time, the later one must not keep what is older.
            wire, owed = orjson.dumps(self._to_wire()), self.owed
            session, store = self._session, self._store
            writes = [record.write(store, name(session.id), session.holder, wire, ttl=RECOVERY_SECONDS)]
            if counters:
                # Side by side, so that the store writes both to the disk at once.
                writes.append(session.save(store))
            try:
                await asyncio.gather(*writes)
                self._kept_owed = owed
            except StoreUnavailableError as error:
                _log.error("session %s could not be kept: %s", session.id, error)

    async def settled(self) -> None:
        """An answer is over: keep what is still owed, unless it was kept with the answer itself."""
        if self.owed != self._kept_owed:
            await self.keep()

    def _to_wire(self) -> dict[str, Any]:
        return {
            "summary": self.memory.summary,
            "said": [list(each) for each in self.memory.said],
            "answers": self.answers,
            "underWay": [[_told(call) for call in message] for message in self.under_way],
            "owed": self.owed,
            "marks": list(self.marks),
            "untold": list(self._untold),
            "forms": {"open": self.forms.open, "closed": self.forms.closed},
            "submission": list(self.submission) if self.submission else None,
            "outcomes": self.outcomes,
            "doubts": self.doubts,
        }

    async def _is_written(self, message: Mapping[str, Any]) -> bool:
        """Whether the transcript has it: whoever told it may not have come so far."""
        stream, after = transcript(self._session.id), 0
        while page := await self._store.read(stream, after=after):
            if any(message.items() <= orjson.loads(entry.value).items() for entry in page):
                return True
            after = page[-1].id
        return False

    async def _write(self, line: dict[str, Any]) -> None:
        if self._abandoned:
            return
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


def name(session_id: str) -> str:
    """The record that holds what it takes to go on with a session."""
    return f"conversation/{session_id}"
