"""The state from which another process resumes a session: messages, pending calls, and what is still due.

Messages are saved before they are published, in one record with what is still due. A process that takes over
in between finds an answer that was given, and does not ask the model for it again. Messages that were saved
and not published by then are in the record as well, and the new owner publishes them. Only the end of an
answer waits for the store; its words and its sound were delivered before. Each owner of a session saves under
its own epoch (`jackfield.session.fenced_record`). The transcript holds published messages alone, and a
process that has lost the session publishes nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import orjson
from jackfield.contract.tool import ToolCall
from jackfield.session import fenced_record
from jackfield.session.session import RECOVERY_SECONDS, Session
from jackfield.store import Store, StoreUnavailableError
from jackfield.transport.events import Speaker
from jackfield.transport.protocol import Utterance

from jackfield_sessions.forms import Forms, Submission
from jackfield_sessions.summary import SUMMARY_LIMIT, Summarizer, extractive_summary

_log = logging.getLogger(__name__)

TRANSCRIPT_SECONDS = 7 * 24 * 3600

MAX_UNWRITTEN = 1000
"""How many lines of a transcript wait for a store that is unavailable."""

MAX_CLIENT_IDS = 64
"""How many ids of client messages are remembered."""

MAX_UNPUBLISHED = 32
"""How many messages may be saved and not published yet."""

RECENT_TURNS = 5
"""How many turns of the user are kept word for word when a session goes on in a new connection."""

CALL_LIMIT = 1000
"""How much of a tool's answer the history holds, in characters."""


def checkpoint_name(session_id: str) -> str:
    """The record that holds the checkpoint of a session."""
    return f"checkpoint/{session_id}"


def transcript(session_id: str) -> str:
    """The stream that holds the messages of a session."""
    return f"transcript/{session_id}"


class ChatHistory:
    """The conversation as a new model connection gets it: the last turns word for word, and a summary."""

    def __init__(self, summary: str = "", messages: Sequence[Utterance] = ()) -> None:
        self.summary = summary
        self.messages = list(messages)
        """Everything that is still known word for word."""

    @property
    def awaits_answer(self) -> bool:
        """Whether the last message is the user's."""
        return bool(self.messages) and self.messages[-1].speaker == "user"

    def add(self, speaker: Speaker, text: str) -> None:
        """Add a message."""
        if text.strip():
            self.messages.append(Utterance(speaker, text.strip()))

    def pop_answer(self) -> str:
        """Remove and return the assistant's last message, if nothing came after it."""
        last = self.messages[-1] if self.messages else None
        if last is not None and last.speaker == "assistant" and not last.text.startswith("["):
            return self.messages.pop().text
        return ""

    def add_call(self, tool_id: str, envelope: bytes) -> None:
        """Add a tool call, so that a model that takes over does not repeat it."""
        answer = envelope.decode()
        short = answer if len(answer) <= CALL_LIMIT else f"{answer[:CALL_LIMIT]} (cut)"
        self.messages.append(Utterance("assistant", f"[called {tool_id}; the answer was {short}]"))

    async def compact(self, summarize: Summarizer) -> None:
        """Replace all but the last turns by a summary."""
        begins = [index for index, each in enumerate(self.messages) if each.speaker == "user"]
        if len(begins) <= RECENT_TURNS:
            return
        first = begins[-RECENT_TURNS]
        older, self.messages = self.messages[:first], self.messages[first:]
        try:
            self.summary = (await summarize(self.summary, older))[:SUMMARY_LIMIT]
        except Exception:  # noqa: BLE001 - a summarizer may fail in any way; the session must go on
            self.summary = await extractive_summary(self.summary, older)


class Checkpoint:
    """Saves a session's state as it changes, so that another process can resume the session."""

    def __init__(self, session: Session, store: Store) -> None:
        self.history = ChatHistory()
        self.answers = 0
        """How many answers the assistant has given."""
        self.pending_calls: list[tuple[ToolCall, ...]] = []
        """The batches of calls that the model has no answer to yet."""
        self.published_outcomes: set[str] = set()
        """The ids of pending calls whose outcome a previous owner has published."""
        self.response_pending = False
        """Whether the user waits for an answer of the model."""
        self.outcomes: dict[str, str] = {}
        """The state that the model last heard of calls whose outcome came late, by the key of their claim."""
        self.unsettled: dict[str, tuple[str, str | None]] = {}
        """The tools and ids of calls without an outcome, by the key of their claim."""
        self.forms = Forms()
        self.submission: Submission | None = None
        """The completed form that the user waits for an answer to, if it was a form and no text."""
        self.client_ids: deque[str] = deque(maxlen=MAX_CLIENT_IDS)
        """The ids that a client gave its latest messages."""
        self._session = session
        self._store = store
        self._name = checkpoint_name(session.id)
        self._transcript = transcript(session.id)
        self._unpublished: deque[dict[str, Any]] = deque(maxlen=MAX_UNPUBLISHED)
        self._unwritten: deque[bytes] = deque(maxlen=MAX_UNWRITTEN)
        self._writing = asyncio.Lock()
        self._saving = asyncio.Lock()
        self._saved_response_pending = False
        self._disabled = False

    @classmethod
    async def load(cls, session: Session, store: Store) -> Checkpoint:
        """The checkpoint of a session that was live before, in this process or in another."""
        saved = await fenced_record.latest(store, checkpoint_name(session.id))
        checkpoint = cls(session, store)
        if saved is not None:
            checkpoint._restore(orjson.loads(saved.value))
        return checkpoint

    def _restore(self, wire: Mapping[str, Any]) -> None:
        self.history = ChatHistory(wire["summary"], [Utterance(*each) for each in wire["history"]])
        self.answers = wire["answers"]
        self.pending_calls = [tuple(ToolCall(*call) for call in batch) for batch in wire["pendingCalls"]]
        self.response_pending = wire["responsePending"]
        self.client_ids.extend(wire["clientIds"])
        self._unpublished.extend(wire["unpublished"])
        self.forms = Forms(wire["forms"]["open"], wire["forms"]["closed"])
        self.submission = Submission(*wire["submission"]) if wire["submission"] else None
        self.outcomes = wire["outcomes"]
        self.unsettled = {key: (tool_id, call_id) for key, (tool_id, call_id) in wire["unsettled"].items()}

    def _to_wire(self) -> dict[str, Any]:
        return {
            "summary": self.history.summary,
            "history": [list(each) for each in self.history.messages],
            "answers": self.answers,
            "pendingCalls": [
                [(call.tool_id, _text(call.arguments), call.call_id) for call in batch]
                for batch in self.pending_calls
            ],
            "responsePending": self.response_pending,
            "clientIds": list(self.client_ids),
            "unpublished": list(self._unpublished),
            "forms": {"open": self.forms.open, "closed": self.forms.closed},
            "submission": list(self.submission) if self.submission else None,
            "outcomes": self.outcomes,
            "unsettled": self.unsettled,
        }

    async def recover(self, published: Collection[Mapping[str, Any]]) -> None:
        """Take over from another process, given the messages that it has published."""
        saved = list(self._unpublished)
        self._unpublished = deque(
            (message for message in saved if message not in published), maxlen=MAX_UNPUBLISHED
        )
        await self.save(session=True)
        for message in saved:
            if message not in published:
                self._session.publish("message", message)
            elif not await self._is_written(message):
                await self.mark_published(message, self._store.now())

    def accept_client_id(self, client_id: str | None) -> bool:
        """Whether no message with this id came before; from now on one has."""
        if client_id is None:
            return True
        if client_id in self.client_ids:
            return False
        self.client_ids.append(client_id)
        return True

    async def add_message(
        self,
        speaker: Speaker,
        text: str,
        *,
        interrupted: bool = False,
        replaces: bool = False,
        client_id: str | None = None,
    ) -> None:
        """Save a message, then publish it; `replaces` where it takes the place of the last answer."""
        text = text.strip()
        if not text:
            return
        self.history.add(speaker, f"{text} [interrupted]" if interrupted else text)
        message: dict[str, Any] = {"speaker": speaker, "text": text, "turn": self._session.turn.number}
        if speaker == "assistant":
            self.answers += not replaces
            message |= {"answer": self.answers, "interrupted": interrupted}
        if client_id is not None:
            message["clientId"] = client_id
        if speaker == "assistant" and self._session.flags.get("suppress_transcript"):
            await self.save()
            return
        self._unpublished.append(message)
        # A client that gets the message takes its own as arrived, and will not send it again.
        await self.save()
        self._session.publish("message", message)

    async def mark_published(self, message: Mapping[str, Any], at: float) -> None:
        """Add a message that is in the event log to the transcript."""
        if message in self._unpublished:
            self._unpublished.remove(dict(message))
        # A transcript outlives its session by days, and has to say whose it is by itself.
        await self._write({**message, "user": self._session.user, "mode": self._session.mode, "at": at})

    async def add_pending(self, calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
        """Save calls before they run, so that a process that takes over knows of them."""
        batch = tuple(calls)
        self.pending_calls.append(batch)
        await self.save()
        return batch

    async def remove_pending(self, batch: tuple[ToolCall, ...]) -> None:
        """Save that the model has the answers to these calls."""
        self.pending_calls = [each for each in self.pending_calls if each is not batch]
        await self.save(session=True)

    def disable(self) -> None:
        """Save nothing more, because another process owns the session."""
        self._disabled = True

    async def save(self, *, session: bool = False) -> None:
        """Save the checkpoint, with `session` also the session's counters and flags.

        The session goes on while the store is unavailable.
        """
        async with self._saving:
            if self._disabled:
                return
            # Encoded in here: of two that save at a time, the later one must not save an older state.
            wire, response_pending = orjson.dumps(self._to_wire()), self.response_pending
            epoch, store = self._session.epoch, self._store
            writes = [fenced_record.write(store, self._name, epoch, wire, ttl=RECOVERY_SECONDS)]
            if session:
                # Concurrently, so that the store flushes both to the disk at once.
                writes.append(self._session.save(store))
            try:
                await asyncio.gather(*writes)
                self._saved_response_pending = response_pending
            except StoreUnavailableError as error:
                _log.error("session %s could not be saved: %s", self._session.id, error)

    async def save_if_changed(self) -> None:
        """Save what is still due after an answer, unless it was saved with the answer itself."""
        if self.response_pending != self._saved_response_pending:
            await self.save()

    async def _is_written(self, message: Mapping[str, Any]) -> bool:
        """Whether the transcript has a message: the process that published it may have died before."""
        after = 0
        while page := await self._store.read(self._transcript, after=after):
            if any(message.items() <= orjson.loads(entry.value).items() for entry in page):
                return True
            after = page[-1].id
        return False

    async def _write(self, line: dict[str, Any]) -> None:
        if self._disabled:
            return
        self._unwritten.append(orjson.dumps(line))
        # One at a time: both sides may have a message, and each is written once and in its place.
        async with self._writing:
            try:
                while self._unwritten:
                    await self._store.append(self._transcript, self._unwritten[0], ttl=TRANSCRIPT_SECONDS)
                    self._unwritten.popleft()
            except StoreUnavailableError as error:
                _log.error("session %s: %d lines wait: %s", self._session.id, len(self._unwritten), error)


def _text(arguments: str | bytes) -> str:
    return arguments if isinstance(arguments, str) else arguments.decode()
