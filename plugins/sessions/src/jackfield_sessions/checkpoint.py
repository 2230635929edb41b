"""The state from which another process resumes a session: messages, pending calls, and pending work.

Messages are saved before they are published, in one record with the pending work. A process that takes over
in between finds a complete answer and does not ask the model again. The record also has messages that were
saved but not published, and the new owner publishes them. Only the end of an answer waits for the store; its
text and its audio were delivered before. Each owner of a session saves under its own epoch
(`jackfield.session.fenced_record`). The transcript has published messages only, and a process that has lost
the session publishes nothing.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
from jackfield.call_states import CallState, state_of
from jackfield.contract.tool import ToolCall
from jackfield.orchestrator import CallResult
from jackfield.protocol.codec import to_wire
from jackfield.protocol.messages import UnbackedClaim
from jackfield.session import fenced_record
from jackfield.session.session import RECOVERY_SECONDS, Session
from jackfield.store import Store, StoreUnavailableError
from jackfield.transport.events import Speaker
from jackfield.transport.protocol import Utterance

from jackfield_sessions.events import may_publish_outcome
from jackfield_sessions.forms import Forms, Submission
from jackfield_sessions.summary import SUMMARY_LIMIT, Summarizer, extractive_summary

_log = logging.getLogger(__name__)

TRANSCRIPT_SECONDS = 7 * 24 * 3600

MAX_UNWRITTEN = 1000
"""How many lines of a transcript may wait while the store is unavailable."""

MAX_CLIENT_IDS = 64
"""How many ids of client messages are remembered."""

MAX_UNPUBLISHED = 32
"""How many messages may be saved and not published yet."""

RECENT_TURNS = 5
"""How many of the user's turns are kept verbatim when a session continues in a new connection."""

CALL_LIMIT = 1000
"""How much of a tool's result the history holds, in characters."""

_CALL = re.compile(r'\[called (?P<tool>\w+); the answer was (?P<result>\{"ok":true,.*)', re.DOTALL)


def checkpoint_name(session_id: str) -> str:
    """Return the name of the record with a session's checkpoint."""
    return f"checkpoint/{session_id}"


def transcript(session_id: str) -> str:
    """Return the name of the stream with a session's messages."""
    return f"transcript/{session_id}"


class ChatHistory:
    """The conversation as a new model connection gets it: the last turns verbatim, and a summary."""

    def __init__(self, summary: str = "", messages: Sequence[Utterance] = ()) -> None:
        self.summary = summary
        self.messages = list(messages)
        """The messages that are kept verbatim."""

    @property
    def awaits_answer(self) -> bool:
        """True if the last message is the user's."""
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

    def results(self, without: Collection[str]) -> list[str]:
        """Return the results of successful calls in the history, except those of the tools in `without`."""
        found = (_CALL.match(each.text) for each in self.messages if each.speaker == "assistant")
        return [call["result"] for call in found if call is not None and call["tool"] not in without]

    async def compact(self, summarize: Summarizer) -> None:
        """Replace all but the last turns with a summary."""
        begins = [index for index, each in enumerate(self.messages) if each.speaker == "user"]
        if len(begins) <= RECENT_TURNS:
            return
        first = begins[-RECENT_TURNS]
        older, self.messages = self.messages[:first], self.messages[first:]
        try:
            self.summary = (await summarize(self.summary, older))[:SUMMARY_LIMIT]
        except Exception:  # noqa: BLE001 - a summarizer may fail in any way; the session must continue
            self.summary = await extractive_summary(self.summary, older)


@dataclass(slots=True)
class CalledTools:
    """The tools that a session has called, to check what the assistant says about them.

    The checkpoint stores the fields under these names.
    """

    turn: int = 0
    states: dict[str, CallState] = field(default_factory=dict)
    """How the calls of each tool ended in the turn."""
    succeeded: list[str] = field(default_factory=list)
    """The tools that have had a successful call in the session."""

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> CalledTools:
        """Create an object from its saved form."""
        states = {tool_id: CallState(state) for tool_id, state in wire["states"].items()}
        return cls(wire["turn"], states, wire["succeeded"])

    def add(self, tool_id: str, state: CallState, turn: int) -> None:
        """Record the outcome of a call; a success counts for the rest of the turn."""
        if turn != self.turn:
            self.turn, self.states = turn, {}
        if self.states.get(tool_id) is not CallState.DONE:
            self.states[tool_id] = state
        if state is CallState.DONE and tool_id not in self.succeeded:
            self.succeeded.append(tool_id)

    def in_turn(self, turn: int) -> Mapping[str, CallState]:
        """Return the states of the tools that were called in a turn, by their ids."""
        return self.states if turn == self.turn else {}


class Checkpoint:
    """Saves a session's state as it changes, so that another process can resume the session."""

    def __init__(self, session: Session, store: Store) -> None:
        self.history = ChatHistory()
        self.answers = 0
        """The number of answers so far."""
        self.pending_calls: list[tuple[ToolCall, ...]] = []
        """The batches of calls whose results the model does not have yet."""
        self.published_outcomes: set[str] = set()
        """The ids of pending calls whose outcome a previous owner has published."""
        self.response_pending = False
        """True while the user is waiting for an answer from the model."""
        self.outcomes: dict[str, str] = {}
        """The last reported state of each call with a late outcome, by the key of the call's claim."""
        self.unsettled: dict[str, tuple[str, str | None]] = {}
        """The tool and the id of each call without an outcome, by the key of the call's claim."""
        self.called = CalledTools()
        self.correction = ""
        """The pending correction of the model's last answer; empty once the model has responded to it."""
        self.corrected_turn = 0
        """The last turn in which the model was told about an unbacked claim."""
        self.forms = Forms()
        self.submission: Submission | None = None
        """The completed form that the model has to answer; None if it has to answer a text."""
        self.client_ids: deque[str] = deque(maxlen=MAX_CLIENT_IDS)
        """The ids of the client's latest messages."""
        self._session = session
        self._store = store
        self._key = fenced_record.key_for(checkpoint_name(session.id), session.epoch)
        self._transcript = transcript(session.id)
        self._unpublished: deque[dict[str, Any]] = deque(maxlen=MAX_UNPUBLISHED)
        self._unwritten: deque[bytes] = deque(maxlen=MAX_UNWRITTEN)
        self._writing = asyncio.Lock()
        self._saving = asyncio.Lock()
        self._saved_response_pending = False
        self._disabled = False

    @classmethod
    async def load(cls, session: Session, store: Store) -> Checkpoint:
        """Return the checkpoint of a session that was live before, in this process or in another."""
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
        # A host without claim checking may have saved the session last.
        if called := wire.get("called"):
            self.called = CalledTools.from_wire(called)
        self.correction, self.corrected_turn = wire.get("correction", ""), wire.get("correctedTurn", 0)

    def _to_wire(self) -> dict[str, Any]:
        """Return the state as it is stored."""
        return {
            "summary": self.history.summary,
            "history": [list(each) for each in self.history.messages],
            "answers": self.answers,
            "pendingCalls": [
                [
                    (
                        call.tool_id,
                        call.arguments if isinstance(call.arguments, str) else call.arguments.decode(),
                        call.call_id,
                    )
                    for call in batch
                ]
                for batch in self.pending_calls
            ],
            "responsePending": self.response_pending,
            "clientIds": list(self.client_ids),
            "unpublished": list(self._unpublished),
            "forms": {"open": self.forms.open, "closed": self.forms.closed},
            "submission": list(self.submission) if self.submission else None,
            "outcomes": self.outcomes,
            "unsettled": self.unsettled,
            "called": self.called,
            "correction": self.correction,
            "correctedTurn": self.corrected_turn,
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

    def add_call(self, answer: CallResult) -> None:
        """Add the outcome of a call to the history and to the called tools."""
        self.history.add_call(answer.tool_id, answer.wire)
        # The envelope of a success need not be parsed.
        state = CallState.DONE if answer.response.failure is None else state_of(answer.wire)
        self.called.add(answer.tool_id, state, self._session.turn.number)

    async def add_message(
        self,
        speaker: Speaker,
        text: str,
        *,
        interrupted: bool = False,
        replaces: bool = False,
        client_id: str | None = None,
        form_id: str | None = None,
        begins_turn: bool = False,
        unbacked_claims: Sequence[UnbackedClaim] = (),
    ) -> None:
        """Save a message with its `client_id`, then publish it; with `replaces`, it replaces the last answer.

        A message that begins a turn is saved together with the turn. Without text there is no message, and
        only the rest of the state is saved, if it has changed.
        """
        text = text.strip()
        if client_id is not None:
            self.client_ids.append(client_id)
        if not text:
            if begins_turn or self.response_pending != self._saved_response_pending:
                await self.save(session=begins_turn)
            return
        self.history.messages.append(Utterance(speaker, f"{text} [interrupted]" if interrupted else text))
        message: dict[str, Any] = {"speaker": speaker, "text": text, "turn": self._session.turn.number}
        if speaker == "assistant":
            self.answers += not replaces
            message |= {"answer": self.answers, "interrupted": interrupted}
        if unbacked_claims:
            message["unbackedClaims"] = [to_wire(claim) for claim in unbacked_claims]
        if client_id is not None:
            message["clientId"] = client_id
        if form_id is not None:
            message["formId"] = form_id
        if speaker == "assistant" and self._session.flags.get("suppress_transcript"):
            await self.save()
            return
        self._unpublished.append(message)
        # Saved first, because a client that gets the message does not send its own copy again.
        await self.save(session=begins_turn)
        self._session.publish("message", message)

    async def mark_published(self, message: Mapping[str, Any], at: float) -> None:
        """Add a message that is in the event log to the transcript."""
        if message in self._unpublished:
            self._unpublished.remove(dict(message))
        if self._disabled:
            return
        # A transcript outlives its session by days, so each line names the user.
        line = {**message, "user": self._session.user, "mode": self._session.mode, "at": at}
        self._unwritten.append(orjson.dumps(line))
        # One at a time: each message is written once and in order.
        async with self._writing:
            try:
                while self._unwritten:
                    await self._store.append(self._transcript, self._unwritten[0], ttl=TRANSCRIPT_SECONDS)
                    self._unwritten.popleft()
            except StoreUnavailableError as error:
                _log.error(
                    "session %s: %d transcript lines are waiting for the store: %s",
                    self._session.id,
                    len(self._unwritten),
                    error,
                )

    async def skip_published_outcomes(self, call_ids: Sequence[str]) -> None:
        """Skip the outcomes of resumed calls that another host is already publishing."""
        if self._disabled:
            return  # Nothing is published here any more.
        for call_id in call_ids:
            if call_id not in self.published_outcomes and not await may_publish_outcome(
                self._store, self._session.id, call_id
            ):
                self.published_outcomes.add(call_id)

    def disable(self) -> None:
        """Stop saving, because another process owns the session."""
        self._disabled = True

    async def save(self, *, session: bool = False) -> None:
        """Save the checkpoint; with `session`, save the session's counters and flags too.

        The session continues while the store is unavailable.
        """
        async with self._saving:
            if self._disabled:
                return
            # Encoded under the lock: of two concurrent saves, the later one must not save an older state.
            wire, response_pending = orjson.dumps(self._to_wire()), self.response_pending
            try:
                turn = self._session.save(self._store) if session else None
                saved = self._store.put(self._key, wire, ttl=RECOVERY_SECONDS)
                # Concurrently, so that the store flushes both to the disk at once.
                await (saved if turn is None else asyncio.gather(turn, saved))
                self._saved_response_pending = response_pending
            except StoreUnavailableError as error:
                _log.error("session %s could not be saved: %s", self._session.id, error)

    async def _is_written(self, message: Mapping[str, Any]) -> bool:
        """Return whether the transcript has a message; its publisher may have died before it was written."""
        after = 0
        while page := await self._store.read(self._transcript, after=after):
            if any(message.items() <= orjson.loads(entry.value).items() for entry in page):
                return True
            after = page[-1].id
        return False
